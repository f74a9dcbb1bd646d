package structs

import (
	"errors"
	"strconv"
	"strings"
	"unicode"
)

func (v *validator) batch(j *Job) {
	b := j.Batch
	if b == nil {
		if j.Type == JobTypeBatch && j.Sweep == nil {
			v.add("batch", "job.batch.missing", "job.batch.missing.hint")
		}
		return
	}
	if j.Type != JobTypeBatch {
		v.add("batch", "job.batch.type", "job.batch.type.hint", "type", j.Type)
	}
	if j.Checkpoint != nil {
		v.excludes("checkpoint", "batch")
	}
	v.integer("batch.parallel", b.Parallel, 0, BatchCountMax)
	switch {
	case len(b.Subtasks) > 0 && b.Array != "":
		v.excludes("batch.array", "batch.subtask")
	case len(b.Subtasks) > 0 && b.Count != 0:
		v.add("batch.count", "job.batch.both", "job.batch.both.hint", "count", b.Count, "subtasks", len(b.Subtasks))
	case len(b.Subtasks) > 0:
		v.subtasks(b)
	case b.Array != "" && !v.array(b):
	case b.Array != "":
		v.subjobRanks("batch.array", b.Count, j.Nodes)
	case v.integer("batch.count", b.Count, 1, BatchCountMax):
		v.subjobRanks("batch.count", b.Count, j.Nodes)
	}
}

// subjobRanks bounds the nodes of all subjobs together.
func (v *validator) subjobRanks(path string, count, nodes int) {
	if nodes < 1 || nodes > NodesMax {
		return
	}
	if ranks := count * nodes; ranks > JobRanksMax {
		v.add(path, "job.batch.ranks", "", "count", count, "nodes", nodes, "ranks", ranks, "max", JobRanksMax)
	}
}

// array checks the numbers of a batch, which SetDefaults has counted.
func (v *validator) array(b *Batch) bool {
	array, err := ParseArray(b.Array)
	var refused *Error
	if errors.As(err, &refused) {
		params := []any{}
		for name, value := range refused.Params {
			params = append(params, name, value)
		}
		v.add("batch.array", refused.ID, refused.ID+".hint", params...)
		return false
	}
	if b.Count != len(array.IDs) {
		v.add("batch.count", "job.array.count", "job.array.count.hint", "count", b.Count, "array", len(array.IDs))
		return false
	}
	return true
}

func (v *validator) subtasks(b *Batch) {
	if len(b.Subtasks) > BatchCountMax {
		v.add("batch", "job.too_many", "", "what", "subtask", "count", len(b.Subtasks), "max", BatchCountMax)
		return
	}
	seen := make(map[string]bool, len(b.Subtasks))
	for i, s := range b.Subtasks {
		path := IndexedPath("batch.subtask", i)
		if v.name(path+".name", s.Name) && seen[s.Name] {
			v.add(path+".name", "job.duplicate", "", "value", s.Name)
		}
		seen[s.Name] = true
		if s.Algorithm != "" {
			v.name(path+".algorithm", s.Algorithm)
		}
		if s.Command != "" {
			v.command(path+".command", s.Command)
		}
		v.env(path+".env", s.Env)
	}
}

func (v *validator) sweep(j *Job) {
	s := j.Sweep
	if s == nil {
		return
	}
	if j.Type != JobTypeBatch {
		v.add("sweep", "job.sweep.type", "job.batch.type.hint", "type", j.Type)
	}
	if j.Batch != nil {
		v.excludes("sweep", "batch")
	}
	if j.Checkpoint != nil {
		v.excludes("checkpoint", "sweep")
	}
	v.integer("sweep.parallel", s.Parallel, 0, BatchCountMax)
	v.integer("sweep.seed", s.Seed, 0, 1<<31-1)
	v.choice("sweep.goal", s.Goal, false, GoalMinimize, GoalMaximize)
	v.choice("sweep.args", s.Args, true, ArgsFlags, ArgsHydra, ArgsJSON)
	v.word("sweep.metric", s.Metric, WordMax)
	if !v.choice("sweep.method", s.Method, false, SweepGrid, SweepRandom, SweepASHA) || !v.sweepParams(s) {
		return
	}
	if s.Method != SweepGrid {
		if v.integer("sweep.max_trials", s.MaxTrials, 1, BatchCountMax) {
			v.subjobRanks("sweep.max_trials", s.MaxTrials, j.Nodes)
		}
		return
	}
	size, counted := s.Size()
	written := strconv.FormatUint(size, 10)
	if !counted {
		written = "> " + written
	}
	switch {
	case s.MaxTrials < 0 || s.MaxTrials > BatchCountMax:
		v.integer("sweep.max_trials", s.MaxTrials, 1, BatchCountMax)
	case size > BatchCountMax && s.MaxTrials == 0:
		v.add("sweep", "job.sweep.size", "job.sweep.size.hint", "count", written, "max", BatchCountMax)
	default:
		v.subjobRanks("sweep", s.Trials(), j.Nodes)
	}
}

// sweepParams checks the parameters of a sweep, each by itself and their names together.
func (v *validator) sweepParams(s *Sweep) bool {
	before := len(v.problems)
	switch {
	case len(s.Params) == 0:
		v.add("sweep", "job.sweep.no_params", "job.sweep.no_params.hint")
	case len(s.Params) > SweepParamsMax:
		v.add("sweep", "job.too_many", "", "what", "param", "count", len(s.Params), "max", SweepParamsMax)
		return false
	}
	variables, size := make(map[string]string, len(s.Params)), 0
	for i := range s.Params {
		p, path := &s.Params[i], IndexedPath("sweep.param", i)
		switch other, taken := variables[ParamEnv(p.Name)]; {
		case !paramNamed(p.Name):
			v.add(path+".name", "job.sweep.name", "job.sweep.name.hint", "name", p.Name, "max", SweepNameMax)
		case taken && other == p.Name:
			v.add(path+".name", "job.duplicate", "", "value", p.Name)
		case taken:
			v.add(path+".name", "job.sweep.variable", "", "name", p.Name, "other", other, "variable", ParamEnv(p.Name))
		}
		variables[ParamEnv(p.Name)] = p.Name
		v.sweepValues(s, p, path)
		for _, value := range p.Values {
			size += len(value)
		}
	}
	if size > SweepValuesSizeMax {
		v.add("sweep", "job.sweep.bytes", "", "size", size, "max", SweepValuesSizeMax)
	}
	return len(v.problems) == before
}

// paramNamed reports whether a name may be that of a parameter: what stands in command
// lines and, in capitals, in a variable.
func paramNamed(name string) bool {
	if name == "" || len(name) > SweepNameMax {
		return false
	}
	for i, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_'
		if !letter && (i == 0 || !(r >= '0' && r <= '9' || r == '.' || r == '-')) {
			return false
		}
	}
	return true
}

// sweepValues checks what a parameter may be.
func (v *validator) sweepValues(s *Sweep, p *SweepParam, path string) {
	var forms []string
	for _, form := range []struct {
		name string
		list []string
	}{{"values", p.Values}, {"int", p.Int}, {"double", p.Double}, {"log", p.Log}} {
		if len(form.list) > 0 {
			forms = append(forms, form.name)
		}
	}
	if len(forms) != 1 {
		v.add(path, "job.sweep.forms", "job.sweep.forms.hint", "name", p.Name, "forms", strings.Join(forms, ", "), "count", len(forms))
		return
	}
	v.integer(path+".count", p.Count, 0, BatchCountMax)
	if len(p.Values) > 0 {
		if p.Count != 0 {
			v.excludes(path+".count", path+".values")
		}
		v.sweepList(p.Values, path+".values")
		return
	}
	at := path + "." + forms[0]
	var low, high float64
	numbers := false
	switch {
	case len(p.Int) > 0:
		first, last, whole := wholeEnds(p.Int)
		low, high, numbers = float64(first), float64(last), whole
	case len(p.Log) > 0:
		low, high, numbers = numberEnds(p.Log)
	default:
		low, high, numbers = numberEnds(p.Double)
	}
	switch {
	case !numbers:
		v.add(at, "job.sweep.range", "job.sweep.range."+forms[0]+".hint", "name", p.Name)
	case len(p.Log) > 0 && low <= 0:
		v.add(at, "job.sweep.log", "job.sweep.log.hint", "name", p.Name)
	case s.Method == SweepGrid && p.points() == 0:
		v.add(at, "job.sweep.points", "job.sweep.points.hint", "name", p.Name)
	case s.Method == SweepGrid && len(p.Int) > 0 && p.Count > 0 && float64(p.Count) > high-low+1:
		v.add(path+".count", "job.sweep.whole", "", "name", p.Name, "count", p.Count, "numbers", int64(high-low)+1)
	}
}

func (v *validator) sweepList(values []string, path string) {
	if len(values) > SweepValuesMax {
		v.add(path, "job.too_many", "", "what", "values", "count", len(values), "max", SweepValuesMax)
		return
	}
	seen := make(map[string]bool, len(values))
	for i, value := range values {
		at := IndexedPath(path, i)
		odd := strings.ContainsFunc(value, func(r rune) bool { return r == '$' || unicode.IsControl(r) || r == unicode.ReplacementChar })
		switch {
		case odd:
			v.add(at, "job.sweep.value", "job.sweep.value.hint", "value", value)
		case len(value) > SweepValueMax:
			v.add(at, "job.sweep.long", "", "size", len(value), "max", SweepValueMax)
		case seen[value]:
			v.add(at, "job.duplicate", "", "value", value)
		}
		seen[value] = true
	}
}

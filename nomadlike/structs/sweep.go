package structs

import (
	"encoding/json"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// Sweep makes a job several trials of one command, each a subjob with its own values of
// parameters. What a trial has is a function of the sweep and its number alone, so that
// an attempt of next week has what that of today had, and nothing of it is stored.
type Sweep struct {
	Method    string       `json:"method"` // one of the Sweep constants
	Params    []SweepParam `json:"params"`
	MaxTrials int          `json:"max_trials,omitempty"` // of a grid 0: all of it
	Parallel  int          `json:"parallel,omitempty"`   // as Batch.Parallel
	Metric    string       `json:"metric,omitempty"`     // what trials are ordered by
	Goal      string       `json:"goal,omitempty"`       // one of the Goal constants
	Seed      int          `json:"seed,omitempty"`       // of what is drawn
	Args      string       `json:"args,omitempty"`       // one of the Args constants; "": the command has nothing added
}

// How a sweep chooses the values of its trials.
const (
	SweepGrid   = "grid"   // each value with each
	SweepRandom = "random" // max_trials drawn from the seed
	SweepASHA   = "asha"   // drawn, and stopped early where others do better
)

// What is better of a metric.
const (
	GoalMinimize = "minimize" // default
	GoalMaximize = "maximize"
)

// How the values of a trial are added to its command.
const (
	ArgsFlags = "flags" // --lr=0.1
	ArgsHydra = "hydra" // lr=0.1
	ArgsJSON  = "json"  // {"lr":0.1}
)

// Bounds of a sweep.
const (
	SweepNameMax       = 64 // bytes of the name of a parameter
	SweepParamsMax     = 32
	SweepValuesMax     = 1000
	SweepValueMax      = 1 << 10  // bytes of one value
	SweepValuesSizeMax = 64 << 10 // bytes of all values
)

// SweepParam is one parameter: a list of values, or a range, whose two ends are numbers.
type SweepParam struct {
	Name   string   `json:"name"`
	Values []string `json:"values,omitempty"` // numbers and truth values as they are written in JSON
	Int    []string `json:"int,omitempty"`    // whole numbers, both ends among them
	Double []string `json:"double,omitempty"` // any number between
	Log    []string `json:"log,omitempty"`    // the same, spread evenly over orders of magnitude
	Count  int      `json:"count,omitempty"`  // of a grid: points of a range, its ends among them
}

// ParamValue is what a trial has of one parameter.
type ParamValue struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Batched reports whether the job is several subjobs under one name.
func (j *Job) Batched() bool { return j.Batch != nil || j.Sweep != nil }

// Parallel is how many subjobs of the job may be placed, or wait for a place, at a time;
// 0: all of them.
func (j *Job) Parallel() int {
	switch {
	case j.Sweep != nil:
		return j.Sweep.Parallel
	case j.Batch != nil:
		return j.Batch.Parallel
	}
	return 0
}

// WithParallel is the job with another bound, sharing the rest with j. Only a job that is
// Batched has one.
func (j *Job) WithParallel(most int) *Job {
	changed := *j
	switch {
	case j.Sweep != nil:
		sweep := *j.Sweep
		sweep.Parallel, changed.Sweep = most, &sweep
	case j.Batch != nil:
		batch := *j.Batch
		batch.Array, _, _ = strings.Cut(batch.Array, "%")
		batch.Parallel, changed.Batch = most, &batch
	}
	return &changed
}

// Trials is how many trials a valid sweep has.
func (s *Sweep) Trials() int {
	if s.Method != SweepGrid {
		return s.MaxTrials
	}
	size, _ := s.Size()
	if s.MaxTrials > 0 {
		size = min(size, uint64(s.MaxTrials))
	}
	return int(min(size, math.MaxInt32))
}

// Size is how many combinations the values of a grid have; false when they cannot be
// counted.
func (s *Sweep) Size() (uint64, bool) {
	size := uint64(1)
	for i := range s.Params {
		over, low := bits.Mul64(size, uint64(max(0, s.Params[i].points())))
		if over != 0 {
			return math.MaxUint64, false
		}
		size = low
	}
	return size, true
}

// points is how many values a grid takes of a parameter.
func (p *SweepParam) points() int {
	switch {
	case len(p.Values) > 0:
		return len(p.Values)
	case p.Count > 0:
		return p.Count
	}
	if low, high, ok := wholeEnds(p.Int); ok && high-low < BatchCountMax {
		return int(high-low) + 1
	}
	return 0
}

// Trial is what the trial of a number has, in the order of the parameters. Of a grid the
// last parameter changes fastest. A number that is none of the sweep has nothing.
func (s *Sweep) Trial(index int) []ParamValue {
	if index < 0 || index >= s.Trials() {
		return nil
	}
	values := make([]ParamValue, len(s.Params))
	left := uint64(index)
	for i := len(s.Params) - 1; i >= 0; i-- {
		p := &s.Params[i]
		values[i].Name = p.Name
		if s.Method != SweepGrid {
			values[i].Value = p.drawn(drawOf(s.Seed, index, i))
			continue
		}
		points := uint64(p.points())
		values[i].Value = p.point(int(left%points), int(points))
		left /= points
	}
	return values
}

// point is the value at a place of a grid.
func (p *SweepParam) point(at, points int) string {
	if len(p.Values) > 0 {
		return p.Values[at]
	}
	share := 0.0
	if points > 1 {
		share = float64(at) / float64(points-1)
	}
	if low, high, ok := wholeEnds(p.Int); ok {
		return strconv.FormatInt(low+int64(math.Round(share*float64(high-low))), 10)
	}
	return p.between(share)
}

// drawn is the value that a share of the whole stands for, in [0, 1).
func (p *SweepParam) drawn(share float64) string {
	if len(p.Values) > 0 {
		return p.Values[int(share*float64(len(p.Values)))]
	}
	if low, high, ok := wholeEnds(p.Int); ok {
		return strconv.FormatInt(low+int64(share*float64(high-low+1)), 10)
	}
	return p.between(share)
}

// sweepDigits are the digits of a number that is drawn or spread: so few that
// processors that round the last bits of a logarithm otherwise agree on them, and that
// people can read a list.
const sweepDigits = 4

// between is the number of a range of doubles at a share of it.
func (p *SweepParam) between(share float64) string {
	if low, high, ok := numberEnds(p.Log); ok && low > 0 {
		return strconv.FormatFloat(math.Exp(math.Log(low)+share*(math.Log(high)-math.Log(low))), 'g', sweepDigits, 64)
	}
	if low, high, ok := numberEnds(p.Double); ok {
		return strconv.FormatFloat(low+share*(high-low), 'g', sweepDigits, 64)
	}
	return ""
}

// wholeEnds reads the ends of a range of whole numbers, which a float64 holds exactly.
func wholeEnds(ends []string) (low, high int64, ok bool) {
	const most = 1 << 53
	if len(ends) != 2 {
		return 0, 0, false
	}
	low, errLow := strconv.ParseInt(ends[0], 10, 64)
	high, errHigh := strconv.ParseInt(ends[1], 10, 64)
	return low, high, errLow == nil && errHigh == nil && low >= -most/2 && high < most/2 && low <= high
}

// numberEnds reads the ends of a range of numbers.
func numberEnds(ends []string) (low, high float64, ok bool) {
	if len(ends) != 2 {
		return 0, 0, false
	}
	low, errLow := strconv.ParseFloat(ends[0], 64)
	high, errHigh := strconv.ParseFloat(ends[1], 64)
	finite := func(x float64) bool { return math.Abs(x) <= math.MaxFloat64/4 } // false for NaN
	return low, high, errLow == nil && errHigh == nil && finite(low) && finite(high) && low <= high
}

// drawOf is a number in [0, 1) for a parameter of a trial: splitmix64, by Steele, Lea and
// Flood, "Fast splittable pseudorandom number generators" (OOPSLA 2014), over the three.
func drawOf(seed, trial, param int) float64 {
	mixed := uint64(seed)
	for _, part := range []int{trial, param} {
		mixed = splitMix(mixed + uint64(part) + 1)
	}
	return float64(splitMix(mixed)>>11) / (1 << 53)
}

func splitMix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// TrialName says the values of a trial in one word for people: lr=0.1,wd=0.01.
func TrialName(values []ParamValue) string {
	parts := make([]string, len(values))
	for i, value := range values {
		parts[i] = value.Name + "=" + value.Value
	}
	return strings.Join(parts, ",")
}

// ParamEnvPrefix begins the variables that hold the values of a trial.
const ParamEnvPrefix = ReservedEnvPrefix + "PARAM_"

// ParamEnv is the variable that holds the value of a parameter.
func ParamEnv(name string) string {
	return ParamEnvPrefix + strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, name)
}

// Variables that ForSubjob sets.
const (
	EnvParams     = ReservedEnvPrefix + "PARAMS"      // the values as one JSON object
	EnvSubjobName = ReservedEnvPrefix + "SUBJOB_NAME" // what people call it
	EnvArrayID    = ReservedEnvPrefix + "ARRAY_ID"    // its number as the array counts
)

// paramsJSON is the values as a JSON object in the order of the parameters. What reads as
// a number or a truth value of JSON is one.
func paramsJSON(values []ParamValue) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, value := range values {
		if i > 0 {
			b.WriteByte(',')
		}
		name, _ := json.Marshal(value.Name)
		b.Write(name)
		b.WriteByte(':')
		if isScalar(value.Value) {
			b.WriteString(value.Value)
			continue
		}
		text, _ := json.Marshal(value.Value)
		b.Write(text)
	}
	b.WriteByte('}')
	return b.String()
}

// isScalar reports whether a text is a number or a truth value of JSON.
func isScalar(text string) bool {
	if text == "true" || text == "false" {
		return true
	}
	return text != "" && strings.ContainsRune("-0123456789", rune(text[0])) && json.Valid([]byte(text))
}

// ForSubjob is the job as one of its subjobs runs it: with the values of its trial, or the
// number of its array, in the environment and the command. Where there is nothing of the
// kind it is the job itself. Nodes get a job this way, so that one which knows no sweeps
// runs a trial as well.
func (j *Job) ForSubjob(index int) *Job {
	switch {
	case j.Sweep != nil:
		return j.ofTrial(index)
	case j.Batch != nil && j.Batch.Array != "":
		one := *j
		one.Batch = &Batch{Count: j.Batch.Count}
		if ids, err := ParseArray(j.Batch.Array); err == nil && index >= 0 && index < len(ids.IDs) {
			one.Task = j.Task.withEnv(map[string]string{EnvArrayID: strconv.Itoa(ids.IDs[index])})
		}
		return &one
	}
	return j
}

func (j *Job) ofTrial(index int) *Job {
	one, values := *j, j.Sweep.Trial(index)
	one.Sweep, one.Batch = nil, &Batch{Count: j.Sweep.Trials()}
	env := map[string]string{EnvParams: paramsJSON(values), EnvSubjobName: TrialName(values)}
	for _, value := range values {
		env[ParamEnv(value.Name)] = value.Value
	}
	one.Task = j.Task.withEnv(env)
	if added := trialArguments(j.Sweep.Args, values); added != "" {
		one.Task.Arguments = strings.TrimPrefix(j.Task.Arguments+" "+added, " ")
	}
	return &one
}

// withEnv is the task with more variables, sharing the rest with t.
func (t Task) withEnv(more map[string]string) Task {
	env := make(map[string]string, len(t.Env)+len(more))
	for _, values := range []map[string]string{t.Env, more} {
		for name, value := range values {
			env[name] = value
		}
	}
	t.Env = env
	return t
}

// trialArguments is what is added to the command of a trial.
func trialArguments(form string, values []ParamValue) string {
	var words []string
	switch form {
	case ArgsFlags, ArgsHydra:
		dashes := map[string]string{ArgsFlags: "--"}[form]
		for _, value := range values {
			words = append(words, plainWord(dashes+value.Name+"="+value.Value))
		}
	case ArgsJSON:
		words = append(words, plainWord(paramsJSON(values)))
	}
	return strings.Join(words, " ")
}

// plainWord quotes a word so that a command has it as it is.
func plainWord(word string) string {
	safe := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_=+.,:/@%", r)
	}
	if !strings.ContainsFunc(word, func(r rune) bool { return !safe(r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Copy returns a sweep that shares nothing with s; nil copies to nil.
func (s *Sweep) Copy() *Sweep {
	if s == nil {
		return nil
	}
	c := *s
	c.Params = slices.Clone(s.Params)
	for i := range c.Params {
		p := &c.Params[i]
		p.Values, p.Int = slices.Clone(p.Values), slices.Clone(p.Int)
		p.Double, p.Log = slices.Clone(p.Double), slices.Clone(p.Log)
	}
	return &c
}

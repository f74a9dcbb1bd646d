package structs

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

func (v *validator) data(j *Job) {
	v.references("algorithm", j.Algorithms)
	v.references("dataset", j.Datasets)
	v.references("model", j.Models)
	v.references("volume", j.Volumes)
	if len(j.Algorithms) > 1 {
		v.add(IndexedPath("algorithm", 1), "job.algorithms", "")
	}
	for i, a := range j.Algorithms {
		at := IndexedPath("algorithm", i)
		v.preparable(at, a)
		v.plainData(at, a)
	}
	for i, d := range j.Datasets {
		at := IndexedPath("dataset", i)
		v.collection(at, d, FromPrivate, FromFavorite)
		if d.Prepare && !d.ReadOnly {
			v.add(at+".prepare", "job.prepare_read_only", "job.prepare_read_only.hint")
		}
	}
	for i, m := range j.Models {
		at := IndexedPath("model", i)
		v.preparable(at, m)
		v.collection(at, m, FromPrivate, FromFavorite, FromPretrained)
		if m.Annotations {
			v.add(at+".annotations", "job.annotations", "")
		}
	}
	for i, volume := range j.Volumes {
		at := IndexedPath("volume", i)
		v.preparable(at, volume)
		v.plainData(at, volume)
		if volume.Version != 0 {
			v.add(at+".version", "job.volume_version", "")
		}
	}
	v.mounts(j.Mounts, j.workspacePlaces())
	if j.Output != "" && v.word("output", j.Output, PathMax) {
		if !belowPath(j.Output) {
			v.add("output", "job.output", "job.output.hint", "value", j.Output)
		}
	}
	if j.OutputStorage != "" {
		v.name("output.storage", j.OutputStorage)
	}
	v.outputKeep(j)
}

// outputKeep checks what the output is to become.
func (v *validator) outputKeep(j *Job) {
	keep := j.OutputKeep
	if keep == nil {
		return
	}
	if j.Output == "" {
		v.add("output", "job.keep_output", "job.keep_output.hint")
	}
	if count := j.SubjobCount(); j.Batched() && count > DataVersionsMax {
		v.add("output.keep.as", "job.keep_batch", "job.keep_batch.hint", "count", count, "max", DataVersionsMax)
	}
	v.choice("output.keep.as", keep.As, false, TakenKinds()...)
	if keep.Name != "" {
		v.name("output.keep.name", keep.Name)
	}
	v.choice("output.keep.when", keep.When, true, KeepOnSuccess, KeepOnCheckpoint)
	if keep.Path != "" && v.word("output.keep.path", keep.Path, PathMax) && !belowPath(keep.Path) {
		v.add("output.keep.path", "job.output", "job.keep_path.hint", "value", keep.Path)
	}
	if keep.Path != "" && keep.When == KeepOnCheckpoint {
		v.excludes("output.keep.path", "output.keep.when")
	}
}

// references checks the named data of one kind.
func (v *validator) references(kind string, refs []DataRef) {
	if len(refs) > DataRefsMax {
		v.add(kind, "job.too_many", "", "what", kind, "count", len(refs), "max", DataRefsMax)
		return
	}
	seen := make(map[string]bool, len(refs))
	for i, ref := range refs {
		at := IndexedPath(kind, i)
		if v.name(at+".name", ref.Name) && seen[ref.Name] {
			v.add(at+".name", "job.duplicate", "", "value", ref.Name)
		}
		seen[ref.Name] = true
		if ref.Storage != "" {
			v.name(at+".storage", ref.Storage)
		}
		v.integer(at+".version", ref.Version, 0, versionMax)
		v.source(at, ref)
		v.named(at, kind, ref)
	}
}

const versionMax = 1 << 30

// named checks what only named data has.
func (v *validator) named(at, kind string, ref DataRef) {
	can := slices.Contains(DataKinds(), kind)
	for _, of := range []struct{ path, value string }{{at + ".project", ref.Project}, {at + ".tag", ref.Tag}} {
		if of.value != "" && !can {
			v.add(of.path, "job.data_unnamed", "job.data_unnamed.hint", "kind", kind)
		}
	}
	if ref.Project != "" && can {
		v.name(at+".project", ref.Project)
	}
	if id := DataTagProblem(ref.Tag); ref.Tag != "" && can && id != "" {
		v.add(at+".tag", id, "", "name", printable(ref.Tag), "max", NameLengthMax)
	}
}

// source checks where below a storage data lies, and the digest of one file.
func (v *validator) source(at string, ref DataRef) {
	if ref.Source != "" && v.word(at+".source", ref.Source, PathMax) && !belowPath(strings.TrimSuffix(ref.Source, "/")) {
		v.add(at+".source", "job.mount_below", "", "value", ref.Source)
	}
	if ref.SHA256 == "" {
		return
	}
	if sum, err := hex.DecodeString(ref.SHA256); err != nil || len(sum) != sha256.Size {
		v.add(at+".sha256", "job.sha256", "", "value", ref.SHA256)
	} else if ref.Source == "" || strings.HasSuffix(ref.Source, "/") {
		v.add(at+".sha256", "job.sha256_alone", "job.sha256_alone.hint")
	}
}

// preparable refuses prepare for what is never copied to fast local storage.
func (v *validator) preparable(at string, ref DataRef) {
	if ref.Prepare {
		v.add(at+".prepare", "job.prepare", "")
	}
}

// collection checks where a dataset or model is taken from. Of a favourite
// one version is meant.
func (v *validator) collection(at string, ref DataRef, collections ...string) {
	v.choice(at+".from", ref.From, true, collections...)
	if ref.From == FromFavorite && ref.Version == 0 {
		v.add(at+".version", "job.favorite_version", "", "name", ref.Name)
	}
}

// plainData refuses what only datasets and models have.
func (v *validator) plainData(at string, ref DataRef) {
	if ref.From != "" {
		v.add(at+".from", "job.from", "")
	}
	if ref.Annotations {
		v.add(at+".annotations", "job.annotations", "")
	}
}

// workspacePlaces are the places of the task at which it finds what the job
// names, and the kind of each.
func (j *Job) workspacePlaces() map[string]string {
	places := make(map[string]string)
	if len(j.Algorithms) > 0 {
		places[WorkspaceDir+"/algorithm"] = "algorithm"
	}
	collected := func(kind string, refs []DataRef) {
		for _, ref := range refs {
			at := path.Join(WorkspaceDir, kind, cmp.Or(ref.From, FromPrivate), ref.Name)
			if ref.From == FromFavorite {
				at = path.Join(at, strconv.Itoa(ref.Version))
			}
			places[at] = kind
			if ref.Annotations {
				places[path.Join(WorkspaceDir, "anno_dataset", ref.Name, "annotation")] = "annotations"
			}
		}
	}
	collected("dataset", j.Datasets)
	collected("model", j.Models)
	for _, volume := range j.Volumes {
		places[path.Join(WorkspaceDir, "volume", volume.Name)] = "volume"
	}
	if j.Output != "" {
		places[WorkspaceDir+"/outputs"] = "output"
	}
	return places
}

// mounts checks mounts, which take none of the places that something else has.
func (v *validator) mounts(mounts []Mount, taken map[string]string) {
	if len(mounts) > DataRefsMax {
		v.add("mount", "job.too_many", "", "what", "mount", "count", len(mounts), "max", DataRefsMax)
		return
	}
	targets := make(map[string]bool, len(mounts))
	for i, m := range mounts {
		at := IndexedPath("mount", i)
		v.mountSource(at, m)
		if !v.directory(at+".target", m.Target) {
			continue
		}
		target := path.Clean(m.Target)
		switch {
		case target == "/" || slices.ContainsFunc([]string{"/proc", "/sys", "/dev"}, func(dir string) bool {
			return target == dir || strings.HasPrefix(target, dir+"/")
		}):
			v.add(at+".target", "job.mount_target", "", "value", m.Target)
		case targets[target]:
			v.add(at+".target", "job.duplicate", "", "value", m.Target)
		case taken[target] != "":
			v.add(at+".target", "job.mount_workspace", "job.mount_workspace.hint", "value", m.Target, "what", taken[target])
		}
		targets[target] = true
	}
}

// mountSource checks an absolute path of the node, or one below a storage.
func (v *validator) mountSource(at string, m Mount) {
	if m.Storage == "" {
		v.directory(at+".source", m.Source)
		return
	}
	v.name(at+".storage", m.Storage)
	if m.Source != "" && v.word(at+".source", m.Source, PathMax) && !belowPath(m.Source) {
		v.add(at+".source", "job.mount_below", "", "value", m.Source)
	}
}

// WorkspaceDir is where a task finds its data.
const WorkspaceDir = "/workspace"

// belowPath reports whether a path stays below whatever it is added to.
func belowPath(p string) bool {
	return !path.IsAbs(p) && path.Clean(p) == p && p != "." && p != ".." && !strings.HasPrefix(p, "../")
}

// recovery checks what happens after faults.
// saveSignals are those that a program may be told with to save its work.
func saveSignals() []string {
	return []string{"SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2"}
}

func (v *validator) recovery(j *Job) {
	if w := j.LimitWarning; w != nil {
		v.span("time_limit.warn", w.Before, Duration(time.Second), SpanMax)
		v.choice("time_limit.signal", w.Signal, false, saveSignals()...)
		if j.TimeLimit > 0 && w.Before >= j.TimeLimit {
			v.add("time_limit.warn", "job.limit_warning", "", "warn", FormatDuration(w.Before), "limit", FormatDuration(j.TimeLimit))
		}
	}
	if r := j.Restart; r != nil {
		v.integer("restart.max_restarts", r.MaxRestarts, 0, RestartsMax)
		v.span("restart.delay", r.Delay, 0, GraceMax)
		if j.Checkpoint != nil {
			v.excludes("restart", "checkpoint")
		}
	}
	c := j.Checkpoint
	if c == nil {
		return
	}
	v.integer("checkpoint.max_resumes", c.MaxResumes, 0, RestartsMax)
	v.choice("checkpoint.signal", c.Signal, false, saveSignals()...)
	v.span("checkpoint.grace", c.Grace, 0, GraceMax)
	v.watched(c)
	if p := c.Performance; p != nil {
		const thresholdMax = 1e6
		if !finite(p.Threshold) || p.Threshold <= 0 || p.Threshold > thresholdMax {
			v.add("checkpoint.performance.threshold", "job.range", "", "value", p.Threshold, "min", "0", "max", thresholdMax)
		}
		v.choice("checkpoint.performance.action", p.Action, false, WatchAlert, WatchReschedule)
		v.choice("checkpoint.performance.compare", p.Compare, false, "gt", "lt")
		v.integer("checkpoint.performance.times", p.Times, 1, WatchTimesMax)
		v.logPattern("checkpoint.performance.pattern", p.Pattern, 1, 2)
	}
}

// hang checks the hang watch.
func (v *validator) hang(h *Hang) {
	if h == nil {
		return
	}
	v.choice("hang.action", h.Action, false, WatchAlert, WatchReschedule)
	if !finite(h.Factor) || h.Factor < 1 || h.Factor > HangFactorMax {
		v.add("hang.factor", "job.range", "", "value", h.Factor, "min", "1", "max", HangFactorMax)
	}
	v.span("hang.least", h.Least, HangMin, HangMax)
	v.span("hang.most", h.Most, max(HangMin, min(h.Least, HangMax)), HangMax)
	v.logPattern("hang.pattern", h.Pattern, 1, 1)
}

// logPattern checks a regular expression over lines of a log that has to have
// between least and most groups; "" is the default of its field.
func (v *validator) logPattern(at, pattern string, least, most int) {
	if pattern == "" {
		return
	}
	if !v.word(at, pattern, patternLengthMax) {
		return
	}
	compiled, err := regexp.Compile(pattern)
	switch {
	case err != nil:
		v.add(at, "job.log_pattern", "", "value", pattern, "cause", err.Error())
	case compiled.NumSubexp() < least || compiled.NumSubexp() > most:
		v.add(at, "job.log_pattern_groups", "job.log_pattern_groups.hint", "value", pattern, "count", compiled.NumSubexp(), "max", most)
	}
}

// watched checks the directory in which checkpoints appear.
func (v *validator) watched(c *Checkpoint) {
	if c.Dir != "" {
		v.directory("checkpoint.dir", c.Dir)
	}
	if c.Pattern == "" {
		return
	}
	if c.Dir == "" {
		v.add("checkpoint.pattern", "job.pattern_alone", "")
	}
	if _, err := path.Match(c.Pattern, ""); err != nil || strings.Contains(c.Pattern, "/") || len(c.Pattern) > patternLengthMax {
		v.add("checkpoint.pattern", "job.pattern", "", "value", c.Pattern)
	}
}

// patternLengthMax bounds patterns, in bytes.
const patternLengthMax = 256

// interactive checks what people use while a job runs.
func (v *validator) interactive(j *Job) {
	v.jobNotify("notify", j.Notify)
	if j.Debug != nil {
		v.span("debug.hold", j.Debug.Hold, Duration(time.Second), HoldMax)
	}
	if j.Tensorboard != nil {
		v.directory("tensorboard.logdir", j.Tensorboard.LogDir)
	}
	if j.Metrics != nil {
		v.metrics(j.Metrics)
	}
}

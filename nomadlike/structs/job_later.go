package structs

import (
	"strconv"
	"strings"
)

// What stands in the paths of a job for what is known only when it is submitted
// or, of the attempt, when it starts.
const (
	LaterName    = "${job.name}"
	LaterID      = "${job.id}"
	LaterShortID = "${job.short_id}"
	LaterAttempt = "${attempt}"
)

// ShortIDLength is how much of a job's id ${job.short_id} is.
const ShortIDLength = 8

// NameWithEnding is a name with a hyphen and an ending behind it, as much of it as
// leaves the whole a legal length.
func NameWithEnding(name, ending string) string {
	room := max(0, NameLengthMax-len(ending)-1)
	return strings.TrimRight(name[:min(len(name), room)], "-") + "-" + ending
}

// laterPaths are the fields that may hold such names.
func (j *Job) laterPaths() []*string {
	paths := []*string{&j.Output, &j.Task.Dir}
	for i := range j.Mounts {
		paths = append(paths, &j.Mounts[i].Target, &j.Mounts[i].Source)
	}
	if j.Checkpoint != nil {
		paths = append(paths, &j.Checkpoint.Dir)
	}
	if j.Tensorboard != nil {
		paths = append(paths, &j.Tensorboard.LogDir)
	}
	if j.Metrics != nil {
		paths = append(paths, &j.Metrics.Events)
	}
	return paths
}

// FillPaths puts the job's name and id into its paths, and reports whether one
// named them. The server that admits a job calls it, once the id is fixed.
func (j *Job) FillPaths() bool {
	return j.fill(strings.NewReplacer(LaterName, j.Name, LaterID, j.ID,
		LaterShortID, j.ID[:min(len(j.ID), ShortIDLength)]))
}

// OfAttempt is the job with the number of an attempt in its paths: itself where
// none names it, else a copy. The node calls it.
func (j *Job) OfAttempt(attempt uint64) *Job {
	if j == nil {
		return nil
	}
	named := false
	for _, path := range j.laterPaths() {
		named = named || strings.Contains(*path, LaterAttempt)
	}
	if !named {
		return j
	}
	c := j.Copy()
	c.fill(strings.NewReplacer(LaterAttempt, strconv.FormatUint(attempt, 10)))
	return c
}

func (j *Job) fill(with *strings.Replacer) bool {
	filled := false
	for _, path := range j.laterPaths() {
		was := *path
		*path = with.Replace(was)
		filled = filled || *path != was
	}
	return filled
}

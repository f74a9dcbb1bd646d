package structs

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of what people write on a job: its tags and its note.
const (
	TagsMax      = 16   // of one job
	TagLengthMax = 40   // characters
	NoteMax      = 1000 // characters
)

// JobAnnotate changes the tags and the note of a job, whatever its state. Nothing
// that runs is touched: they are for people, and for whoever searches.
type JobAnnotate struct {
	JobID  string   `json:"job_id"`
	Add    []string `json:"add,omitempty"`    // tags; those that the job has are left alone
	Remove []string `json:"remove,omitempty"` // tags; those that the job does not have are left alone
	Note   *string  `json:"note,omitempty"`   // nil: as it was; "": none
}

// TagProblem reports why a text may not be a tag, as the message id of the reason, or
// "" when it may: letters and digits of any script, and . _ - / : = @ + # between
// them. A tag begins with a letter or a digit, so that +TAG and -TAG can say what
// becomes of it, and holds no space and no comma, which separate tags.
func TagProblem(tag string) string {
	if tag == "" {
		return "tag.empty"
	}
	if !utf8.ValidString(tag) {
		return "tag.characters"
	}
	if utf8.RuneCountInString(tag) > TagLengthMax {
		return "tag.too_long"
	}
	for i, c := range tag {
		word := unicode.IsLetter(c) || unicode.IsDigit(c) || unicode.IsMark(c) && i > 0
		switch {
		case word:
		case i == 0:
			return "tag.first"
		case !strings.ContainsRune("._-/:=@+#", c):
			return "tag.characters"
		}
	}
	return ""
}

// NoteProblem reports why a text may not be a note, as the message id of the reason,
// or "" when it may. A note has lines and no other control characters.
func NoteProblem(note string) string {
	switch {
	case !utf8.ValidString(note), strings.ContainsFunc(note, func(c rune) bool { return unicode.IsControl(c) && c != '\n' }):
		return "note.characters"
	case utf8.RuneCountInString(note) > NoteMax:
		return "note.too_long"
	}
	return ""
}

// Problem is what is wrong with the texts of a change, nil for nothing. That the job
// has too many tags after it only the state can tell.
func (c *JobAnnotate) Problem() *Error {
	for _, tag := range slices.Concat(c.Add, c.Remove) {
		if id := TagProblem(tag); id != "" {
			return NewError(CodeInvalid, id, "value", printable(tag), "max", TagLengthMax)
		}
	}
	if len(c.Add) > TagsMax || len(c.Remove) > TagsMax {
		return NewError(CodeInvalid, "tag.many", "count", max(len(c.Add), len(c.Remove)), "max", TagsMax)
	}
	for _, tag := range c.Add {
		if slices.Contains(c.Remove, tag) {
			return NewError(CodeInvalid, "tag.both", "value", printable(tag))
		}
	}
	if c.Note != nil {
		if id := NoteProblem(*c.Note); id != "" {
			return NewError(CodeInvalid, id, "max", NoteMax)
		}
	}
	return nil
}

// Tags returns the tags of a job after the change: those that it had in their
// order, then the new ones.
func (c *JobAnnotate) Tags(before []string) []string {
	var after []string
	for _, tag := range slices.Concat(before, c.Add) {
		if !slices.Contains(c.Remove, tag) && !slices.Contains(after, tag) {
			after = append(after, tag)
		}
	}
	return after
}

// HasTags reports whether the job has all of some tags, in capitals or not.
func (j *Job) HasTags(tags ...string) bool {
	for _, wanted := range tags {
		if !slices.ContainsFunc(j.Tags, func(tag string) bool { return strings.EqualFold(tag, wanted) }) {
			return false
		}
	}
	return true
}

// annotations checks the tags and the note of a job file.
func (v *validator) annotations(j *Job) {
	if len(j.Tags) > TagsMax {
		v.add("tags", "job.too_many", "", "what", "tags", "count", len(j.Tags), "max", TagsMax)
		return
	}
	for i, tag := range j.Tags {
		at := IndexedPath("tags", i)
		if id := TagProblem(tag); id != "" {
			v.add(at, id, "", "value", tag, "max", TagLengthMax)
		} else if slices.Contains(j.Tags[:i], tag) {
			v.add(at, "job.duplicate", "", "value", tag)
		}
	}
	if id := NoteProblem(j.Note); id != "" {
		v.add("note", id, "", "max", NoteMax)
	}
}

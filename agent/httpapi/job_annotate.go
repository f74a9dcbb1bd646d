package httpapi

import (
	"slices"
	"strings"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/structs"
)

// annotate answers jobs.annotate.
func (h *jobHandlers) annotate(r *front.Request, job *structs.Job, body *api.JobAnnotateRequest) (*api.JobAnnotations, error) {
	command := structs.JobAnnotate{JobID: job.ID, Add: body.Add, Remove: body.Remove, Note: body.Note}
	if problem := command.Problem(); problem != nil {
		return nil, problem
	}
	changed, err := h.change(r, structs.CommandJobAnnotate, command)
	if err != nil {
		return nil, err
	}
	view, ok := h.store.Snapshot().Job(job.ID)
	if !ok {
		return nil, auth.NotFound(auth.ObjectJob, job.ID)
	}
	return &api.JobAnnotations{JobID: job.ID, Index: changed.Index, Tags: slices.Concat([]string{}, view.Job.Tags), Note: view.Job.Note}, nil
}

// noteShown is the beginning of a note, for lists.
func noteShown(note string) string {
	if len(note) <= api.NoteShownMax {
		return note
	}
	shown := []rune(note)
	if len(shown) <= api.NoteShownMax {
		return note
	}
	return string(shown[:api.NoteShownMax-1]) + "…"
}

// wordFields are what a word of a search that begins with such a name and a colon is
// compared with, whole and in capitals or not. The list of jobs on the page knows the
// same words.
func wordFields(job *structs.Job) map[string][]string {
	return map[string][]string{
		"tag": job.Tags, "user": {job.User}, "project": {job.Project}, "pool": {job.Placement.Pool},
		"code": codeOf(job), "card": specsOf(job),
	}
}

// search is what a list of jobs is searched for.
type search struct {
	tags  []string    // the job has all of them
	said  [][2]string // names of wordFields, and what the job has there
	words []string    // in small letters; each is found in the job
}

// searchOf reads tags that commas separate, and words that blanks separate, of which
// some may name a field.
func searchOf(tags, text string) search {
	var s search
	for tag := range strings.SplitSeq(tags, ",") {
		if tag = strings.TrimSpace(tag); tag != "" {
			s.tags = append(s.tags, tag)
		}
	}
	known := wordFields(&structs.Job{})
	for word := range strings.FieldsSeq(strings.ToLower(text)) {
		name, value, _ := strings.Cut(word, ":")
		if _, ok := known[name]; !ok || name == word {
			s.words = append(s.words, word)
		} else if value != "" {
			s.said = append(s.said, [2]string{name, value})
		}
	}
	return s
}

// finds reports whether a job is one of those that are searched for.
func (s search) finds(job *structs.Job) bool {
	if !job.HasTags(s.tags...) {
		return false
	}
	if len(s.said) > 0 {
		fields := wordFields(job)
		for _, said := range s.said {
			if !slices.ContainsFunc(fields[said[0]], func(value string) bool { return strings.EqualFold(value, said[1]) }) {
				return false
			}
		}
	}
	for _, word := range s.words {
		if !strings.HasPrefix(job.ID, word) && !holds(job.Name, word) && !holds(job.Note, word) && !slices.ContainsFunc(job.Tags, func(tag string) bool { return holds(tag, word) }) {
			return false
		}
	}
	return true
}

// holds reports whether a text holds a word that is in small letters.
func holds(text, word string) bool { return strings.Contains(strings.ToLower(text), word) }

package state

import (
	"slices"
	"strings"

	"nomadlike/nomadlike/structs"
)

// noteTold is how much of a note its event repeats, in characters.
const noteTold = 120

// applyJobAnnotate changes the tags and the note of a job, also of one that has
// ended. What the job does is not touched, and neither is its place in the queue.
func applyJobAnnotate(tx *txn, body *structs.JobAnnotate) (structs.ApplyResult, *structs.Error) {
	job, ok := tx.job(body.JobID)
	if !ok {
		return refuse(structs.CodeNotFound, "state.job_unknown", "job", body.JobID)
	}
	if problem := annotationProblem(body); problem != "" {
		return refuse(structs.CodeInvalid, "state.job_malformed", "field", problem)
	}
	changed := *job
	changed.Tags = body.Tags(job.Tags)
	if len(changed.Tags) > structs.TagsMax {
		return refuse(structs.CodeConflict, "tag.many", "count", len(changed.Tags), "max", structs.TagsMax)
	}
	if body.Note != nil {
		changed.Note = *body.Note
	}
	retagged := !slices.Equal(job.Tags, changed.Tags)
	if !retagged && changed.Note == job.Note {
		return structs.ApplyResult{JobID: job.ID}, nil
	}
	tx.changeJob(&changed)
	if retagged {
		tx.tell(jobEvent("event.job.tags", &changed, nil), "job", job.Name, "by", tx.by, "changes", tagChanges(job.Tags, changed.Tags))
	}
	switch changed.Note {
	case job.Note: // as it was
	case "":
		tx.tell(jobEvent("event.job.note_removed", &changed, nil), "job", job.Name, "by", tx.by)
	default:
		tx.tell(jobEvent("event.job.note", &changed, nil), "job", job.Name, "by", tx.by, "note", shortened(changed.Note, noteTold))
	}
	return structs.ApplyResult{JobID: job.ID}, nil
}

// tagChanges spells what became of tags as the command line takes it: "+new -old".
func tagChanges(before, after []string) string {
	var parts []string
	for _, tag := range after {
		if !slices.Contains(before, tag) {
			parts = append(parts, "+"+tag)
		}
	}
	for _, tag := range before {
		if !slices.Contains(after, tag) {
			parts = append(parts, "-"+tag)
		}
	}
	return strings.Join(parts, " ")
}

// shortened is the beginning of a text, in one line.
func shortened(text string, most int) string {
	line := []rune(strings.ReplaceAll(text, "\n", " "))
	if len(line) > most {
		line = append(line[:most-1], '…')
	}
	return string(line)
}

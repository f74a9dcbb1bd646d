package jobspec

import (
	"maps"
	"sort"
	"strconv"

	"nomadlike/internal/messages"
	"nomadlike/nomadlike/structs"
)

// Severity reports whether a diagnostic keeps the job from being used.
type Severity string

// The severities.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// Diagnostic is one problem of a job file: what is wrong (ID and Params name
// a text of the message catalogue), how to mend it (HintID, "" when nothing
// better can be said than the text), and where.
type Diagnostic struct {
	Severity Severity          `json:"severity"`
	ID       string            `json:"id"`
	Params   map[string]string `json:"params,omitempty"`
	HintID   string            `json:"hint_id,omitempty"`
	Path     string            `json:"path,omitempty"` // field in the words of the job file, when there is one
	Range    Range             `json:"range"`
	Context  string            `json:"context,omitempty"` // the blocks around it: job "digits" > task
	Snippet  Snippet           `json:"snippet"`
}

// Text is what is wrong, in language.
func (d *Diagnostic) Text(language messages.Language) string {
	return messages.Text(language, d.ID, d.Params)
}

// Hint is how to mend it, in language; "" when there is no hint.
func (d *Diagnostic) Hint(language messages.Language) string {
	if d.HintID == "" {
		return ""
	}
	return messages.Text(language, d.HintID, d.Params)
}

// Diagnostics are the problems of one job file in the order of their places.
type Diagnostics []*Diagnostic

// HasErrors reports whether any of them is more than a warning.
func (d Diagnostics) HasErrors() bool {
	return d.Count(SeverityError) > 0
}

// Count is the number of diagnostics of one severity.
func (d Diagnostics) Count(severity Severity) int {
	n := 0
	for _, one := range d {
		if one.Severity == severity {
			n++
		}
	}
	return n
}

// Err gathers the errors as the one error that the API answers with, or nil
// when there are only warnings. Each detail carries, besides the parameters of
// its text: path, file, line, column, end_line, end_column, snippet, context
// and hint_id, those that are known.
func (d Diagnostics) Err() *structs.Error {
	errors := d.Count(SeverityError)
	if errors == 0 {
		return nil
	}
	e := structs.NewError(structs.CodeInvalid, "jobspec.invalid", "count", errors)
	for _, one := range d {
		if one.Severity == SeverityError {
			e.Details = append(e.Details, one.detail())
		}
	}
	return e
}

func (d *Diagnostic) detail() structs.Error {
	params := maps.Clone(d.Params)
	if params == nil {
		params = make(map[string]string)
	}
	set := func(name, value string) {
		if value != "" {
			params[name] = value
		}
	}
	set("path", d.Path)
	set("hint_id", d.HintID)
	set("context", d.Context)
	set("file", d.Range.File)
	if d.Range.Start.Line > 0 {
		set("line", strconv.Itoa(d.Range.Start.Line))
		set("column", strconv.Itoa(d.Range.Start.Column))
		set("end_line", strconv.Itoa(d.Range.End.Line))
		set("end_column", strconv.Itoa(d.Range.End.Column))
		set("snippet", d.Snippet.Text)
	}
	return structs.Error{
		Code: structs.CodeInvalid, ID: d.ID, Params: params,
		Message: d.Text(messages.English), Hint: d.Hint(messages.English),
	}
}

// sorted orders diagnostics by place, says each thing about a place once, and
// cuts the list at limit, with a last entry that counts the rest; dropped were
// not even listed.
func (d Diagnostics) sorted(limit, dropped int) Diagnostics {
	sort.SliceStable(d, func(i, k int) bool {
		a, b := d[i], d[k]
		if (a.Range.Start.Line > 0) != (b.Range.Start.Line > 0) {
			return b.Range.Start.Line > 0 // flags first: they have no lines
		}
		if a.Range.File != b.Range.File {
			return a.Range.File < b.Range.File
		}
		return a.Range.Start.Byte < b.Range.Start.Byte
	})
	failed := d.HasErrors()
	type place struct {
		id, path, text, file string
		at                   int
	}
	seen := make(map[place]bool, len(d))
	kept := d[:0]
	for _, one := range d {
		key := place{one.ID, one.Path, one.Text(messages.English), one.Range.File, one.Range.Start.Byte}
		if !seen[key] {
			seen[key] = true
			kept = append(kept, one)
		}
	}
	rest := dropped + max(0, len(kept)-limit)
	if rest == 0 {
		return kept
	}
	severity := SeverityWarning
	if failed {
		severity = SeverityError
	}
	return append(kept[:min(limit, len(kept)):min(limit, len(kept))], &Diagnostic{
		Severity: severity, ID: "jobspec.more", Params: map[string]string{"count": strconv.Itoa(rest)},
	})
}

package trace

import (
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"nomadlike/nomadlike/structs"
)

// Columns lists the columns of the CSV form in their usual order. A file may
// have them in any order; those of columnsNeeded may not be missing.
func Columns() []string {
	return []string{"job_id", "user", "group", "submit_s", "start_s", "duration_s", "gpus", "nodes", "cpus", "time_limit_s", "state", "name"}
}

func columnsNeeded() []string { return []string{"job_id", "submit_s", "duration_s", "gpus"} }

// readCSV reads a header and a job from every further line. Columns that are
// not known are passed over, unless they look like a known one that is
// missing: then somebody slipped.
func readCSV(name string, from io.Reader) (*Trace, error) {
	reader := csv.NewReader(from)
	reader.ReuseRecord = true
	reader.FieldsPerRecord = -1
	header, err := reader.Read()
	if errors.Is(err, io.EOF) {
		return &Trace{}, nil
	}
	if err != nil {
		return nil, csvProblem(name, err)
	}
	width := len(header)
	columns, err := columnsOf(place{name, 1}, header)
	if err != nil {
		return nil, err
	}
	t, kept := &Trace{}, words{}
	for {
		record, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil {
			return nil, csvProblem(name, err)
		}
		line, _ := reader.FieldPos(0)
		at := place{name, line}
		if len(record) != width {
			return nil, at.problem("sim.trace.fields", "found", len(record), "want", width)
		}
		if len(t.Jobs) == JobsMax {
			return nil, at.problem("sim.trace.too_many", "max", JobsMax)
		}
		job, err := csvJob(at, columns, record, kept)
		if err != nil {
			return nil, err
		}
		t.Jobs = append(t.Jobs, job)
	}
}

// csvProblem says in catalogue words what the CSV reader found.
func csvProblem(name string, err error) error {
	var wrong *csv.ParseError
	if errors.As(err, &wrong) {
		return place{name, wrong.Line}.problem("sim.trace.quotes", "column", wrong.Column)
	}
	return unreadable(name, err)
}

// columnsOf returns the place of each known column in the header.
func columnsOf(at place, header []string) (map[string]int, error) {
	columns := make(map[string]int, len(header))
	var strange []string
	for i, name := range header {
		if i == 0 {
			name = strings.TrimPrefix(name, "\ufeff")
		}
		name = strings.ToLower(strings.TrimSpace(name))
		if _, twice := columns[name]; twice {
			return nil, at.problem("sim.trace.column_twice", "column", shown(name))
		}
		if slices.Contains(Columns(), name) {
			columns[name] = i
		} else {
			strange = append(strange, name)
		}
	}
	var missing []string
	for _, name := range Columns() {
		if _, ok := columns[name]; !ok {
			missing = append(missing, name)
		}
	}
	for _, name := range strange {
		if near := structs.Nearest(name, missing); near != "" {
			return nil, at.problem("sim.trace.column_near", "column", shown(name), "near", near)
		}
	}
	for _, name := range columnsNeeded() {
		if slices.Contains(missing, name) {
			return nil, at.problem("sim.trace.column_missing", "column", name, "known", strings.Join(Columns(), ","))
		}
	}
	return columns, nil
}

// csvJob reads one line.
func csvJob(at place, columns map[string]int, record []string, kept words) (Job, error) {
	var first error
	text := func(column string) string {
		i, ok := columns[column]
		if !ok {
			return ""
		}
		value := strings.TrimSpace(record[i])
		switch {
		case first != nil:
		case len(value) > fieldMax:
			first = at.problem("sim.trace.too_long", "column", column, "max", fieldMax)
		case !utf8.ValidString(value):
			first = at.problem("sim.trace.utf8", "column", column)
		}
		return value
	}
	seconds := func(column string, blank time.Duration) time.Duration {
		value := text(column)
		if value == "" || first != nil {
			return blank
		}
		span, err := at.seconds(column, value)
		first = err
		return span
	}
	count := func(column string, read func(string, string) (int, error)) int {
		value := text(column)
		if value == "" || first != nil {
			return 0
		}
		n, err := read(column, value)
		first = err
		return n
	}
	whole := func(column, value string) (int, error) { return at.number(column, value, GPUsMax) }
	job := Job{
		ID: strings.Clone(text("job_id")), User: kept.keep(text("user")), Group: kept.keep(text("group")),
		Name: kept.keep(text("name")), State: kept.keep(text("state")),
		Submit: seconds("submit_s", -1), Start: seconds("start_s", -1), Duration: seconds("duration_s", -1),
		Limit: seconds("time_limit_s", 0), GPUs: count("gpus", at.share), Nodes: count("nodes", whole), CPUs: count("cpus", at.share),
	}
	switch {
	case first != nil:
		return Job{}, first
	case job.ID == "":
		return Job{}, at.problem("sim.trace.blank", "column", "job_id")
	case job.Submit < 0:
		return Job{}, at.problem("sim.trace.blank", "column", "submit_s")
	}
	return job, nil
}

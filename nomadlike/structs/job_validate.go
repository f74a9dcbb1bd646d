package structs

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of one job. They keep a hostile or mistaken job from costing more
// than its own refusal: sums over a whole job stay far inside 63 bits.
const (
	NodesMax        = 10_000   // compute nodes of one attempt
	BatchCountMax   = 10_000   // sub-jobs of one batch
	JobRanksMax     = 100_000  // nodes times sub-jobs of one job
	AlternativesMax = 16       // resources blocks
	CPUMin          = 0.01     // cores
	CPUMax          = 4096.0   // cores of one node
	MemoryMin       = 1 * MiB  // bytes
	MemoryMax       = 64 * TiB // bytes of one node
	DiskMin         = 1 * MiB  // bytes that a rank may write
	DiskMax         = 1024 * TiB
	SKUMax          = 1024                                // units of a pool's SKU on one node
	DevicesMax      = 8                                   // device blocks of one spec
	DeviceCountMax  = 1024                                // devices of one kind on one node
	PortsMax        = 64                                  // ports of one spec
	PortMax         = 65535                               // the largest TCP port
	ProcsMax        = 1024                                // processes on one node
	NamedNodesMax   = NodesMax                            // entries of placement.nodes
	RestartsMax     = 1000                                // max_restarts and max_resumes
	SpanMax         = Duration(10 * 365 * 24 * time.Hour) // time_limit, expected_runtime
	GraceMax        = Duration(24 * time.Hour)            // stop_grace, checkpoint.grace, restart.delay
	HoldMax         = Duration(30 * 24 * time.Hour)       // debug.hold
	DescriptionMax  = 4 << 10                             // bytes
	CommandMax      = 128<<10 - 1                         // bytes: Linux refuses longer single arguments
	WordMax         = 256                                 // bytes of short texts: image, user, label, path parts
	PathMax         = 4095                                // bytes of a path
	EnvMax          = 1024                                // variables of one task
	EnvValueMax     = 128<<10 - 1                         // bytes of one value
	EnvSizeMax      = 512 << 10                           // bytes of all names and values
	MetaMax         = 64                                  // entries
	MetaValueMax    = 4 << 10                             // bytes
	HooksMax        = 16                                  // lifecycle scripts
	DataRefsMax     = 64                                  // datasets, models, algorithms, volumes, mounts: of each
	LogFileMin      = 64 * KiB                            // bytes of one log file
	LogFileMax      = 16 * GiB                            // bytes of one log file
	LogFilesMax     = 100                                 // rotated files that are kept
	ProblemsMax     = 256                                 // problems listed of one job
	SourceMax       = 1 << 20                             // bytes of a job file
	SourceKeptMax   = 64 << 10                            // of one that is kept with its job, for people to read
)

// Problem is one thing that keeps a job from being accepted. ID and HintID
// name texts of the message catalogue, both filled by Params, which always
// hold "path".
type Problem struct {
	Path   string            `json:"path"` // field in the words of the job file: "task.command", "resources[1].device[0].count"
	ID     string            `json:"id"`
	Params map[string]string `json:"params,omitempty"`
	HintID string            `json:"hint_id,omitempty"`
}

// InvalidJob gathers problems as the one error that a caller gets, or nil when
// there are none; code is CodeInvalid for those of Validate, CodeNotAvailable
// for those of NotAvailable.
func InvalidJob(code ErrorCode, problems []Problem) *Error {
	if len(problems) == 0 {
		return nil
	}
	e := NewError(code, "job."+string(code), "count", len(problems))
	for _, p := range problems {
		params := maps.Clone(p.Params)
		if p.HintID != "" {
			params["hint_id"] = p.HintID
		}
		e.Details = append(e.Details, Error{Code: code, ID: p.ID, Params: params})
	}
	return e
}

// Validate lists everything that is wrong with a job, in the order of the job
// file; an empty list means that it may be admitted. SetDefaults comes first:
// a field that is still empty here is missing. Pure.
func (j *Job) Validate() []Problem {
	v := &validator{mode: j.Distributed.Mode}
	v.general(j)
	v.start(j)
	v.batch(j)
	v.sweep(j)
	v.distributed(j)
	v.resources(j)
	v.placement(j)
	v.vip(j)
	v.task(j)
	v.data(j)
	v.workdir(j.Workdir)
	v.recovery(j)
	v.hang(j.Hang)
	v.elastic(j)
	v.interactive(j)
	v.meta(j)
	v.annotations(j)
	return v.problems
}

// validator collects problems; its methods check one part of a job each.
type validator struct {
	mode     Mode // of the job, for the names that it reserves
	problems []Problem
}

// add notes a problem at path; params are pairs of name and value. The hint,
// if any, is the text with the id hint.
func (v *validator) add(path, id, hint string, params ...any) {
	if len(v.problems) == ProblemsMax {
		return // nobody reads on, and a hostile job must not fill the memory
	}
	p := Problem{Path: path, ID: id, HintID: hint, Params: map[string]string{"path": path}}
	for i := 0; i+1 < len(params); i += 2 {
		p.Params[fmt.Sprint(params[i])] = printable(fmt.Sprint(params[i+1]))
	}
	v.problems = append(v.problems, p)
}

// printable bounds a value from a job for use in a message.
func printable(value string) string {
	const valueMax = 200 // bytes
	if len(value) > valueMax {
		value = strings.ToValidUTF8(value[:valueMax], "") + "…"
	}
	return strings.ToValidUTF8(value, "\uFFFD")
}

// text checks a value that people wrote: UTF-8, no NUL, at most limit bytes.
func (v *validator) text(path, value string, limit int) bool {
	switch {
	case len(value) > limit:
		v.add(path, "job.too_long", "", "length", len(value), "max", limit)
	case !utf8.ValidString(value):
		v.add(path, "job.utf8", "job.utf8.hint")
	case strings.IndexByte(value, 0) >= 0:
		v.add(path, "job.nul", "")
	default:
		return true
	}
	return false
}

// word checks a short text without control characters.
func (v *validator) word(path, value string, limit int) bool {
	if !v.text(path, value, limit) {
		return false
	}
	for _, r := range value {
		if r < 0x20 || r == 0x7f {
			v.add(path, "job.control", "", "character", strconv.QuoteRune(r))
			return false
		}
	}
	return true
}

// name checks an object's name by the one rule of all objects.
func (v *validator) name(path, name string) bool {
	id := NameProblem(name)
	if id == "" {
		return true
	}
	if suggestion := nameFrom(name); suggestion != "" && suggestion != name {
		v.add(path, id, "job.name.hint", "name", name, "suggestion", suggestion)
	} else {
		v.add(path, id, "", "name", name)
	}
	return false
}

// nameFrom makes a legal name out of a text that is not one, or "".
func nameFrom(text string) string {
	var b strings.Builder
	for i := 0; i < len(text) && b.Len() < NameLengthMax; i++ {
		c := lowerASCII(text[i])
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9' && b.Len() > 0:
			b.WriteByte(c)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	name := strings.TrimRight(b.String(), "-")
	if NameProblem(name) != "" {
		return ""
	}
	return name
}

// choice checks a word against the words that are known; "" passes when
// optional is true.
func (v *validator) choice(path, value string, optional bool, choices ...string) bool {
	if slices.Contains(choices, value) || optional && value == "" {
		return true
	}
	if value == "" {
		v.add(path, "job.missing", "job.choice.hint", "choices", strings.Join(choices, ", "))
		return false
	}
	if nearest := Nearest(value, choices); nearest != "" {
		v.add(path, "job.choice", "job.nearest.hint", "value", value, "choices", strings.Join(choices, ", "), "suggestion", nearest)
	} else {
		v.add(path, "job.choice", "", "value", value, "choices", strings.Join(choices, ", "))
	}
	return false
}

// integer checks low <= value <= high.
func (v *validator) integer(path string, value, low, high int) bool {
	if value >= low && value <= high {
		return true
	}
	v.add(path, "job.range", "", "value", value, "min", low, "max", high)
	return false
}

// size checks an amount of memory.
func (v *validator) size(path string, value, low, high int64) bool {
	if value >= low && value <= high {
		return true
	}
	v.add(path, "job.range", "", "value", FormatSize(value), "min", FormatSize(low), "max", FormatSize(high))
	return false
}

// span checks a span of time.
func (v *validator) span(path string, value, low, high Duration) {
	if value < low || value > high {
		v.add(path, "job.range", "", "value", FormatDuration(value), "min", FormatDuration(low), "max", FormatDuration(high))
	}
}

// excludes notes that two fields may not stand together.
func (v *validator) excludes(path, other string) {
	v.add(path, "job.excludes", "", "other", other)
}

func (v *validator) general(j *Job) {
	v.name("name", j.Name)
	v.name("project", j.Project)
	v.choice("type", string(j.Type), false, string(JobTypeTraining), string(JobTypeBatch), string(JobTypeDev))
	v.choice("category", j.Category, true, "debug", "inference", "training", "special")
	v.text("description", j.Description, DescriptionMax)
	v.choice("priority", string(j.Priority), false, string(PriorityNormal), string(PriorityUrgent), string(PriorityCritical))
	v.choice("access", j.Access, false, AccessReadWrite, AccessReadOnly, AccessNone)
	v.span("time_limit", j.TimeLimit, 0, SpanMax)
	v.span("expected_runtime", j.ExpectedRuntime, 0, SpanMax)
	v.integer("nodes", j.Nodes, 1, NodesMax)
	v.span("stop_grace", j.StopGrace, 0, GraceMax)
	v.throttle(j)
	v.choice("fencing", j.Fencing, false, FencingCommit, FencingStrict)
	v.word("idempotency_key", j.IdempotencyKey, WordMax)
	v.text("source", j.Source, SourceMax)
}

// StartProblems is the part of Validate that is about when a job may start.
func (j *Job) StartProblems() []Problem {
	v := &validator{}
	v.start(j)
	return v.problems
}

// start checks what a job waits for before it may start, and how long.
func (v *validator) start(j *Job) {
	v.instant("begin", j.Begin)
	v.instant("deadline", j.Deadline)
	v.span("max_queue_time", j.MaxQueueTime, 0, SpanMax)
	if len(j.After) > AfterMax {
		v.add("after", "job.too_many", "", "what", "after", "count", len(j.After), "max", AfterMax)
		return
	}
	seen := make(map[After]bool, len(j.After))
	for i := range j.After {
		a, path := j.After[i], IndexedPath("after", i)
		if a.Job == "" {
			v.add(path+".job", "job.missing", "")
		} else if strings.Trim(a.Job, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || len(a.Job) > WordMax {
			v.add(path+".job", "job.after_name", "job.after_name.hint", "job", a.Job)
		}
		v.choice(path+".when", a.When, true, UntilSucceeded, UntilFailed, UntilEnded, UntilStarted)
		if a.Project != "" {
			v.name(path+".project", a.Project)
		}
		if a.ID = ""; seen[a] {
			v.add(path+".job", "job.duplicate", "", "value", a.Job)
		}
		seen[a] = true
	}
}

// instant checks a time that people wrote.
func (v *validator) instant(path, text string) {
	if text == "" {
		return
	}
	switch _, err := ParseInstant(text); {
	case err == nil:
	case errors.Is(err, ErrInstantZone):
		v.add(path, "job.zone", "job.zone.hint", "value", text)
	default:
		v.add(path, "job.instant", "job.instant.hint", "value", text)
	}
}

func (v *validator) throttle(j *Job) {
	t := j.Throttle
	if t == nil {
		return
	}
	for _, part := range []struct {
		path  string
		value Duration
	}{{"throttle.idle", t.Idle}, {"throttle.busy", t.Busy}} {
		v.span(part.path, part.value, ThrottlePartMin, ThrottlePartMax)
	}
	if !j.Supports.Throttles() {
		v.add("throttle", "job.throttle_unsupported", "job.throttle_unsupported.hint")
	}
}

func (v *validator) meta(j *Job) {
	if len(j.Meta) > MetaMax {
		v.add("meta", "job.too_many", "", "what", "meta", "count", len(j.Meta), "max", MetaMax)
		return
	}
	for _, key := range slices.Sorted(maps.Keys(j.Meta)) {
		path := KeyedPath("meta", key)
		if key == "" {
			v.add(path, "job.missing", "")
		}
		if v.word(path, key, WordMax) {
			v.text(path, j.Meta[key], MetaValueMax)
		}
	}
}

// KeyedPath names an entry of a map, for instance task.env["LR"].
func KeyedPath(path, key string) string {
	return path + "[" + strconv.Quote(printable(key)) + "]"
}

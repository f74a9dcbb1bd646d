package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"nomadlike/internal/messages"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// paper is an environment that prints into buffers.
func paper() (env *Env, out, complaints *bytes.Buffer) {
	out, complaints = &bytes.Buffer{}, &bytes.Buffer{}
	return &Env{
		Stdin: strings.NewReader(""), Stdout: &Screen{Writer: out}, Stderr: &Screen{Writer: complaints},
		Getenv: func(string) string { return "" }, Language: messages.English,
	}, out, complaints
}

func TestTableAlignsByDisplayWidth(t *testing.T) {
	_, out, _ := paper()
	table := newTable(&Screen{Writer: out, Colour: true}, "名称", "STATE", "")
	table.row("训练任务", "\x1b[32mrunning\x1b[0m", "x")
	table.row("a", "ok", "")
	table.row("ｆｕｌｌ", "e\u0301t\u00e9", "y")
	table.row("🚀", "ok", "z")
	table.print()
	want := "\x1b[1m名称      STATE\x1b[0m\n" +
		"训练任务  \x1b[32mrunning\x1b[0m  x\n" +
		"a         ok\n" +
		"ｆｕｌｌ  e\u0301t\u00e9      y\n" +
		"🚀        ok       z\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What is wrong with the agents is told with its cure, and with nothing where nothing is.
func TestAgentNotes(t *testing.T) {
	env, out, _ := paper()
	agentNotes(env, &api.AutopilotHealth{Versions: []api.AgentVersion{{Version: "1.4", Agents: 3}}})
	if out.Len() > 0 {
		t.Errorf("all is well: %s", out)
	}
	end := structs.At(time.Date(2026, 11, 27, 8, 0, 0, 0, time.UTC))
	agentNotes(env, &api.AutopilotHealth{
		Certificates: []api.CertificateEnd{{ID: "a", Name: "gpu-1", EndsAt: end}},
		Versions:     []api.AgentVersion{{Version: "1.4", Agents: 20, Names: []string{"s1", "gpu-1"}}, {Version: "1.3", Agents: 1, Names: []string{"gpu-2"}}},
	})
	for _, want := range []string{
		"the certificate of gpu-1 ends at " + when(end) + " and has not been renewed\n", "check on that machine that its clock is right",
		"version 1.4, run by 20: s1 gpu-1 …\n", "version 1.3, run by 1: gpu-2\n", "nomadlike docs upgrade",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func TestSafe(t *testing.T) {
	cases := []struct{ name, text, line, lines string }{
		{"plain", "hello 训练 é 🚀", "hello 训练 é 🚀", "hello 训练 é 🚀"},
		{"breaks", "a\nb\tc", `a\u000ab\u0009c`, "a\nb\tc"},
		{"colours and titles", "\x1b[31mred\x1b]0;title\a", `\u001b[31mred\u001b]0;title\u0007`, `\u001b[31mred\u001b]0;title\u0007`},
		{"C1", "\u009b31m", `\u009b31m`, `\u009b31m`},
		{"carriage return", "good\rbad", `good\u000dbad`, `good\u000dbad`},
		{"bidirectional", "a\u202eb\u2066c\u200fd\u061c", `a\u202eb\u2066c\u200fd\u061c`, `a\u202eb\u2066c\u200fd\u061c`},
		{"line separators", "a\u2028b", `a\u2028b`, `a\u2028b`},
		{"broken UTF-8", "a\xffb\xc3", `a\xffb\xc3`, `a\xffb\xc3`},
		{"a replacement character that was written", "a\ufffdb", "a\ufffdb", "a\ufffdb"},
		{"delete", "a\x7fb", `a\u007fb`, `a\u007fb`},
	}
	for _, c := range cases {
		if got := safe(c.text); got != c.line {
			t.Errorf("%s: line %q, want %q", c.name, got, c.line)
		}
		if got := safeText(c.text); got != c.lines {
			t.Errorf("%s: text %q, want %q", c.name, got, c.lines)
		}
	}
}

// Whatever a name holds, nothing that a terminal obeys comes out.
func TestSafeLeavesNothingToObey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) + rapid.String().Draw(t, "text")
		for _, r := range safe(text) {
			if !harmless(r) {
				t.Fatalf("%q is left in %q", r, safe(text))
			}
		}
		if again := safe(safe(text)); again != safe(text) {
			t.Fatalf("not stable: %q", again)
		}
	})
}

// A hostile job name, reason and node name reach the screen as escapes only.
func TestHostileNamesInLists(t *testing.T) {
	const bad = "x\x1b[2J\nforged"
	env, out, _ := paper()
	env.printJobs([]api.JobSummary{{ID: "0123456789", Name: bad, Project: bad, User: bad, Nodes: 1, JobStatus: api.JobStatus{
		State: structs.JobFailed, Reason: &structs.Reason{ID: bad, Params: map[string]string{bad: bad}},
	}}})
	env.printQueue([]api.QueueEntry{{JobName: bad, User: bad, Wait: &structs.WaitReason{Reason: structs.Reason{ID: bad}}}}, 0)
	env.printEvent(&structs.Event{ID: bad, By: bad, Params: map[string]string{"job": bad}})
	env.printNodes([]api.NodeSummary{{Node: structs.Node{Name: bad}}})
	env.reportError(structs.NewError(structs.CodeInvalid, bad, "name", "\x1b"))
	env.reportError(errors.New(bad))
	if strings.ContainsRune(out.String(), '\x1b') {
		t.Errorf("escapes are obeyed: %q", out.String())
	}
	if lines := strings.Count(out.String(), "\n"); lines != 2+2+1+2 {
		t.Errorf("%d lines:\n%s", lines, out.String())
	}
}

// Who sees none of the jobs that wait is not told that nothing waits.
func TestQueueOfOthersIsNotEmpty(t *testing.T) {
	for hidden, want := range map[int]string{
		0: "no job waits\n",
		1: "1 job of others that you may not see waits as well; # counts them\n",
		3: "3 jobs of others that you may not see wait as well; # counts them\n",
	} {
		env, out, _ := paper()
		if env.printQueue(nil, hidden); out.String() != want {
			t.Errorf("%d hidden: %q", hidden, out.String())
		}
	}
}

// A rank that never ran has no exit code, nor has a job of such ranks; what ran keeps
// the one that it has. What waits after a failed start says why.
func TestWhatNeverRanHasNoExitCode(t *testing.T) {
	job := &structs.Job{ID: "0123456789", Name: "j", Nodes: 1}
	cause := structs.NewReason("client.launch_failed", "cause", "no such image")
	for exit, ran := range map[string]structs.UnixNano{"-": 0, "0": 5} {
		env, out, _ := paper()
		env.printJob(&api.JobDetail{Job: job, JobStatus: api.JobStatus{State: structs.JobFailed, Reason: cause}},
			[]structs.Allocation{{ID: "0123456789", Status: structs.AllocFailed, Cause: cause, StartedAt: ran}}, "")
		field := regexp.MustCompile(`(?m)^EXIT +(\S+)$`).FindStringSubmatch(out.String())
		row := regexp.MustCompile(`failed +(\S+) +.*no such image`).FindStringSubmatch(out.String())
		if field == nil || row == nil || field[1] != exit || row[1] != exit {
			t.Errorf("started %d: %q, %q, want %s:\n%s", ran, field, row, exit, out.String())
		}
	}
	env, _, _ := paper()
	wait := &structs.WaitReason{Reason: *structs.NewReason("scheduler.restart_delay", "until", "12:00")}
	if got := env.statusText(api.JobStatus{State: structs.JobQueued, Wait: wait, Reason: cause}); !strings.Contains(got, "12:00") || !strings.Contains(got, "no such image") {
		t.Errorf("it waits: %q", got)
	}
}

func TestShowChecksTemplatesAndLists(t *testing.T) {
	env, out, _ := paper()
	yes := true
	flags := outputFlags{json: &yes, template: &templateFlag{}}
	if err := env.show(flags, all[string](nil), func() { t.Error("plain") }); err != nil || out.String() != "[]\n" {
		t.Errorf("no elements: %q %v", out.String(), err)
	}
	if err := flags.template.Set("{{.Name"); err == nil {
		t.Error("a broken template passes")
	}
	out.Reset()
	if err := flags.template.Set("{{.Name}} {{.Nothing}}"); err != nil {
		t.Fatal(err)
	}
	var wrong *usageError
	if err := env.show(flags, &structs.Job{Name: "x"}, nil); !errors.As(err, &wrong) || out.Len() > 0 {
		t.Errorf("a template that does not fit: %v, printed %q", err, out)
	}
}

func TestReportErrorRendersDetailsAndHints(t *testing.T) {
	env, _, complaints := paper()
	e := structs.NewError(structs.CodeInvalid, "cli.init.exists", "path", "a.hcl")
	e.Details = []structs.Error{
		{ID: "cli.no_ca"},
		{ID: "no.such.id", Message: "told by a newer server", Hint: "do this"},
		{ID: "cli.bad_rank", Params: map[string]string{"value": "x", "hint_id": "cli.usage.see_help"}},
	}
	env.reportError(e)
	env.Language = messages.Chinese
	env.reportError(e.Details[:1][0].Because(nil))
	want := `error: a.hcl already exists
  choose another name, or use -force to overwrite it
  - no cluster is known here
    ` + messages.Textf(messages.English, "cli.no_ca.hint") + `
  - told by a newer server
    do this
  - -rank takes a number from 0, not "x"
    see: nomadlike help
错误： 本机尚未记录任何集群
  ` + messages.Textf(messages.Chinese, "cli.no_ca.hint") + "\n"
	if diff := cmp.Diff(want, complaints.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSpanAndSize(t *testing.T) {
	spans := map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 1234567: "1ms", 1500 * time.Millisecond: "1.5s", 61 * time.Second: "1m01s",
		3*time.Hour + 4*time.Minute: "3h04m", 49 * time.Hour: "2d01h",
	}
	for d, want := range spans {
		if got := span(d); got != want {
			t.Errorf("span %d: %s, want %s", d, got, want)
		}
	}
	sizes := map[int64]string{0: "0B", 1023: "1023B", 1536: "1.5KiB", 64 << 20: "64MiB", 3 << 50: "3PiB", 5 << 60: "5120PiB"}
	for n, want := range sizes {
		if got := size(n); got != want {
			t.Errorf("size %d: %s, want %s", n, got, want)
		}
	}
}

// What shellLine writes, a job file's command reads back.
func TestShellLineIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.OneOf(
			rapid.StringMatching(`[a-zA-Z0-9 '"\\$;|&<>*?~(){}\n\t=#-]{0,8}`), rapid.String(),
		), 1, 6).Draw(t, "words")
		for i := range words {
			words[i] = strings.ReplaceAll(words[i], "\x00", "")
		}
		got, err := structs.SplitCommand(shellLine(words))
		if err != nil {
			t.Fatalf("%s: %v", shellLine(words), err)
		}
		if diff := cmp.Diff(words, got); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", shellLine(words), diff)
		}
	})
}

func TestEndOf(t *testing.T) {
	cases := []struct {
		state structs.JobState
		code  int
		want  int
	}{
		{structs.JobSucceeded, 0, 0},
		{structs.JobSucceeded, 9, 0},
		{structs.JobFailed, 3, 3},
		{structs.JobFailed, 0, 1},
		{structs.JobFailed, -1, 1},
		{structs.JobFailed, 256, 1},
		{structs.JobFailed, 255, 255},
		{structs.JobStopped, 143, 130},
		{structs.JobExpired, 143, 124},
	}
	for _, c := range cases {
		detail := &api.JobDetail{JobStatus: api.JobStatus{State: c.state, ExitCode: c.code}}
		got := 0
		var exit *exitError
		if errors.As(endOf(detail), &exit) {
			got = exit.code
		}
		if got != c.want {
			t.Errorf("%s with %d: %d, want %d", c.state, c.code, got, c.want)
		}
	}
	for _, c := range []struct {
		exit structs.ExecExit
		want int
	}{
		{structs.ExecExit{}, 0},
		{structs.ExecExit{Code: 7}, 7},
		{structs.ExecExit{Signal: 9}, 137},
		{structs.ExecExit{Err: structs.NewError(structs.CodeInternal, "x")}, 1},
		{structs.ExecExit{Code: 127, Err: structs.NewError(structs.CodeNotFound, "x")}, 127},
	} {
		got := 0
		var exit *exitError
		if errors.As(execEnd(&c.exit), &exit) {
			got = exit.code
		}
		if got != c.want {
			t.Errorf("%+v: %d, want %d", c.exit, got, c.want)
		}
	}
}

func TestLogPrinter(t *testing.T) {
	terminal, pipe := true, false
	cases := []struct {
		name     string
		terminal bool
		prefix   string
		writes   []string
		want     string
	}{
		{"a pipe gets the bytes", pipe, "", []string{"a\x1b[1m\xff", "b\r\n", "no end"}, "a\x1b[1m\xffb\r\nno end"},
		{"a terminal gets what does no harm", terminal, "", []string{"a\x1b[1m\n"}, "a\\u001b[1m\n"},
		{"characters in two writes", terminal, "", []string{"\xe8\xae", "\xad练\n"}, "训练\n"},
		{"a character that never ends", terminal, "", []string{"a\xe8\xae"}, "a\\xe8\\xae"},
		{"progress bars of one rank", terminal, "", []string{"10%\r", "20%\r\n"}, "10%\r20%\r\n"},
		{"lines behind a rank", pipe, "1| ", []string{"a", "b\nc\n", "d"}, "1| ab\n1| c\n1| d\n"},
		{"bytes behind a rank", pipe, "1| ", []string{"\x1b\r\xff\n"}, "1| \x1b\r\xff\n"},
		{"no rank takes its prefix away", terminal, "1| ", []string{"evil\r2| forged\n", "x\r\n"}, "1| 2| forged\n1| x\n"},
		{"empty lines", pipe, "1| ", []string{"\n\n"}, "1| \n1| \n"},
		{"nothing", pipe, "1| ", nil, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			p := &logPrinter{mu: &sync.Mutex{}, on: &Screen{Writer: &out, Terminal: c.terminal}, prefix: c.prefix}
			for _, w := range c.writes {
				p.print([]byte(w))
			}
			p.flush()
			if out.String() != c.want {
				t.Errorf("%q, want %q", out.String(), c.want)
			}
		})
	}
}

// However a log is cut into writes, the same comes out; behind a prefix no
// line is longer than the bound.
func TestLogPrinterDoesNotCareAboutCuts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := rapid.StringMatching("(训练|a|\x1b|\n|\r){0,40}").Draw(t, "log")
		terminal, prefix := rapid.Bool().Draw(t, "terminal"), rapid.SampledFrom([]string{"", "3| "}).Draw(t, "prefix")
		print := func(cuts []int) string {
			var out bytes.Buffer
			p := &logPrinter{mu: &sync.Mutex{}, on: &Screen{Writer: &out, Terminal: terminal}, prefix: prefix}
			rest := log
			for _, cut := range cuts {
				cut = min(cut, len(rest))
				p.print([]byte(rest[:cut]))
				rest = rest[cut:]
			}
			p.print([]byte(rest))
			p.flush()
			return out.String()
		}
		whole := print(nil)
		if got := print(rapid.SliceOf(rapid.IntRange(0, 7)).Draw(t, "cuts")); got != whole {
			t.Fatalf("%q, whole %q", got, whole)
		}
	})
	var out bytes.Buffer
	p := &logPrinter{mu: &sync.Mutex{}, on: &Screen{Writer: &out}, prefix: "0| "}
	p.print(bytes.Repeat([]byte("x"), 3*logLineMax+5))
	p.flush()
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 4 {
		t.Errorf("%d lines", len(lines))
	}
}

// The short way for plain bytes shows what the long one does.
func TestSafeBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.StringMatching("[ -~\t\n]{0,40}"), rapid.String(), rapid.StringMatching("(a|\x1b|\x7f|\u0080|\u202e|\x00|训|\n){0,20}")).Draw(t, "text")
		if got, want := string(safeBytes([]byte(text))), safeText(text); got != want {
			t.Fatalf("%q, not %q", got, want)
		}
	})
}

// Lines behind a prefix are written together, not each for itself.
func TestLogPrinterWritesManyLines(t *testing.T) {
	writes := 0
	var out bytes.Buffer
	p := &logPrinter{mu: &sync.Mutex{}, on: &Screen{Writer: writerFunc(func(data []byte) (int, error) {
		writes++
		return out.Write(data)
	})}, prefix: "0| "}
	const lines = 10_000
	p.print(bytes.Repeat([]byte("a line\n"), lines))
	if out.String() != strings.Repeat("0| a line\n", lines) {
		t.Errorf("%d bytes are not the lines", out.Len())
	}
	if most := out.Len()/logWriteSize + 1; writes > most {
		t.Errorf("%d writes, not %d", writes, most)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(data []byte) (int, error) { return f(data) }

func TestScreenColours(t *testing.T) {
	if got := (&Screen{Writer: io.Discard}).paint(colourRed, "x"); got != "x" {
		t.Errorf("without colours: %q", got)
	}
	if got := (&Screen{Writer: io.Discard, Colour: true}).paint(colourRed, "x"); got != "\x1b[31mx\x1b[0m" {
		t.Errorf("with colours: %q", got)
	}
}

// TestJSONIsHarmless: what a node says of itself is data to programs that read
// -json and -t, and obeyed by no terminal that shows it.
func TestJSONIsHarmless(t *testing.T) {
	hostile := structs.Node{Name: "n", Attributes: map[string]string{"os.\u009b31m": "a\x1b]0;owned\a\u202eb\u2066\x7f\u2028", "broken": "\xff"}}
	var out strings.Builder
	if err := writeJSON(&out, hostile); err != nil {
		t.Fatal(err)
	}
	for _, r := range out.String() {
		if r != '\n' && !harmless(r) {
			t.Errorf("%q is left in %s", r, out.String())
		}
	}
	var read structs.Node
	if err := json.Unmarshal([]byte(out.String()), &read); err != nil || read.Attributes["os.\u009b31m"] != hostile.Attributes["os.\u009b31m"] {
		t.Errorf("%+v, %v", read, err)
	}
}

package alloc

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"nomadlike/internal/golden"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// TestTranscripts plays testdata/*.in against a table and compares what
// happens with the .txt beside it. One line is one thing that happens:
//
//	assign [full] ALLOC... [gone ALLOC...]  ALLOC is job/attempt/rank[+released][+stop][+lost][+strict][+save][+warned=SEQ]
//	                                        save: stop it with SIGUSR1 and five minutes
//	                                        paused=SEQ, running=SEQ, throttled=SEQ: what people want of it
//	obeyed ALLOC SEQ [failed]
//	prepared|absent|unblocked ALLOC
//	preparing ALLOC STEP
//	prepare-failed ALLOC infra|user
//	started ALLOC
//	start-failed ALLOC CODE infra|user
//	exited ALLOC CODE [SIGNAL]
//	lost-task ALLOC
//	acked ALLOC STATUS
//	lease-ended
//	adopt ALLOC                             a task is found of which nothing is remembered
//	restart                                 a new agent resumes what was persisted
func TestTranscripts(t *testing.T) {
	scripts, err := filepath.Glob("testdata/*.in")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, script := range scripts {
		name := strings.TrimSuffix(filepath.Base(script), ".in")
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(script)
			if err != nil {
				t.Fatal(err)
			}
			p := &player{t: t, table: NewTable("n1"), stored: map[string]State{}, names: map[string]string{}}
			for line := range strings.Lines(string(text)) {
				p.play(strings.TrimSuffix(line, "\n"))
			}
			golden.Assert(t, filepath.Join("testdata", name+".txt"), p.out.String())
		})
	}
}

// player plays one transcript.
type player struct {
	t      *testing.T
	table  *Table
	stored map[string]State
	names  map[string]string // allocation id -> job/attempt/rank
	out    strings.Builder
	now    structs.UnixNano
}

func (p *player) play(line string) {
	fmt.Fprintln(&p.out, line)
	words := strings.Fields(line)
	if len(words) == 0 || strings.HasPrefix(words[0], "#") {
		return
	}
	p.now++
	switch words[0] {
	case "assign":
		p.show(p.table.Assign(p.assignments(words[1:]), p.now))
	case "adopt":
		a := p.assignment(words[1])
		p.show(p.table.Adopt(&a, driver.Handle{TaskID: TaskID(a.Alloc.ID)}, p.now))
	case "lease-ended":
		p.show(p.table.EndLease(p.now))
	case "restart":
		var states []State
		for _, s := range p.stored {
			s.sent = ForceNone
			states = append(states, s)
		}
		p.table = NewTable("n1")
		p.show(p.table.Resume(states, p.now))
	default:
		id := p.id(words[1])
		p.show(p.table.Step(id, p.event(words), p.now))
	}
}

func (p *player) event(words []string) Event {
	arg := func(i int) string {
		if i < len(words) {
			return words[i]
		}
		return ""
	}
	switch words[0] {
	case "prepared":
		return Prepared{}
	case "absent":
		return Absent{}
	case "evicted":
		e := Evicted{Cause: structs.NewReason("device-failed")}
		if arg(2) == "save" {
			e.Stop = &structs.StopOrder{Signal: "SIGUSR1", Grace: structs.Duration(5 * time.Minute)}
		}
		return e
	case "unblocked":
		return Unblocked{}
	case "preparing":
		return Progressed{Step: arg(2)}
	case "prepare-failed":
		return PrepareFailed{Cause: structs.NewReason("why"), Infra: arg(2) == "infra"}
	case "started":
		return Started{Handle: driver.Handle{TaskID: TaskID(p.id(words[1])), StartedAt: time.Unix(0, int64(p.now))}}
	case "start-failed":
		return StartFailed{Result: p.result(arg(2), ""), Infra: arg(3) == "infra"}
	case "exited":
		return Exited{Result: p.result(arg(2), arg(3))}
	case "obeyed":
		seq, err := strconv.ParseUint(arg(2), 10, 64)
		if err != nil {
			p.t.Fatal(err)
		}
		e := Controlled{structs.ControlAnswer{Seq: seq}}
		if arg(3) == "failed" {
			e.Answer.Failed = structs.NewReason("why")
		}
		return e
	case "lost-task":
		r := p.result("255", "")
		r.Err = structs.NewError(structs.CodeInternal, "driver.task_lost")
		return Exited{Result: r}
	case "acked":
		return Acked{Status: structs.AllocStatus(arg(2))}
	}
	p.t.Fatalf("no such event: %s", words[0])
	return nil
}

func (p *player) result(code, signal string) driver.ExitResult {
	number, err := strconv.Atoi(code)
	if err != nil {
		p.t.Fatal(err)
	}
	return driver.ExitResult{Code: number, Signal: signal, FinishedAt: time.Unix(0, int64(p.now))}
}

func (p *player) assignments(words []string) *structs.Assignments {
	a := &structs.Assignments{Index: uint64(p.now)}
	gone := false
	for _, word := range words {
		switch {
		case word == "full":
			a.Full = true
		case word == "gone":
			gone = true
		case gone:
			a.Gone = append(a.Gone, p.id(word))
		default:
			a.Set = append(a.Set, p.assignment(word))
		}
	}
	return a
}

func (p *player) id(name string) string {
	parts := strings.Split(name, "/")
	attempt, err := strconv.ParseUint(parts[1], 10, 64)
	if err != nil {
		p.t.Fatal(err)
	}
	rank, err := strconv.Atoi(parts[2])
	if err != nil {
		p.t.Fatal(err)
	}
	id := structs.AllocID(parts[0], 0, attempt, rank)
	p.names[id] = name
	return id
}

func (p *player) assignment(word string) structs.Assignment {
	marks := strings.Split(word, "+")
	id := p.id(marks[0])
	parts := strings.Split(marks[0], "/")
	attempt, _ := strconv.ParseUint(parts[1], 10, 64) // checked by id
	job := &structs.Job{ID: parts[0], Name: parts[0], StopGrace: structs.Duration(30 * time.Second)}
	a := &structs.Allocation{ID: id, JobID: parts[0], Attempt: attempt, NodeID: "n1", Desired: structs.DesiredRun, Status: structs.AllocPending}
	for _, mark := range marks[1:] {
		if word, number, ok := strings.Cut(mark, "="); ok {
			seq, err := strconv.ParseUint(number, 10, 64)
			if err != nil {
				p.t.Fatal(err)
			}
			if word == "warned" {
				a.Warning = &structs.Warning{Seq: seq, Signal: "SIGUSR2"}
				continue
			}
			a.Control = &structs.Control{Seq: seq, Paused: word == "paused"}
			if word == "throttled" {
				a.Control.Busy, a.Control.Idle = structs.Duration(time.Second), structs.Duration(2*time.Second)
			}
			continue
		}
		switch mark {
		case "released":
			a.Released = true
		case "stop":
			a.Desired, a.DesiredReason = structs.DesiredStop, structs.NewReason("asked")
		case "save":
			a.Stop = &structs.StopOrder{Signal: "SIGUSR1", Grace: structs.Duration(5 * time.Minute)}
		case "gibberish":
			a.Stop = &structs.StopOrder{Signal: "SIGNAL-9", Grace: structs.Duration(time.Minute)}
		case "lost":
			a.Status = structs.AllocLost
		case "strict":
			job.Fencing = FencingStrict
		case "other-node":
			a.NodeID = "n2"
		default:
			a.Status = structs.AllocStatus(mark)
		}
	}
	return structs.Assignment{Alloc: a, Job: job}
}

func (p *player) show(effects []Effect) {
	for _, e := range effects {
		name := p.names[e.Alloc()]
		switch e := e.(type) {
		case Prepare:
			p.line("prepare %s", name)
		case CancelPrepare:
			p.line("cancel prepare %s", name)
		case Start:
			p.line("start %s", name)
		case Recover:
			p.line("recover %s handle=%v", name, e.Handle != nil)
		case Stop:
			p.line("stop %s %s %s", name, e.Signal, e.Grace)
		case Signal:
			p.line("signal %s %s", name, e.Signal)
		case Control:
			p.line("control %s %d paused=%v busy=%s idle=%s", name, e.Control.Seq, e.Control.Paused, e.Control.Busy, e.Control.Idle)
		case Report:
			p.line("report %s %s", name, reportText(e.Report))
		case Persist:
			s, _ := p.table.State(e.AllocID)
			p.stored[e.AllocID] = s
			p.line("persist %s %s", name, s.Phase)
		case Clean:
			p.line("clean %s", name)
		}
	}
}

func (p *player) line(format string, args ...any) {
	fmt.Fprintf(&p.out, "    "+format+"\n", args...)
}

func reportText(r structs.AllocReport) string {
	text := string(r.Status)
	if r.Step != "" {
		text += " step=" + r.Step
	}
	if r.Status.Terminal() {
		text += fmt.Sprintf(" code=%d", r.ExitCode)
	}
	if r.Signal != 0 {
		text += fmt.Sprintf(" signal=%d", r.Signal)
	}
	if r.Control != nil {
		text += fmt.Sprintf(" obeys=%d", r.Control.Seq)
		if r.Control.Failed != nil {
			text += " not"
		}
	}
	if r.Infra {
		text += " infra"
	}
	if r.Cause != nil {
		text += " cause=" + r.Cause.ID
	}
	return text
}

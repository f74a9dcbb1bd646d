package forecast

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"nomadlike/internal/golden"
	"nomadlike/internal/messages"
	"nomadlike/nomadlike/scheduler"
	"nomadlike/nomadlike/structs"
)

// page collects what a golden shows.
type page struct {
	strings.Builder
	now structs.UnixNano
}

func (p *page) line(format string, args ...any) {
	fmt.Fprintf(p, strings.TrimRight(format, " ")+"\n", args...)
}

// in writes a time as the span from now, to the minute.
func (p *page) in(at structs.UnixNano) string {
	if at == 0 {
		return "-"
	}
	d := at.Sub(p.now).Round(time.Minute)
	return fmt.Sprintf("%d:%02d", int(d.Hours()), int(d.Minutes())%60)
}

func (p *page) when(w When) string {
	text := fmt.Sprintf("%-7s p50 %6s  p90 %6s", w.Verdict, p.in(w.P50), p.in(w.P90))
	if w.Beyond != BeyondNone {
		text += "  beyond " + string(w.Beyond)
	}
	return text
}

func (p *page) wait(w *structs.WaitReason) string {
	if w == nil {
		return ""
	}
	text := messages.Text(messages.English, w.ID, w.Params)
	if len(w.Holders) > 0 {
		text += " [" + strings.Join(w.Holders, " ") + "]"
	}
	return text
}

func (p *page) queue(starts []Start) {
	for _, s := range starts {
		p.line("%d %-6s %s", s.Position, s.JobID, p.when(s.When))
		if s.Wait != nil {
			p.line("         %s", p.wait(s.Wait))
		}
	}
}

func (p *page) answer(title string, a Answer) {
	p.line("\n%s", title)
	p.line("  place %d  %s", a.Position, p.when(a.When))
	if a.Wait != nil {
		p.line("  %s", p.wait(a.Wait))
	}
	if len(a.Specs) > 1 {
		for _, row := range a.Specs {
			p.line("  spec %-6s %s  %s", row.Label, p.when(row.When), p.wait(row.Wait))
		}
	}
	for _, v := range a.Victims {
		p.line("  ends %s of %s on %s: %s of work lost, %s to stop", v.JobName, v.User, strings.Join(v.Nodes, " "), v.Lost, v.Grace)
	}
	for _, help := range a.Helps {
		p.line("  help: %s: %s", messages.Text(messages.English, help.ID, help.Params), p.when(help.When))
		p.line("        %s", messages.Text(messages.Chinese, help.ID, help.Params))
	}
}

// chart draws a timeline with two columns for each hour: upper case is running,
// lower case forecast, - reserved.
func (p *page) chart(t Timeline) {
	const slot = 30 * time.Minute
	p.line("%-6s %s", "", "0     3     6     9     12")
	for _, row := range t.Rows {
		cells := []byte(strings.Repeat(".", 26))
		for _, kind := range []string{BarReserved, BarForecast, BarRunning} {
			for _, bar := range row.Bars {
				if bar.Kind != kind {
					continue
				}
				mark, to := bar.JobName[0], bar.To
				switch kind {
				case BarRunning:
					mark -= 'a' - 'A'
				case BarReserved:
					mark, to = '-', bar.From.Add(slot)
				}
				for i := range cells {
					at := t.From.Add(time.Duration(i) * slot)
					if at >= bar.From && (at < to || bar.To == 0 && kind != BarReserved) {
						cells[i] = mark
					}
				}
			}
		}
		p.line("%-6s %s", row.Node, cells)
	}
}

func (p *page) effect(title string, e Effect) {
	p.line("\n%s: %d earlier, %d later, %d the same", title, e.Earlier, e.Later, e.Same)
	for _, s := range e.Shifts {
		before, after := "-", "-"
		if s.Before != nil {
			before = p.in(s.Before.P50)
		}
		if s.After != nil {
			after = p.in(s.After.P50)
		}
		p.line("  %-6s %6s -> %6s", s.JobID, before, after)
	}
}

// smallWorld is three machines of eight cards, all busy, with a queue.
func smallWorld() *drive {
	d := newDrive(scheduler.Settings{}, 0, 0)
	for _, name := range []string{"n1", "n2", "n3"} {
		n := testNode(name, 8)
		d.board.PutNode(n.ID, n, nil)
	}
	old := testNode("n4", 8)
	old.Pool = "old"
	for i := range old.Devices {
		old.Devices[i].Model = "V100"
	}
	d.board.PutNode(old.ID, old, nil)
	d.board.PutPool("old", &structs.Pool{Name: "old", Dedicated: true})
	d.now = start.Add(-time.Hour)
	for i, hours := range []int{3, 5, 9} {
		j := testJob(string(rune('a'+i)), 1, 8-i, time.Duration(hours)*time.Hour)
		j.Preemptible = i == 1
		j.StopGrace = structs.Duration(30 * time.Second)
		d.submit(j)
	}
	d.pass()
	d.now = start
	d.submit(testJob("p", 2, 8, 4*time.Hour))  // a big one: reserved
	d.submit(testJob("q", 1, 1, time.Hour))    // small: may start at once
	d.submit(testJob("r", 1, 8, 2*time.Hour))  // waits behind p
	d.submit(testJob("s", 9, 8, 2*time.Hour))  // too large
	d.submit(testJob("t", 1, 2, 20*time.Hour)) // small, but long
	return d
}

func TestGolden(t *testing.T) {
	d := smallWorld()
	in := Input{Board: d.ready(scheduler.Settings{})}
	f := Look(in, start, 1)
	p := &page{now: start}
	p.line("the queue: time limits are all that is known")
	p.queue(f.Queue())
	p.line("\nthe next hours")
	p.chart(f.Timeline(0, nil))
	job := func(nodes, devices int, limit time.Duration, change func(*structs.Job)) *structs.Job {
		j := testJob("", nodes, devices, limit)
		j.Name = "x"
		if change != nil {
			change(j)
		}
		return j
	}
	p.answer("one card for an hour", f.Job(job(1, 1, time.Hour, nil)))
	p.answer("two machines for a day", f.Job(job(2, 8, 24*time.Hour, nil)))
	p.answer("two machines, with checkpoints", f.Job(job(2, 8, 24*time.Hour, func(j *structs.Job) { j.Checkpoint = &structs.Checkpoint{MaxResumes: 3} })))
	p.answer("two cards for three hours", f.Job(job(1, 2, 3*time.Hour, nil)))
	p.answer("four machines", f.Job(job(4, 8, time.Hour, nil)))
	p.answer("eight A800 or one card of any kind", f.Job(job(1, 8, time.Hour, func(j *structs.Job) {
		j.Resources = append(j.Resources, testJob("", 1, 1, 0).Resources...)
		j.Resources[0].Label, j.Resources[1].Label = "large", "small"
		j.Resources[0].Devices[0].Model = "A800"
	})))
	p.answer("a whole machine, urgent", f.Job(job(1, 8, time.Hour, func(j *structs.Job) { j.Priority = structs.PriorityUrgent })))
	p.answer("VIP on n1 (kill) ", f.Job(job(1, 8, time.Hour, func(j *structs.Job) {
		j.VIP = &structs.VIP{Machines: []structs.VIPMachine{{Node: "n1", Busy: structs.BusyKill}}}
	})))
	p.answer("VIP on n1 (kill) and n3 (wait)", f.Job(job(2, 8, time.Hour, func(j *structs.Job) {
		j.VIP = &structs.VIP{Machines: []structs.VIPMachine{{Node: "n1", Busy: structs.BusyKill}, {Node: "n3", Busy: structs.BusyWait}}}
	})))
	p.answer("a batch of five cards", f.Job(job(1, 1, time.Hour, func(j *structs.Job) { j.Batch = &structs.Batch{Count: 5} })))
	for _, c := range []struct {
		title  string
		change Change
	}{
		{"stop a", Change{Kind: ChangeStop, JobID: "a"}},
		{"stop p in the queue", Change{Kind: ChangeStop, JobID: "p"}},
		{"drain n1", Change{Kind: ChangeDrain, Node: "n1"}},
		{"one node more like n1", Change{Kind: ChangeAddNodes, Node: "n1", Count: 1}},
		{"r before p", Change{Kind: ChangeMove, JobID: "r", Before: "p"}},
		{"r urgent", Change{Kind: ChangePriority, JobID: "r", Priority: structs.PriorityUrgent}},
		{"the lab holds at most 16 cards", Change{Kind: ChangeQuota, Project: "lab", Quotas: []structs.Quota{{Kind: "nvidia/gpu", Maximum: new(16)}}}},
		{"another job of three machines", Change{Kind: ChangeSubmit, Job: job(3, 8, time.Hour, nil)}},
	} {
		effect, err := f.WhatIf([]Change{c.change})
		if err != nil {
			t.Fatal(c.title, err)
		}
		p.effect("what if: "+c.title, effect)
	}
	one := Change{Kind: ChangeAddNodes, Node: "n1", Count: 1}
	few := Change{Kind: ChangeSubmit, Job: job(1, 8, time.Hour, nil), Count: 3}
	effect, err := f.WhatIf([]Change{few, few})
	if err != nil {
		t.Fatal(err)
	}
	p.effect("what if: three jobs of one machine, and three more", effect)
	effect, err = f.WhatIf([]Change{one, one})
	if err != nil {
		t.Fatal(err)
	}
	p.effect("what if: one node more like n1, and one more", effect)
	for _, c := range []Change{{Kind: ChangeDrain, Node: "n9"}, {Kind: ChangeStop, JobID: "zz"}, {Kind: "paint"}, {Kind: ChangeAddNodes, Node: "n1"}, {Kind: ChangeSubmit, Job: job(1, 8, time.Hour, nil), Count: 999}} {
		_, err := f.WhatIf([]Change{c})
		p.line("\n%s: %v", c.Kind, err)
	}
	golden.Assert(t, "testdata/forecast.txt", p.String())
}

package progress

import (
	"fmt"
	"testing"
	"time"

	"nomadlike/nomadlike/structs"
)

func TestMeter(t *testing.T) {
	guide := "this iteration hardware time is %d and e2e time is 1000 ms.\n"
	for _, test := range []struct {
		name   string
		policy structs.Performance
		lines  []string
		want   []int // lines that give a finding
	}{
		{
			"guide",
			structs.Performance{Threshold: 0.664, Compare: "gt", Times: 2},
			[]string{fmt.Sprintf(guide, 700), "epoch 3", fmt.Sprintf(guide, 700), fmt.Sprintf(guide, 700), fmt.Sprintf(guide, 600), fmt.Sprintf(guide, 700), fmt.Sprintf(guide, 900)},
			[]int{2, 6},
		},
		{"on the threshold", structs.Performance{Threshold: 0.5, Compare: "gt", Times: 1}, []string{fmt.Sprintf(guide, 500), fmt.Sprintf(guide, 501)}, []int{1}},
		{
			"below",
			structs.Performance{Threshold: 100, Compare: "lt", Times: 1, Pattern: `samples/s: ([0-9.]+)`},
			[]string{"samples/s: 120", "samples/s: 99.5", "samples/s: 98", "samples/s: 100", "samples/s: 1"},
			[]int{1, 4},
		},
		{
			"not numbers",
			structs.Performance{Threshold: 1, Compare: "gt", Times: 1, Pattern: `a=(\S+) b=(\S+)`},
			[]string{"a=1 b=0", "a=x b=1", "a=NaN b=1", "a=1e308 b=1e-308"},
			nil,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			m, err := NewMeter(test.policy)
			if err != nil {
				t.Fatal(err)
			}
			var got []int
			for i, line := range test.lines {
				if _, ok := m.Line([]byte(line)); ok {
					got = append(got, i)
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(test.want) {
				t.Errorf("found at %v, want %v", got, test.want)
			}
		})
	}
}

func pulse(t *testing.T) *Pulse {
	t.Helper()
	p, err := NewPulse(structs.Hang{Factor: 10, Least: structs.Duration(20 * time.Second), Most: structs.Duration(10 * time.Minute)}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPulseLearns(t *testing.T) {
	p := pulse(t)
	if got := p.Limit(); got != 10*time.Minute {
		t.Errorf("nothing is learned: %v", got)
	}
	now := time.Duration(0)
	for step := range 20 {
		now += 5 * time.Second
		p.Line(fmt.Appendf(nil, "[rank0] Step: %d loss 0.3", step), now)
	}
	if got := p.Limit(); got != 50*time.Second {
		t.Errorf("ten steps of 5 s: %v", got)
	}
	now += 40 * time.Second // an evaluation
	p.Line([]byte("accuracy 0.9"), now)
	if got := p.Limit(); got != 80*time.Second {
		t.Errorf("twice the longest silence: %v", got)
	}
	for step := range 70 {
		now += 100 * time.Millisecond
		p.Line(fmt.Appendf(nil, "iter %d", 100+step), now)
	}
	if got := p.Limit(); got != 80*time.Second {
		t.Errorf("short silences push no long one out: %v", got)
	}
}

func TestPulseTells(t *testing.T) {
	p := pulse(t)
	now := time.Duration(0)
	for step := range 10 {
		now += 2 * time.Second
		p.Line(fmt.Appendf(nil, "step=%d", step), now)
		p.Measured(Use{At: now, Cards: map[string]float64{"gpu-0": 0.9, "gpu-1": 0.9}})
	}
	from := now
	silent := func(after time.Duration, share float64) string {
		now = from + after
		p.Measured(Use{At: now, Cards: map[string]float64{"gpu-0": 0.99, "gpu-1": share}})
		got, ok := p.Tick(now)
		if !ok {
			return ""
		}
		return fmt.Sprintf("silent=%v idle=%v %v over=%v step=%d", got.Silent, got.Idle, got.Cards, got.Over, got.Step)
	}
	for _, step := range []struct {
		after time.Duration
		share float64
		want  string
	}{
		{19 * time.Second, 0, ""},
		{20 * time.Second, 0, "silent=true idle=true [gpu-1] over=false step=9"}, // ten steps of 2 s
		{25 * time.Second, 0, ""},
		{30 * time.Second, 0.5, ""}, // it has just been told of
		{90 * time.Second, 0.5, "silent=true idle=false [] over=false step=9"},
		{10 * time.Minute, 0.5, "silent=true idle=false [] over=true step=9"},
	} {
		if got := silent(step.after, step.share); got != step.want {
			t.Errorf("after %v: %q, want %q", step.after, got, step.want)
		}
	}
	got, ok := p.Line([]byte("step=10"), now+time.Second)
	if !ok || got.Silent || got.Step != 10 {
		t.Errorf("a line after silence tells %+v %v", got, ok)
	}
	if _, ok := p.Line([]byte("step=11"), now+2*time.Second); ok {
		t.Error("and the next line tells again")
	}
}

func TestPulseRestsAndMute(t *testing.T) {
	p := pulse(t)
	p.Measured(Use{At: 0, Cores: 0.01})
	if _, ok := p.Tick(10 * time.Second); ok {
		t.Error("told before the least")
	}
	p.Rest(15 * time.Second)
	if _, ok := p.Tick(30 * time.Second); ok {
		t.Error("a pause counts as silence")
	}
	got, ok := p.Tick(36 * time.Second)
	if !ok || !got.Mute || !got.Idle || len(got.Cards) != 0 {
		t.Errorf("a task that logs nothing: %+v %v", got, ok)
	}
}

// TestPulseStalls: a rank that tries something again and again, and logs it, is
// held to its steps while its card is idle.
func TestPulseStalls(t *testing.T) {
	p := pulse(t)
	now := time.Duration(0)
	for step := range 10 {
		now += 2 * time.Second
		p.Line(fmt.Appendf(nil, "step=%d", step), now)
		p.Measured(Use{At: now, Cards: map[string]float64{"gpu-0": 0.9}})
	}
	last := now
	goOn := func(until time.Duration, share float64) (told []structs.Progress) {
		for now < last+until {
			now += 5 * time.Second
			p.Measured(Use{At: now, Cards: map[string]float64{"gpu-0": share}})
			for _, ask := range []func() (structs.Progress, bool){
				func() (structs.Progress, bool) { return p.Line([]byte("cannot reach the store, trying again"), now) },
				func() (structs.Progress, bool) { return p.Tick(now) },
			} {
				if found, ok := ask(); ok {
					told = append(told, found)
				}
			}
		}
		return told
	}
	if told := goOn(5*time.Minute, 0.5); len(told) != 0 { // an evaluation, say
		t.Errorf("a card at work: told %+v", told)
	}
	told := goOn(5*time.Minute+35*time.Second, 0)
	if len(told) != 0 {
		t.Errorf("idle for less than the limit: told %+v", told)
	}
	told = goOn(8*time.Minute, 0)
	if len(told) != 1 || !told[0].Silent || !told[0].Idle || told[0].Step != 9 || told[0].Limit != structs.Duration(40*time.Second) || fmt.Sprint(told[0].Cards) != "[gpu-0]" {
		t.Errorf("idle: told %+v", told)
	}
	if found, ok := p.Line([]byte("step=10"), now+time.Second); !ok || found.Silent || found.Step != 10 {
		t.Errorf("a step tells %+v %v", found, ok)
	}
	// It has learned from that how long a step may take.
	last, now = now+time.Second, now+time.Second
	if told := goOn(9*time.Minute, 0); len(told) != 0 {
		t.Errorf("told %+v", told)
	}
}

package command

import (
	"fmt"
	"sync"
	"time"

	"nomadlike/nomadlike/structs"
)

// transfer shows on a terminal how far something large is, how fast it goes and how
// long it will take. Any goroutine may tell it.
type transfer struct {
	env *Env
	id  string // of the text: done, all, rate, left
	all int64

	mu    sync.Mutex
	done  int64
	pace  pace
	shown time.Time
	any   bool
}

func (env *Env) transfer(id string, all int64) *transfer {
	t := &transfer{env: env, id: id, all: all, shown: time.Now()}
	t.pace.add(t.shown, 0)
	return t
}

// add tells of bytes that came.
func (t *transfer) add(bytes int64) { t.tell(bytes, true) }

// skip tells of bytes that were there already: they say nothing of how fast it goes.
func (t *transfer) skip(bytes int64) { t.tell(bytes, false) }

func (t *transfer) tell(bytes int64, moved bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if t.done += bytes; moved {
		t.pace.add(now, bytes)
	}
	if !t.env.Stderr.Terminal || now.Sub(t.shown) < progressEvery {
		return
	}
	t.shown, t.any = now, true
	rate := t.pace.rate()
	params := []any{"done", size(t.done), "all", size(t.all), "rate", size(int64(rate)), "left", "?"}
	if left, known := leftAt(t.all-t.done, rate); known {
		params[len(params)-1] = structs.FormatDuration(structs.Duration(left))
	}
	fmt.Fprintf(t.env.Stderr, "\r\x1b[K%s", t.env.text(t.id, params...))
}

// wipe takes the line away.
func (t *transfer) wipe() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.any {
		fmt.Fprint(t.env.Stderr, "\r\x1b[K")
		t.any = false
	}
}

// paceSpan is over how long a pace is taken: long enough to be steady, short enough to
// tell when a network changes.
const paceSpan = 10 * time.Second

// pace is how fast something went lately.
type pace struct {
	marks []mark // of the last paceSpan, oldest first
}

// mark is how much came since the mark before.
type mark struct {
	at    time.Time
	bytes int64
}

func (p *pace) add(now time.Time, bytes int64) {
	p.marks = append(p.marks, mark{now, bytes})
	first := 0
	for first < len(p.marks)-2 && now.Sub(p.marks[first].at) > paceSpan {
		first++
	}
	p.marks = p.marks[first:]
}

// rate is in bytes a second; 0 while nothing is known.
func (p *pace) rate() float64 {
	if len(p.marks) < 2 {
		return 0
	}
	sum := int64(0)
	for _, m := range p.marks[1:] { // the first one says when, and its bytes came before
		sum += m.bytes
	}
	span := p.marks[len(p.marks)-1].at.Sub(p.marks[0].at)
	if span <= 0 {
		return 0
	}
	return float64(sum) / span.Seconds()
}

// leftLongest is the longest time that is told: what takes longer has hardly begun.
const leftLongest = 99 * 24 * time.Hour

// leftAt is how long bytes take at a rate, in whole seconds.
func leftAt(bytes int64, rate float64) (time.Duration, bool) {
	if rate <= 0 || bytes < 0 {
		return 0, false
	}
	seconds := float64(bytes) / rate
	if seconds > leftLongest.Seconds() {
		return 0, false
	}
	return time.Duration(seconds+0.999) * time.Second, true
}

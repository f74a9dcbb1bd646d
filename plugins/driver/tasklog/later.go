package tasklog

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"
)

// Bounds of a Later, in bytes.
const (
	laterMax  = 8 << 20  // what it keeps in memory
	cutAtMost = 64 << 10 // of a line whose beginning nobody has; no masked text is longer
)

// Later stands before a log whose texts to mask are not known yet, in a stream that
// somebody else has read until now. Until Mask tells them, what is written waits in
// memory, at most 8 MiB of it; what is over that, and all that comes after Withhold,
// never reaches the log, which says how much that was. So a task goes on, and no byte
// of it is stored unmasked. Behind a gap, and at the beginning, the log goes on with
// the next line: the rest of one may be the rest of a text to mask. Any goroutine may
// use it.
type Later struct {
	told chan struct{} // closed by the first Mask or Withhold
	max  int

	mu struct {
		sync.Mutex
		to       io.Writer
		masker   *Masker // nil: nothing is masked
		waiting  []byte
		cut      int   // bytes of a line whose beginning is not here that are left out at most; 0: it is over
		lost     int64 // bytes that the log has not
		withheld bool
		known    bool
	}
}

// NewLater makes the way to a log.
func NewLater(to io.Writer) *Later {
	l := &Later{told: make(chan struct{}), max: laterMax}
	l.mu.to, l.mu.cut = to, cutAtMost
	return l
}

// Write never fails, as the log does not.
func (l *Later) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.mu.withheld:
		l.mu.lost += int64(len(data))
	case l.mu.known:
		l.pass(data)
	default:
		kept := min(len(data), l.max-len(l.mu.waiting))
		if l.mu.lost > 0 {
			kept = 0 // the log has one gap
		}
		l.mu.waiting = append(l.mu.waiting, data[:kept]...)
		l.mu.lost += int64(len(data) - kept)
	}
	return len(data), nil
}

// pass writes to the log, but for the rest of a line that was cut.
func (l *Later) pass(data []byte) {
	if l.mu.cut > 0 {
		end := bytes.IndexAny(data, "\n\r") + 1
		switch {
		case end == 0 && len(data) < l.mu.cut:
			l.mu.cut -= len(data)
			l.mu.lost += int64(len(data))
			return
		case end == 0 || end > l.mu.cut:
			end = l.mu.cut
		}
		l.mu.cut = 0
		l.mu.lost += int64(end)
		data = data[end:]
		l.tellLost()
	}
	if l.mu.masker != nil {
		_, _ = l.mu.masker.Write(data)
		return
	}
	_, _ = l.mu.to.Write(data)
}

// Mask tells what to mask, and lets through what waits. Only the first of Mask and
// Withhold counts.
func (l *Later) Mask(texts []Masked) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.learn() {
		return
	}
	l.mu.masker = NewMasker(l.mu.to, texts)
	waiting, gap := l.mu.waiting, l.mu.lost
	l.mu.waiting, l.mu.lost = nil, 0
	if len(waiting) > 0 {
		l.pass(waiting)
	}
	if gap > 0 {
		if l.mu.masker != nil {
			l.mu.lost += int64(l.mu.masker.drop())
		}
		l.mu.lost, l.mu.cut = l.mu.lost+gap, cutAtMost
	}
}

// Withhold says that nobody knows any more what would have to be masked.
func (l *Later) Withhold() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.learn() {
		return
	}
	l.mu.withheld = true
	l.mu.lost += int64(len(l.mu.waiting))
	l.mu.waiting = nil
	_, _ = io.WriteString(l.mu.to, "\n[withheld: what follows may hold secrets that are no longer known here]\n")
}

// learn notes that it is told; false: it was before.
func (l *Later) learn() bool {
	if l.mu.known {
		return false
	}
	l.mu.known = true
	close(l.told)
	return true
}

// tellLost has the log say what it lacks.
func (l *Later) tellLost() {
	_, _ = fmt.Fprintf(l.mu.to, "\n[withheld: %d bytes that may hold secrets]\n", l.mu.lost)
	l.mu.lost = 0
}

// Close ends the log. It waits so long to be told what to mask, and withholds what
// waits then.
func (l *Later) Close(patience time.Duration) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-l.told:
	case <-timer.C:
		l.Withhold()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.masker != nil {
		_ = l.mu.masker.Close() // it never fails
	}
	if l.mu.lost > 0 {
		l.tellLost()
	}
}

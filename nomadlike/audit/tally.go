package audit

import (
	"cmp"
	"slices"
	"time"

	"nomadlike/nomadlike/structs"
)

// Cause is what refusals are counted by.
type Cause struct{ Address, TokenID, Reason string }

// Tally bounds how many refusals are recorded. The first ones of a cause are
// records of their own; the others within a span become one record with their
// count. It is for one goroutine at a time.
type Tally struct {
	Per    time.Duration // the span
	Single int           // records of their own in a span, of a caller with a token; of others 1
	Max    int           // causes that are told apart; what is beyond counts together

	open map[Cause]*counted
	rest counted // of causes beyond Max
}

type counted struct {
	since  structs.UnixNano
	single int
	more   int    // not recorded yet
	last   Record // of those
}

// Note takes a refusal, and reports whether it is recorded at once.
func (t *Tally) Note(cause Cause, r Record) bool {
	one := t.open[cause]
	switch {
	case one != nil:
	case len(t.open) >= t.Max:
		if t.rest.more == 0 {
			t.rest.since = r.Time
		}
		t.rest.more++
		t.rest.last = r
		return false
	default:
		if t.open == nil {
			t.open = make(map[Cause]*counted)
		}
		one = &counted{since: r.Time}
		t.open[cause] = one
	}
	most := 1
	if cause.TokenID != "" {
		most = t.Single
	}
	if one.single < most {
		one.single++
		return true
	}
	one.more++
	one.last = r
	return false
}

// Due returns the records of counts whose span is over, or of all: the last
// refusal of each, with how many it stands for. They are counted no more.
func (t *Tally) Due(now structs.UnixNano, all bool) []Record {
	var due []Record
	for cause, one := range t.open {
		if !all && now.Sub(one.since) < t.Per {
			continue
		}
		delete(t.open, cause)
		if one.more > 0 {
			one.last.Count = one.more
			due = append(due, one.last)
		}
	}
	slices.SortFunc(due, func(x, y Record) int { return cmp.Or(cmp.Compare(x.Time, y.Time), cmp.Compare(x.Request, y.Request)) })
	if t.rest.more > 0 && (all || now.Sub(t.rest.since) >= t.Per) {
		r := t.rest.last
		r.Actor, r.Address, r.Object, r.Request = Actor{}, "", Object{}, "" // of many
		r.Count = t.rest.more
		due = append(due, r)
		t.rest = counted{}
	}
	return due
}

// Seen remembers what was recorded of late, so that what goes on is recorded
// once in a span. It is for one goroutine at a time.
type Seen[Key comparable] struct {
	Per time.Duration
	Max int // keys that are remembered; beyond, all are forgotten and recorded anew

	at map[Key]structs.UnixNano
}

// First reports whether a key comes for the first time in a span.
func (s *Seen[Key]) First(key Key, now structs.UnixNano) bool {
	if at, known := s.at[key]; known && now >= at && now.Sub(at) < s.Per {
		return false
	}
	if s.at == nil || len(s.at) >= s.Max {
		s.at = make(map[Key]structs.UnixNano)
	}
	s.at[key] = now
	return true
}

package load

import (
	"slices"
	"time"

	"nomadlike/nomadlike/structs"
)

// Kind is what a span does with cards.
type Kind uint8

// The kinds of spans, by who comes first when a node has fewer cards than its
// spans take.
const (
	Used     Kind = iota // by a job that runs or ran
	Held                 // by a rank that has failed and is held for people to look at
	Foreseen             // by a job that waits, from the start that is forecast
	Reserved             // by nobody: kept for a job that waits
	kinds
)

// Span is a time in which something takes cards of a node, From included and To
// not.
type Span struct {
	Node  string // id; "": it is known by its pool alone
	Pool  string // of one without a node
	Kind  Kind
	Cards int
	Nodes int // of one without a node: on how many it stands, for pools without cards
	From  structs.UnixNano
	To    structs.UnixNano // 0: nobody knows
}

// Site is a node.
type Site struct {
	ID    string
	Pool  string
	Cards int
	From  structs.UnixNano // it was not there before
	Down  []Outage
}

// Outage is a time in which cards of a node could not be given to new work.
type Outage struct {
	Cards int              // 0: all, since the node itself was away
	Card  string           // id of the card, where it is one
	From  structs.UnixNano // 0: since before anything that is known
	To    structs.UnixNano // 0: it lasts
}

// Times are the multiples of step from past before now to ahead after it, and now
// itself, whose place comes with them.
func Times(now structs.UnixNano, past, ahead, step time.Duration) (times []structs.UnixNano, at int) {
	every := structs.UnixNano(step)
	first := now.Add(-past)
	if over := first % every; over != 0 {
		first += every - over
	}
	for t := first; t <= now.Add(ahead); t += every {
		times = append(times, t)
	}
	at, found := slices.BinarySearch(times, now)
	if !found {
		times = slices.Insert(times, at, now)
	}
	return times, at
}

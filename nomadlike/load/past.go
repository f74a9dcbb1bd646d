package load

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"nomadlike/nomadlike/structs"
)

// View is what of the replicated state the past is read from.
type View interface {
	// Nodes iterates all nodes.
	Nodes() iter.Seq2[*structs.Node, *structs.Usage]
	// Allocs iterates all allocations that are kept.
	Allocs() iter.Seq[*structs.Allocation]
	// RecentEvents iterates the events that are kept from a time on, oldest first.
	RecentEvents(since structs.UnixNano) iter.Seq[*structs.Event]
	// PastRuns returns the ended attempts that are kept after a sequence number,
	// oldest first, also of jobs that are forgotten.
	PastRuns(since uint64) []*structs.PastRun
}

// Events that the past is made of.
const (
	eventHoldOver  = "event.alloc.hold_over"
	eventHoldFreed = "event.alloc.hold_freed"
)

// change is something that an event says: from then on a node, or a card of it,
// is well or not.
type change struct {
	at  structs.UnixNano
	bad bool
}

// what of a node is well or not: its status, its eligibility, a fault of it, a card.
const (
	aspectStatus      = "status"
	aspectEligibility = "eligibility"
	aspectFault       = "fault/"
	aspectCard        = "card/"
)

// told is what an event says of a node; "": nothing.
func told(event *structs.Event) (aspect string, bad bool) {
	switch strings.TrimPrefix(event.ID, "event.node.") {
	case "lost", "left", "disconnected":
		return aspectStatus, true
	case "ready", "returned", "registered":
		return aspectStatus, false
	case "cordoned", "draining":
		return aspectEligibility, true
	case "eligible":
		return aspectEligibility, false
	case "unfit":
		return aspectFault + event.Params["fault"], true
	case "fault", "fault_over":
		return aspectFault + event.Params["fault"], false
	case "device_suspect", "device_unwell":
		return aspectCard + event.Params["device"], true
	case "device_well", "device_noted":
		return aspectCard + event.Params["device"], false
	}
	return "", false
}

// history is what events tell of nodes and holds.
type history struct {
	nodes  map[string]map[string][]change // by node and aspect
	joined map[string]structs.UnixNano    // by node
	freed  map[string]structs.UnixNano    // by allocation: when its hold gave back its cards
}

func historyOf(view View, from structs.UnixNano) *history {
	h := &history{nodes: make(map[string]map[string][]change), joined: make(map[string]structs.UnixNano), freed: make(map[string]structs.UnixNano)}
	for event := range view.RecentEvents(from) {
		switch {
		case event.ID == eventHoldFreed, event.ID == eventHoldOver && h.freed[event.AllocID] == 0:
			h.freed[event.AllocID] = event.Time
		case event.NodeID != "":
			aspect, bad := told(event)
			if aspect == "" {
				continue
			}
			if event.ID == "event.node.registered" {
				h.joined[event.NodeID] = event.Time
			}
			of := h.nodes[event.NodeID]
			if of == nil {
				of = make(map[string][]change)
				h.nodes[event.NodeID] = of
			}
			of[aspect] = append(of[aspect], change{event.Time, bad})
		}
	}
	return h
}

// outages are the times in which an aspect was not well: before the first change
// it was the other way round, and now is as it is. since is when it came to that,
// where no change says; 0: not known.
func outages(changes []change, badNow bool, since structs.UnixNano, cards int) (list []Outage) {
	if len(changes) == 0 {
		if badNow {
			list = append(list, Outage{Cards: cards, From: since})
		}
		return list
	}
	last := len(changes) - 1
	bad, from := !changes[0].bad, structs.UnixNano(0)
	for i, c := range changes {
		now := c.bad
		if i == last {
			now = badNow
		}
		if bad && !now {
			list = append(list, Outage{Cards: cards, From: from, To: c.at})
		}
		if !bad && now {
			from = c.at
		}
		bad = now
	}
	if bad {
		list = append(list, Outage{Cards: cards, From: from})
	}
	return list
}

// siteOf is a node with the times in which it, or cards of it, were away.
func (h *history) siteOf(node *structs.Node) Site {
	site := Site{ID: node.ID, Pool: node.PoolName(), Cards: len(node.Devices), From: h.joined[node.ID]}
	of := h.nodes[node.ID]
	site.Down = append(site.Down, outages(of[aspectStatus], node.Status != structs.NodeReady, node.StatusAt, 0)...)
	site.Down = append(site.Down, outages(of[aspectEligibility], node.Eligibility != structs.NodeEligible, 0, 0)...)
	unfit := make(map[string]bool)
	for i := range node.Faults {
		unfit[aspectFault+node.Faults[i].Name] = node.Faults[i].Unfit
	}
	for aspect := range of {
		if _, now := unfit[aspect]; !now && strings.HasPrefix(aspect, aspectFault) {
			unfit[aspect] = false // it was not always
		}
	}
	for aspect, badNow := range unfit {
		site.Down = append(site.Down, outages(of[aspect], badNow, 0, 0)...)
	}
	for i := range node.Devices {
		d := &node.Devices[i]
		for _, outage := range outages(of[aspectCard+d.ID], !d.Healthy, 0, 1) {
			outage.Card = d.ID
			site.Down = append(site.Down, outage)
		}
	}
	for i := range node.Maintenance {
		w := &node.Maintenance[i]
		site.Down = append(site.Down, Outage{From: w.Start, To: w.End})
	}
	slices.SortFunc(site.Down, func(a, b Outage) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Cards, b.Cards), cmp.Compare(a.Card, b.Card))
	})
	return site
}

// Past reports which nodes there are and what was held of them from a time on until
// now, now included. What still runs is told until now and no further; what is held
// for people to look at, until its hold ends.
func Past(view View, from, now structs.UnixNano) (sites []Site, spans []Span) {
	h := historyOf(view, from)
	for node := range view.Nodes() {
		sites = append(sites, h.siteOf(node))
	}
	gone := runsSince(view, from)
	for alloc := range view.Allocs() {
		if len(gone) > 0 {
			delete(gone, alloc.JobID)
		}
		spans = h.spansOf(alloc, from, now, spans)
	}
	for _, of := range gone {
		spans = append(spans, of...)
	}
	slices.SortFunc(spans, func(a, b Span) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Cards, b.Cards))
	})
	return sites, spans
}

// runsSince are the attempts that ended after a time, by job: each may be forgotten.
func runsSince(view View, from structs.UnixNano) map[string][]Span {
	ended := make(map[string][]Span)
	runs := view.PastRuns(0)
	for i := len(runs) - 1; i >= 0 && runs[i].EndedAt > from; i-- {
		run := runs[i]
		ended[run.JobID] = append(ended[run.JobID], Span{
			Pool: cmp.Or(run.Pool, structs.PoolDefault), Kind: Used, Cards: run.Devices, Nodes: run.Nodes,
			From: run.EndedAt.Add(-run.Runtime.Std()), To: run.EndedAt,
		})
	}
	return ended
}

// spansOf appends what an allocation held of its node.
func (h *history) spansOf(alloc *structs.Allocation, from, now structs.UnixNano, spans []Span) []Span {
	end := alloc.FinishedAt
	if !alloc.Status.Terminal() {
		end = now + 1
	}
	hold := alloc.Hold
	freed := h.freed[alloc.ID]
	if end <= from && hold == nil && freed == 0 {
		return spans
	}
	begin := alloc.PlacedAt
	if alloc.StartedAt != 0 {
		begin = min(begin, alloc.StartedAt) // a hold that gave its cards back is placed anew
	}
	cards := len(alloc.Devices)
	if cards == 0 {
		cards = alloc.Spec.DeviceCount()
	}
	span := Span{Node: alloc.NodeID, Kind: Used, Cards: cards, From: begin, To: end}
	spans = append(spans, span)
	span.Kind, span.From = Held, end
	switch {
	case freed != 0:
		span.To = freed
	case hold == nil, hold.Freed && len(alloc.Devices) == 0 && cards > 0:
		return spans
	default:
		span.To = max(hold.Until, now+1)
	}
	if span.To <= span.From {
		return spans
	}
	return append(spans, span)
}

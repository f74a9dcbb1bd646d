package load

import (
	"cmp"
	"slices"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/structs/outlook"
)

// Limits bound what Holders tells.
type Limits struct {
	Nodes int // those that were removed are left out first, then the last by name
	Spans int // that have ended, of one node: the newest
	All   int // that have ended, of all nodes: the newest; and as many uses of forgotten jobs
}

// Holders reports which job held each card from a time on until now, now included:
// for each node that there is, and for those that were removed as far as jobs are
// kept that ran there. What exceeds the limits is left out, and the answer says so.
// Users are not filled in: allocations do not know them.
func Holders(view View, from, now structs.UnixNano, limits Limits) *outlook.Past {
	w := &holders{history: historyOf(view, from), from: from, now: now, at: make(map[string]int)}
	out := &outlook.Past{From: from, To: now, Nodes: []outlook.PastNode{}}
	for node := range view.Nodes() {
		w.add(w.siteOf(node), node)
	}
	here := len(w.nodes)
	gone := runsSince(view, from)
	for alloc := range view.Allocs() {
		delete(gone, alloc.JobID)
		w.put(alloc)
	}
	for _, of := range gone {
		for _, span := range of {
			out.Forgotten = append(out.Forgotten, outlook.PastUse{Pool: span.Pool, Cards: span.Cards, Nodes: span.Nodes, From: span.From, To: span.To})
		}
	}
	slices.SortFunc(out.Forgotten, func(a, b outlook.PastUse) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Cards, b.Cards), cmp.Compare(a.Nodes, b.Nodes))
	})
	if over := len(out.Forgotten) - limits.All; over > 0 { // the newest tell most of what is looked for
		out.Forgotten = out.Forgotten[over:]
	}
	slices.SortStableFunc(w.nodes[:here], byName)
	slices.SortStableFunc(w.nodes[here:], byName)
	out.More = max(0, len(w.nodes)-limits.Nodes)
	for _, node := range w.nodes[:len(w.nodes)-out.More] {
		slices.SortFunc(node.Spans, bySpan)
		out.Nodes = append(out.Nodes, *node)
	}
	for i := range out.Nodes {
		cutBefore(&out.Nodes[i], newestEnd(ends(out.Nodes[i:i+1]), limits.Spans))
	}
	all := newestEnd(ends(out.Nodes), limits.All)
	for i := range out.Nodes {
		cutBefore(&out.Nodes[i], all)
	}
	return out
}

// holders is the work of one Holders.
type holders struct {
	*history
	from, now structs.UnixNano
	nodes     []*outlook.PastNode
	at        map[string]int // of a node in nodes, by id
}

func byName(a, b *outlook.PastNode) int {
	return cmp.Or(structs.CompareNames(a.Node, b.Node), cmp.Compare(a.NodeID, b.NodeID))
}

func bySpan(a, b outlook.PastSpan) int {
	return cmp.Or(cmp.Compare(a.From, b.From), slices.Compare(a.Cards, b.Cards), cmp.Compare(a.JobID, b.JobID), cmp.Compare(a.Subjob, b.Subjob), cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.To, b.To))
}

// add begins a node that there is.
func (w *holders) add(site Site, node *structs.Node) {
	past := &outlook.PastNode{NodeID: node.ID, Node: node.Name, Pool: site.Pool, Cards: []outlook.PastCard{}, Spans: []outlook.PastSpan{}}
	if site.From > w.from {
		past.JoinedAt = site.From
	}
	for i := range node.Devices {
		past.Cards = append(past.Cards, outlook.PastCard{ID: node.Devices[i].ID, Index: node.Devices[i].Index})
	}
	slices.SortStableFunc(past.Cards, func(a, b outlook.PastCard) int {
		return cmp.Or(cmp.Compare(a.Index, b.Index), structs.CompareNames(a.ID, b.ID))
	})
	for _, down := range site.Down {
		if down.From > w.now || down.To != 0 && down.To <= max(w.from, site.From) {
			continue
		}
		outage := outlook.PastOutage{From: down.From, To: down.To}
		if down.To > w.now {
			outage.To = 0
		}
		if down.Card != "" {
			place := placeOf(past, down.Card)
			outage.Card = &place
		}
		past.Outages = append(past.Outages, outage)
	}
	w.at[node.ID] = len(w.nodes)
	w.nodes = append(w.nodes, past)
}

// placeOf is where a card stands in the list of its node, which takes it up as gone
// when it is not there.
func placeOf(node *outlook.PastNode, id string) int {
	place := slices.IndexFunc(node.Cards, func(c outlook.PastCard) bool { return c.ID == id })
	if place < 0 {
		place = len(node.Cards)
		node.Cards = append(node.Cards, outlook.PastCard{ID: id, Gone: true})
	}
	return place
}

// put adds what an allocation held.
func (w *holders) put(alloc *structs.Allocation) {
	if alloc.Quarantined { // until its node returns, nobody else gets what it has
		still := *alloc
		still.Status = structs.AllocRunning
		alloc = &still
	}
	for _, held := range w.spansOf(alloc, w.from, w.now, nil) {
		if held.To <= max(held.From, w.from) || held.From > w.now {
			continue
		}
		node := w.nodeOf(alloc)
		span := outlook.PastSpan{
			JobID: alloc.JobID, Job: alloc.JobName, Project: alloc.Project, Subjob: alloc.Subjob, Attempt: alloc.Attempt,
			Held: held.Kind == Held, Cards: make([]int, 0, len(alloc.Devices)), CPU: alloc.Spec.CPU, From: held.From,
		}
		if held.To <= w.now {
			span.To = held.To
		}
		for _, id := range alloc.Devices {
			span.Cards = append(span.Cards, placeOf(node, id))
		}
		slices.Sort(span.Cards)
		span.UnknownCards = held.Cards - len(span.Cards)
		node.Spans = append(node.Spans, span)
	}
}

// nodeOf is the node of an allocation, one that was removed if need be.
func (w *holders) nodeOf(alloc *structs.Allocation) *outlook.PastNode {
	place, known := w.at[alloc.NodeID]
	if !known {
		place = len(w.nodes)
		w.at[alloc.NodeID] = place
		w.nodes = append(w.nodes, &outlook.PastNode{
			NodeID: alloc.NodeID, Node: alloc.NodeName, Pool: cmp.Or(alloc.Pool, structs.PoolDefault), Removed: true,
			Cards: []outlook.PastCard{}, Spans: []outlook.PastSpan{},
		})
	}
	return w.nodes[place]
}

// ends are the times at which spans of nodes end that have ended.
func ends(nodes []outlook.PastNode) (list []structs.UnixNano) {
	for i := range nodes {
		for k := range nodes[i].Spans {
			if to := nodes[i].Spans[k].To; to != 0 {
				list = append(list, to)
			}
		}
	}
	return list
}

// newestEnd is the end of the newest of some spans that must be left out, so that no
// more than most are kept; 0: none need be.
func newestEnd(ends []structs.UnixNano, most int) structs.UnixNano {
	if len(ends) <= most {
		return 0
	}
	slices.Sort(ends)
	return ends[len(ends)-most-1]
}

// cutBefore leaves out the spans of a node that ended at a time or before; 0: none.
func cutBefore(node *outlook.PastNode, end structs.UnixNano) {
	kept := slices.DeleteFunc(node.Spans, func(s outlook.PastSpan) bool { return s.To != 0 && s.To <= end })
	if len(kept) < len(node.Spans) {
		node.CompleteSince = max(node.CompleteSince, end)
	}
	node.Spans = kept
}

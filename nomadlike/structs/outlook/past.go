package outlook

import "nomadlike/nomadlike/structs"

// Past is which job held each card of each node over some time until now. It is
// what allocations say that are kept still: of jobs that were forgotten there is no
// more than Forgotten.
type Past struct {
	From  structs.UnixNano `json:"from"`
	To    structs.UnixNano `json:"to"`             // when somebody looked
	Nodes []PastNode       `json:"nodes"`          // by name, last those that were removed
	More  int              `json:"more,omitempty"` // nodes that were left out
	// Forgotten is what jobs used, nobody knows on which nodes, that were deleted or
	// are kept no longer, by From.
	Forgotten []PastUse `json:"forgotten,omitempty"`
}

// PastNode is one node of a Past.
type PastNode struct {
	NodeID  string `json:"node_id"`
	Node    string `json:"node"`
	Pool    string `json:"pool"`
	Removed bool   `json:"removed,omitempty"` // the cluster has it no more
	// JoinedAt is when it joined, if that was after the From of the Past; before that
	// it was not there.
	JoinedAt structs.UnixNano `json:"joined_at,omitempty"`
	// CompleteSince is from when on all of its spans are told: there were too many that
	// ended before. 0: none were left out.
	CompleteSince structs.UnixNano `json:"complete_since,omitempty"`
	Cards         []PastCard       `json:"cards"` // by number, last those that it has no more
	Spans         []PastSpan       `json:"spans"` // by From
	Outages       []PastOutage     `json:"outages,omitempty"`
}

// PastCard is a card of a PastNode.
type PastCard struct {
	ID    string `json:"id"`
	Index int    `json:"index"`          // the vendor's number; 0 of one that is gone
	Gone  bool   `json:"gone,omitempty"` // the node has it no more
}

// PastSpan is a time in which a rank held cards of a node, From included and To not.
// What the caller may not know of its job is left out.
type PastSpan struct {
	JobID   string `json:"job_id,omitempty"`
	Job     string `json:"job,omitempty"` // name
	Project string `json:"project,omitempty"`
	User    string `json:"user,omitempty"`
	Subjob  int    `json:"subjob,omitempty"`
	Attempt uint64 `json:"attempt,omitempty"`
	// Held says that the rank had failed and was held for people to look at.
	Held bool `json:"held,omitempty"`
	// Cards are those that it held, as places in the list of its node.
	Cards []int `json:"cards"`
	// UnknownCards are how many cards more it held of which nobody knows which.
	UnknownCards int              `json:"unknown_cards,omitempty"`
	CPU          float64          `json:"cpu,omitempty"` // cores
	From         structs.UnixNano `json:"from"`
	To           structs.UnixNano `json:"to"` // 0: it holds them still
}

// PastOutage is a time in which a node, or one card of it, took no work.
type PastOutage struct {
	Card *int             `json:"card,omitempty"` // place in the list of its node; nil: the node itself
	From structs.UnixNano `json:"from"`           // 0: since before anything that is known
	To   structs.UnixNano `json:"to"`             // 0: it lasts
}

// PastUse is what a job used that is forgotten.
type PastUse struct {
	Pool  string           `json:"pool"`
	Cards int              `json:"cards"` // on all nodes
	Nodes int              `json:"nodes"`
	From  structs.UnixNano `json:"from"`
	To    structs.UnixNano `json:"to"`
}

// Covers reports whether the span holds its cards at a time.
func (s *PastSpan) Covers(at structs.UnixNano) bool {
	return s.From <= at && (s.To == 0 || at < s.To)
}

// At is what was held at a time: the spans that cover it, and the outages and the uses
// of forgotten jobs that do. It shares what it does not change.
func (p *Past) At(at structs.UnixNano) *Past {
	out := *p
	out.From, out.To = at, at
	out.Nodes, out.Forgotten = make([]PastNode, 0, len(p.Nodes)), nil
	for _, node := range p.Nodes {
		spans, outages := node.Spans, node.Outages
		node.Spans, node.Outages = []PastSpan{}, nil
		for i := range spans {
			if spans[i].Covers(at) {
				node.Spans = append(node.Spans, spans[i])
			}
		}
		for _, outage := range outages {
			if outage.From <= at && (outage.To == 0 || at < outage.To) {
				node.Outages = append(node.Outages, outage)
			}
		}
		if !node.Removed || len(node.Spans) > 0 {
			out.Nodes = append(out.Nodes, node)
		}
	}
	for _, use := range p.Forgotten {
		if use.From <= at && at < use.To {
			out.Forgotten = append(out.Forgotten, use)
		}
	}
	return &out
}

package httpapi

import (
	"slices"
	"sync"
	"time"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/load"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/structs/outlook"
)

// Bounds of what is told of the past. A span is 250 bytes of JSON, more or less.
const (
	pastNodesMax     = 2_000
	pastNodeSpansMax = 500    // that have ended, of one node
	pastSpansMax     = 20_000 // that have ended, of all nodes
)

// pastFresh is how long a past is good when nothing has changed but time.
const pastFresh = 10 * time.Second

// pastCache keeps the past of the newest state that was asked about.
type pastCache struct {
	sync.Mutex
	at   uint64    // its schedule index
	when time.Time // it was told
	past *outlook.Past
}

// of tells the past of a state, with the users of its jobs. It is shared, and must
// not be changed.
func (c *pastCache) of(snapshot *state.Snapshot, now time.Time) *outlook.Past {
	c.Lock()
	defer c.Unlock()
	at := snapshot.ScheduleIndex()
	if c.past != nil && c.at >= at && now.Sub(c.when) < pastFresh {
		return c.past
	}
	to := structs.At(now)
	past := load.Holders(snapshot, to.Add(-outlookPast), to, load.Limits{Nodes: pastNodesMax, Spans: pastNodeSpansMax, All: pastSpansMax})
	users := make(map[string]string)
	for i := range past.Nodes {
		for k := range past.Nodes[i].Spans {
			span := &past.Nodes[i].Spans[k]
			user, known := users[span.JobID]
			if !known {
				if view, ok := snapshot.Job(span.JobID); ok {
					user = view.Job.User
				}
				users[span.JobID] = user
			}
			span.User = user
		}
	}
	c.at, c.when, c.past = at, now, past
	return past
}

// past answers outlook.past. Spans of jobs that the caller may not read keep their
// place and lose their name, as in the timeline of the hours ahead.
func (h *outlookHandlers) past(r *front.Request) (*outlook.Past, error) {
	q := front.Query{R: r}
	pool := q.Text("pool")
	if q.Err != nil {
		return nil, q.Err
	}
	snapshot, err := h.replica.Consistent(r.Context())
	if err != nil {
		return nil, err
	}
	out := *h.pasts.of(snapshot, h.now())
	if pool != "" {
		if snapshot.Pool(pool) == nil && !slices.ContainsFunc(out.Nodes, func(n outlook.PastNode) bool { return n.Pool == pool }) {
			return nil, auth.NotFound(auth.ObjectPool, pool)
		}
		out.Nodes = slices.DeleteFunc(slices.Clone(out.Nodes), func(n outlook.PastNode) bool { return n.Pool != pool })
		out.Forgotten = slices.DeleteFunc(slices.Clone(out.Forgotten), func(u outlook.PastUse) bool { return u.Pool != pool })
	}
	may := newViewer(r, snapshot)
	if may.all {
		return &out, nil
	}
	out.Nodes = slices.Clone(out.Nodes)
	for i := range out.Nodes {
		spans := slices.Clone(out.Nodes[i].Spans)
		for k := range spans {
			if s := &spans[k]; !may.job(s.JobID) {
				s.JobID, s.Job, s.Project, s.User, s.Subjob, s.Attempt = "", "", "", "", 0, 0
			}
		}
		out.Nodes[i].Spans = spans
	}
	return &out, nil
}

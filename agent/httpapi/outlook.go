package httpapi

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/forecast"
	"nomadlike/nomadlike/load"
	"nomadlike/nomadlike/scheduler"
	"nomadlike/nomadlike/server"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/structs/outlook"
)

// The times of an outlook.
const (
	outlookPast = 24 * time.Hour
	outlookStep = 15 * time.Minute
)

// startableFresh is how long what could start now is good when nothing has changed
// but time: a start before a reserved one depends on it.
const startableFresh = 10 * time.Second

// outlookHandlers reports how full pools were and will be.
type outlookHandlers struct {
	*core
	futures Forecasts
	boards  Boards
	loads   struct { // of the newest forecast
		sync.Mutex
		of   *server.ForecastSnapshot
		load *outlook.Load
	}
	pasts  pastCache
	starts struct { // of the newest state that was tried
		sync.Mutex
		at   uint64                         // its schedule index
		when time.Time                      // it was tried first
		of   map[string][]outlook.Startable // by pool and project
	}
}

// read answers outlook.read. What it counts is the same for everybody who may see
// pools at all: it names no jobs.
func (h *outlookHandlers) read(r *front.Request) (*api.Outlook, error) {
	q := front.Query{R: r}
	pool := q.Text("pool")
	if q.Err != nil {
		return nil, q.Err
	}
	snapshot, err := h.replica.Consistent(r.Context())
	if err != nil {
		return nil, err
	}
	shown, err := h.futures.ForecastSnapshot(r.Context(), 0, "")
	if err != nil {
		return nil, err
	}
	out := api.Outlook{Load: *h.loadOf(snapshot, shown)}
	if pool != "" {
		at := slices.IndexFunc(out.Pools, func(p outlook.PoolLoad) bool { return p.Pool == pool })
		if at < 0 && snapshot.Pool(pool) == nil {
			return nil, auth.NotFound(auth.ObjectPool, pool)
		}
		out.Pools = slices.DeleteFunc(slices.Clone(out.Pools), func(p outlook.PoolLoad) bool { return p.Pool != pool })
	}
	project := r.Caller.Standing.Project
	if out.CouldStart, err = h.couldStart(r.Context(), snapshot, pool, project); err != nil {
		out.CouldStart = nil
	}
	return &out, nil
}

// loadOf counts the load of a forecast, once.
func (h *outlookHandlers) loadOf(snapshot *state.Snapshot, shown *server.ForecastSnapshot) *outlook.Load {
	h.loads.Lock()
	defer h.loads.Unlock()
	if h.loads.of != shown {
		h.loads.of, h.loads.load = shown, loadAt(snapshot, shown)
	}
	return h.loads.load
}

// loadAt counts what a state says of the time before a forecast, and what that
// expects.
func loadAt(snapshot *state.Snapshot, shown *server.ForecastSnapshot) *outlook.Load {
	times, now := load.Times(shown.At, outlookPast, forecast.LoadAhead.Std(), outlookStep)
	sites, spans := load.Past(snapshot, times[0], shown.At)
	out := &outlook.Load{At: shown.At, Times: times, Now: now}
	out.All, out.Pools = load.Sum(sites, append(spans, shown.Spans()...), times)
	return out
}

// couldStart tries what could start now, once for each state, pool and project. The
// error is that of the context.
func (h *outlookHandlers) couldStart(ctx context.Context, snapshot *state.Snapshot, pool, project string) ([]outlook.Startable, error) {
	s := &h.starts
	s.Lock()
	defer s.Unlock()
	if at := snapshot.ScheduleIndex(); s.of == nil || s.at < at || h.now().Sub(s.when) >= startableFresh {
		s.at, s.when, s.of = at, h.now(), make(map[string][]outlook.Startable)
	}
	key := strconv.Quote(pool) + project
	if found, known := s.of[key]; known {
		return found, nil
	}
	job := &structs.Job{Name: "probe", Project: project, Resources: make([]structs.Resources, 1)}
	job.Placement.Pool = pool
	server.Complete(snapshot, job)
	var board *scheduler.Board
	if err := h.boards.Consult(ctx, func(newest *scheduler.Board) { board = newest.Clone() }); err != nil {
		return nil, err
	}
	found := forecast.CouldStart(board, job, structs.At(h.now()), board.Index())
	s.of[key] = found
	return found, nil
}

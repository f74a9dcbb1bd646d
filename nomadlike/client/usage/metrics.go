package usage

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/alloc"
	"nomadlike/nomadlike/client/loop"
	"nomadlike/nomadlike/client/metrics"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// Rhythms of the search for figures in what a task writes.
const (
	metricsEvery     = time.Second
	eventFilesEvery  = 5 * time.Second
	metricsSaveEvery = 10 * time.Second
	metricsLastLooks = 8 // at what a task left, each as much as one look takes
)

// metricPointsMax bounds the points of one answer, of all its series together.
const metricPointsMax = 100_000

// Measure takes the figures out of what a task writes until the allocation has
// ended, and then what it left. It never holds the task's end up.
func (u *Usage) Measure(work context.Context, t *loop.Task) {
	assigned := awaitAssignment(work, t)
	if assigned == nil {
		return
	}
	var patterns []string
	if assigned.Job.Metrics != nil {
		patterns = assigned.Job.Metrics.Patterns
	}
	collector := metrics.Open(u.Layout.Metrics(t.ID), patterns, u.Now())
	u.mu.Lock()
	u.mu.meters[t.ID] = collector
	u.mu.Unlock()
	defer func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.mu.meters, t.ID)
	}()
	tick := time.NewTicker(metricsEvery)
	defer tick.Stop()
	var events, saved time.Time
	for {
		select {
		case <-work.Done():
			u.saveMetrics(t.ID, collector)
			return
		case <-t.Ended:
			for i := range metricsLastLooks {
				u.readMetrics(work, collector, assigned, true, i == metricsLastLooks-1)
			}
			u.saveMetrics(t.ID, collector)
			return
		case now := <-tick.C:
			withEvents := now.Sub(events) >= eventFilesEvery
			if withEvents {
				events = now
			}
			u.readMetrics(work, collector, assigned, withEvents, false)
			if now.Sub(saved) >= metricsSaveEvery {
				saved = now
				u.saveMetrics(t.ID, collector)
			}
		}
	}
}

// awaitAssignment waits for what the servers say of a task that was taken over;
// nil when it has ended, or the agent has.
func awaitAssignment(work context.Context, t *loop.Task) *structs.Assignment {
	tick := time.NewTicker(metricsEvery)
	defer tick.Stop()
	for {
		if a := t.Assigned.Load(); a != nil && a.Job != nil && a.Alloc != nil {
			return a
		}
		select {
		case <-work.Done():
			return nil
		case <-t.Ended:
			return nil
		case <-tick.C:
		}
	}
}

// readMetrics takes what is new. Ranks may share the directory of event files:
// the first one reads them.
func (u *Usage) readMetrics(ctx context.Context, collector *metrics.Collector, a *structs.Assignment, events, over bool) {
	err := collector.ReadLogs(ctx, u.Layout.Logs(a.Alloc.ID), u.Now(), over)
	if dir := a.Job.EventsDir(); events && dir != "" && a.Alloc.Rank == 0 {
		if place, ok := u.Places.PlaceOf(a, dir); ok {
			failed := place.Within(func(root *os.Root) error { return collector.ReadEvents(ctx, root) })
			if !errors.Is(failed, fs.ErrNotExist) {
				err = errors.Join(err, failed)
			}
		}
	}
	if err != nil && ctx.Err() == nil {
		u.Log.Debug("figures of a task are not read", logkey.AllocID, a.Alloc.ID, logkey.Error, err)
	}
}

func (u *Usage) saveMetrics(id string, collector *metrics.Collector) {
	if err := collector.Save(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		u.Log.Warn("figures of a task are not kept", logkey.AllocID, id, logkey.Error, err)
	}
}

// Metrics answers Node.Metrics: the metrics of allocations that run here, or
// whose directory is kept. Any goroutine may call it.
func (u *Usage) Metrics(request *structs.MetricsRequest) (*structs.NodeMetrics, error) {
	if len(request.AllocIDs) > structs.MetricsAllocsMax || request.Points < 1 || request.Points > metrics.PointsMax {
		return nil, structs.NewError(structs.CodeInvalid, "client.metrics_request", "max", structs.MetricsAllocsMax)
	}
	out := &structs.NodeMetrics{}
	left := metricPointsMax
	for _, id := range request.AllocIDs {
		if !driver.ValidTaskID(alloc.TaskID(id)) {
			continue
		}
		u.mu.Lock()
		collector := u.mu.meters[id]
		u.mu.Unlock()
		one := structs.AllocMetrics{AllocID: id}
		points := min(request.Points, max(left/metrics.SeriesMax, 2))
		if collector != nil {
			one.Series, one.LeftOut = collector.Series(request.Names, points)
		} else {
			one.Series, one.LeftOut = metrics.Read(u.Layout.Metrics(id), request.Names, points)
		}
		for i := range one.Series {
			left -= len(one.Series[i].Points)
		}
		if len(one.Series) > 0 || one.LeftOut > 0 {
			out.Allocs = append(out.Allocs, one)
		}
	}
	return out, nil
}

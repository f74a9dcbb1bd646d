package client

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/alloc"
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

// measure takes the figures out of what a task writes until the allocation has
// ended, and then what it left. It never holds the task's end up.
func (c *Client) measure(work context.Context, r *runner) {
	assigned := c.awaitAssignment(work, r)
	if assigned == nil {
		return
	}
	var patterns []string
	if assigned.Job.Metrics != nil {
		patterns = assigned.Job.Metrics.Patterns
	}
	collector := metrics.Open(c.files.metrics(r.id), patterns, c.config.Now())
	c.mu.Lock()
	if c.mu.meters == nil {
		c.mu.meters = make(map[string]*metrics.Collector)
	}
	c.mu.meters[r.id] = collector
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.mu.meters, r.id)
	}()
	tick := time.NewTicker(metricsEvery)
	defer tick.Stop()
	var events, saved time.Time
	for {
		select {
		case <-work.Done():
			c.saveMetrics(r.id, collector)
			return
		case <-r.ended:
			for i := range metricsLastLooks {
				c.readMetrics(work, collector, assigned, true, i == metricsLastLooks-1)
			}
			c.saveMetrics(r.id, collector)
			return
		case now := <-tick.C:
			withEvents := now.Sub(events) >= eventFilesEvery
			if withEvents {
				events = now
			}
			c.readMetrics(work, collector, assigned, withEvents, false)
			if now.Sub(saved) >= metricsSaveEvery {
				saved = now
				c.saveMetrics(r.id, collector)
			}
		}
	}
}

// awaitAssignment waits for what the servers say of a task that was taken over;
// nil when it has ended, or the agent has.
func (c *Client) awaitAssignment(work context.Context, r *runner) *structs.Assignment {
	tick := time.NewTicker(metricsEvery)
	defer tick.Stop()
	for {
		if a := r.assigned.Load(); a != nil && a.Job != nil && a.Alloc != nil {
			return a
		}
		select {
		case <-work.Done():
			return nil
		case <-r.ended:
			return nil
		case <-tick.C:
		}
	}
}

// readMetrics takes what is new. Ranks may share the directory of event files:
// the first one reads them.
func (c *Client) readMetrics(ctx context.Context, collector *metrics.Collector, a *structs.Assignment, events, over bool) {
	err := collector.ReadLogs(ctx, c.files.logs(a.Alloc.ID), c.config.Now(), over)
	if dir := a.Job.EventsDir(); events && dir != "" && a.Alloc.Rank == 0 {
		if place, ok := c.placeOf(a, dir); ok {
			failed := place.Within(func(root *os.Root) error { return collector.ReadEvents(ctx, root) })
			if !errors.Is(failed, fs.ErrNotExist) {
				err = errors.Join(err, failed)
			}
		}
	}
	if err != nil && ctx.Err() == nil {
		c.log.Debug("figures of a task are not read", logkey.AllocID, a.Alloc.ID, logkey.Error, err)
	}
}

func (c *Client) saveMetrics(id string, collector *metrics.Collector) {
	if err := collector.Save(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.log.Warn("figures of a task are not kept", logkey.AllocID, id, logkey.Error, err)
	}
}

// Metrics answers Node.Metrics: the figures of allocations that run here, or
// whose directory is kept. Any goroutine may call it.
func (c *Client) Metrics(request *structs.MetricsRequest) (*structs.NodeMetrics, error) {
	if len(request.AllocIDs) > structs.MetricsAllocsMax || request.Points < 1 || request.Points > metrics.PointsMax {
		return nil, structs.NewError(structs.CodeInvalid, "client.metrics_request", "max", structs.MetricsAllocsMax)
	}
	out := &structs.NodeMetrics{}
	left := metricPointsMax
	for _, id := range request.AllocIDs {
		if !driver.ValidTaskID(alloc.TaskID(id)) {
			continue
		}
		c.mu.Lock()
		collector := c.mu.meters[id]
		c.mu.Unlock()
		one := structs.AllocMetrics{AllocID: id}
		points := min(request.Points, max(left/metrics.SeriesMax, 2))
		if collector != nil {
			one.Series, one.LeftOut = collector.Series(request.Names, points)
		} else {
			one.Series, one.LeftOut = metrics.Read(c.files.metrics(id), request.Names, points)
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

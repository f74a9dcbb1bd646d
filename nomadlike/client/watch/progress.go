package watch

import (
	"bytes"
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/progress"
	"nomadlike/nomadlike/client/retry"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
	"nomadlike/plugins/driver/tasklog"
)

// Rhythms and bounds of the watches over a task's log.
const (
	progressTickMost   = 5 * time.Second // between looks at the silence
	progressTickLeast  = 200 * time.Millisecond
	useEvery           = 5 * time.Second // between measurements of what its devices do
	progressLineMax    = 4 << 10         // bytes of a line that are looked at
	progressLinesMax   = 5000            // lines looked at in progressLinesEvery; the others are signs of life only
	progressLinesEvery = time.Second
	progressOpenEvery  = 100 * time.Millisecond // between looks for a log that is not there yet
)

// progressWatch holds the performance watch and the hang watch of one task. Readers
// of stdout and stderr give it lines, run looks at the time.
type progressWatch struct {
	watcher *watcher
	mu      struct {
		sync.Mutex
		meter *progress.Meter // nil: not asked for
		pulse *progress.Pulse // nil: not asked for
		lines int             // looked at since since
		since time.Duration
	}
}

// progressOf makes the watches that a job asks for, nil when it asks for none.
func (w *watcher) progressOf(job *structs.Job) *progressWatch {
	if job == nil || job.Hang == nil && (job.Checkpoint == nil || job.Checkpoint.Performance == nil) {
		return nil
	}
	if a := w.task.Assigned.Load(); a != nil && job.IsServer(a.Alloc.Rank) {
		return nil // parameter servers say nothing of steps
	}
	p := &progressWatch{watcher: w}
	var err error
	if job.Hang != nil {
		if p.mu.pulse, err = progress.NewPulse(*job.Hang, w.Boottime()); err != nil {
			w.Log.Warn("hang watch has no pattern", logkey.AllocID, w.id, logkey.Error, err)
		}
	}
	if c := job.Checkpoint; c != nil && c.Performance != nil {
		if p.mu.meter, err = progress.NewMeter(*c.Performance); err != nil {
			w.Log.Warn("performance watch has no pattern", logkey.AllocID, w.id, logkey.Error, err)
		}
	}
	return p
}

// Run watches until ctx ends. A task that runs already is watched from now on:
// what it wrote before says nothing about the time.
func (p *progressWatch) run(ctx context.Context, fresh bool) {
	var reading sync.WaitGroup
	defer reading.Wait()
	for _, stream := range []string{tasklog.Stdout, tasklog.Stderr} {
		reading.Go(func() { p.read(ctx, stream, fresh) })
	}
	every := progressTickMost
	if a := p.watcher.task.Assigned.Load(); a != nil && a.Job != nil && a.Job.Hang != nil {
		every = max(progressTickLeast, min(a.Job.Hang.Least.Std()/4, every))
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	var measuredAt time.Duration
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := p.watcher.Boottime()
		if now-measuredAt >= min(useEvery, every) {
			measuredAt = now
			p.measure(ctx)
		}
		p.look(now)
	}
}

// Look asks the hang watch.
func (p *progressWatch) look(now time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.pulse == nil {
		return
	}
	if p.standsStill() {
		p.mu.pulse.Rest(now)
		return
	}
	if found, ok := p.mu.pulse.Tick(now); ok {
		p.tell(structs.AllocNote{Progress: &found})
	}
}

// standsStill reports whether the task is paused.
func (p *progressWatch) standsStill() bool {
	a := p.watcher.task.Assigned.Load()
	return a != nil && a.Alloc.Control.Pauses()
}

func (p *progressWatch) tell(note structs.AllocNote) {
	p.watcher.tell(p.watcher.Notes.Next(), note)
}

// measure looks what the devices of the task do, or its processes when it has
// none.
func (p *progressWatch) measure(ctx context.Context) {
	w := p.watcher
	a := w.task.Assigned.Load()
	if a == nil {
		return
	}
	use := progress.Use{At: w.Boottime()}
	if len(a.Alloc.Devices) > 0 {
		figures := w.Devices.Measured()
		use.Cards = make(map[string]float64, len(a.Alloc.Devices))
		for _, id := range a.Alloc.Devices {
			if one, ok := figures[id]; ok {
				if share, ok := one.Gauges[device.GaugeUtilization]; ok {
					use.Cards[id] = share
				}
			}
		}
	} else {
		figures, err := w.Usage.Current(ctx)
		if err != nil {
			return
		}
		known := false
		for i := range figures.Tasks {
			if figures.Tasks[i].AllocID == w.id {
				use.Cores, known = figures.Tasks[i].CPUCores, true
			}
		}
		if !known {
			return
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.pulse != nil {
		p.mu.pulse.Measured(use)
	}
}

// read follows one stream of the log.
func (p *progressWatch) read(ctx context.Context, stream string, fresh bool) {
	request := tasklog.Request{Top: p.watcher.Layout.Root, Dir: p.watcher.Layout.Logs(p.watcher.id), Stream: stream, Follow: true}
	if !fresh {
		request.TailBytes = 1
	}
	var rest []byte
	for {
		err := tasklog.Read(ctx, request, func(chunk tasklog.Chunk) error {
			request.Offset, request.TailBytes = chunk.Offset+int64(len(chunk.Data)), 0
			rest = p.lines(rest, chunk.Data)
			return nil
		})
		if ctx.Err() != nil {
			return
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			p.watcher.Log.Debug("log cannot be watched", logkey.AllocID, p.watcher.id, logkey.Error, err)
		}
		if !retry.Sleep(ctx, progressOpenEvery) {
			return
		}
	}
}

// lines passes whole lines to the watches and returns what is left over.
func (p *progressWatch) lines(rest, data []byte) []byte {
	now := p.watcher.Boottime()
	p.mu.Lock()
	defer p.mu.Unlock()
	if now-p.mu.since >= progressLinesEvery {
		p.mu.since, p.mu.lines = now, 0
	}
	for {
		end := bytes.IndexAny(data, "\n\r") // progress bars go back to the begin of their line
		if end < 0 {
			room := max(progressLineMax-len(rest), 0)
			return append(rest, data[:min(len(data), room)]...)
		}
		line := append(rest, data[:min(end, max(progressLineMax-len(rest), 0))]...)
		data, rest = data[end+1:], rest[:0]
		if p.mu.lines++; p.mu.lines > progressLinesMax {
			line = nil
		}
		if p.mu.pulse != nil {
			if found, ok := p.mu.pulse.Line(line, now); ok {
				p.tell(structs.AllocNote{Progress: &found})
			}
		}
		if p.mu.meter != nil {
			if found, ok := p.mu.meter.Line(line); ok {
				p.tell(structs.AllocNote{Slow: &found})
			}
		}
	}
}

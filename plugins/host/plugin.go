package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/plugins/driver"
)

// How a plugin is watched.
const (
	restartFirst = 100 * time.Millisecond
	restartSlow  = 30 * time.Second
	// restartCalm is how long a plugin must live for its next death to count
	// as a first one.
	restartCalm = time.Minute
	exitPoll    = 100 * time.Millisecond
	// recoverLimit bounds taking tasks over after a restart.
	recoverLimit = 15 * time.Second
	recoverMany  = 16 // at a time
)

// timing is what tests make shorter.
type timing struct {
	start     time.Duration // until a program has said where it listens, and again until it answers
	pingEvery time.Duration
	pingLimit time.Duration
	patience  time.Duration // of a call, with a plugin that is down
}

func defaultTiming() timing {
	return timing{start: 10 * time.Second, pingEvery: 5 * time.Second, pingLimit: 10 * time.Second, patience: 5 * time.Second}
}

// Plugin is an external driver that outlives the deaths of its program. It
// implements driver.Driver and driver.Lister; its methods may be called from
// any goroutine.
type Plugin struct {
	config Config
	each   PluginConfig
	log    *slog.Logger

	life   context.Context
	cancel context.CancelFunc
	done   chan struct{} // closed when the loop has ended

	mu struct {
		sync.Mutex
		current *running      // nil while down
		change  chan struct{} // closed when current changes
		reason  string        // why it is down
		handles map[driver.TaskID]driver.Handle
	}
}

func newPlugin(config Config, each PluginConfig) *Plugin {
	p := &Plugin{config: config, each: each, log: config.Logger.With(logkey.Plugin, each.Name), done: make(chan struct{})}
	p.life, p.cancel = context.WithCancel(context.Background())
	p.mu.change = make(chan struct{})
	p.mu.reason = "starting"
	p.mu.handles = make(map[driver.TaskID]driver.Handle)
	go p.run()
	return p
}

// close ends the program and waits for the loop.
func (p *Plugin) close() {
	p.cancel()
	<-p.done
}

// run keeps the program alive until close.
func (p *Plugin) run() {
	defer close(p.done)
	runtime.LockOSThread() // see launch; the thread ends with this goroutine
	pause := restartFirst
	for p.life.Err() == nil {
		r, err := launch(p.life, p.config, p.each, p.log)
		if err == nil {
			started := time.Now()
			p.log.Info("driver plugin started", logkey.PID, r.process.Process.Pid)
			err = p.recoverTasks(r)
			if err == nil {
				p.set(r, "")
				err = p.watch(r)
			}
			p.set(nil, err.Error())
			r.kill()
			if time.Since(started) > restartCalm {
				pause = restartFirst
			}
		}
		p.set(nil, err.Error())
		if p.life.Err() != nil {
			return
		}
		p.log.Warn("driver plugin is down", logkey.Error, err, logkey.Took, pause)
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-p.life.Done():
			timer.Stop()
		}
		pause = min(pause*2, restartSlow)
	}
}

// watch returns, with the reason, when a program has ended or is silent.
func (p *Plugin) watch(r *running) error {
	ping, poll := time.NewTicker(p.config.timing.pingEvery), time.NewTicker(exitPoll)
	defer ping.Stop()
	defer poll.Stop()
	for {
		select {
		case <-p.life.Done():
			return p.life.Err()
		case <-poll.C:
			if r.exited() {
				return errors.New("its program has ended")
			}
		case <-ping.C:
			ctx, cancel := context.WithTimeout(p.life, p.config.timing.pingLimit)
			_, err := r.driver.Ping(ctx)
			cancel()
			if err != nil {
				return fmt.Errorf("its program is silent: %w", err)
			}
		}
	}
}

// set publishes a running program, or that there is none.
func (p *Plugin) set(r *running, reason string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.reason = reason
	if p.mu.current == r {
		return
	}
	p.mu.current = r
	close(p.mu.change)
	p.mu.change = make(chan struct{})
}

// recoverTasks gives a new program the tasks that its predecessor had. A task
// that it can not take is left for its waiters to find out.
func (p *Plugin) recoverTasks(r *running) error {
	p.mu.Lock()
	handles := make([]driver.Handle, 0, len(p.mu.handles))
	for _, handle := range p.mu.handles {
		handles = append(handles, handle)
	}
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(p.life, recoverLimit)
	defer cancel()
	limit := make(chan struct{}, recoverMany)
	var all sync.WaitGroup
	for _, handle := range handles {
		limit <- struct{}{}
		all.Go(func() {
			defer func() { <-limit }()
			if err := r.driver.Recover(ctx, handle); err != nil {
				p.log.Error("task can not be recovered", logkey.TaskID, handle.TaskID, logkey.Error, err)
			}
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return errors.New("it does not recover its tasks in time")
	}
	return nil
}

// up gives the running program, waiting a moment for one that is down.
func (p *Plugin) up(ctx context.Context) (*running, error) {
	return p.get(ctx, p.config.timing.patience)
}

// get gives the running program, waiting for it as long as ctx allows but no
// longer than limit.
func (p *Plugin) get(ctx context.Context, limit time.Duration) (*running, error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		p.mu.Lock()
		current, change := p.mu.current, p.mu.change
		p.mu.Unlock()
		if current != nil {
			return current, nil
		}
		select {
		case <-change:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-p.life.Done():
			return nil, fmt.Errorf("driver plugin %s: %w: the agent stops", p.each.Name, driver.ErrUnavailable)
		case <-timer.C:
			p.mu.Lock()
			reason := p.mu.reason
			p.mu.Unlock()
			return nil, fmt.Errorf("driver plugin %s: %w: %s", p.each.Name, driver.ErrUnavailable, reason)
		}
	}
}

func (p *Plugin) remember(handle driver.Handle) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.handles[handle.TaskID] = handle
}

func (p *Plugin) forget(id driver.TaskID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.mu.handles, id)
}

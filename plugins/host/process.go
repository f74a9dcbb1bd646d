package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"time"

	"nomadlike/internal/logkey"
)

// How a plugin is watched.
const (
	restartFirst = 100 * time.Millisecond
	restartSlow  = 30 * time.Second
	// restartCalm is how long a plugin must live for its next death to count
	// as a first one.
	restartCalm = time.Minute
	exitPoll    = 100 * time.Millisecond
	// killLimit bounds the wait for a program that was killed. One that hangs
	// in the kernel, as a vendor's driver can make it, is left behind then.
	killLimit = 5 * time.Second
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

// remote is the host's end of a contract.
type remote interface {
	comparable
	Ping(ctx context.Context) (string, error)
}

// process keeps the program of one plugin alive: it starts it, prepares it,
// pings it, and starts it anew, after a pause that grows, when it dies or is
// silent. R is the end of the contract that calls are made on.
type process[R remote] struct {
	contract contract[R]
	source   source
	timing   timing
	runDir   string
	log      *slog.Logger
	// prepare readies a program that answers, before anybody else gets it.
	prepare func(ctx context.Context, to R) error

	stderr *stderrLog // of all lives of the program
	life   context.Context
	cancel context.CancelFunc
	done   chan struct{} // closed when the loop has ended

	mu struct {
		sync.Mutex
		current R             // zero while down
		change  chan struct{} // closed when current or reason changes
		reason  string        // why it is down
	}
}

// start begins the loop; prepare must be set.
func (p *process[R]) start() {
	p.done = make(chan struct{})
	p.stderr = &stderrLog{log: p.log, what: p.contract.what}
	p.life, p.cancel = context.WithCancel(context.Background())
	p.mu.change = make(chan struct{})
	p.mu.reason = "starting"
	go p.run()
}

// close ends the program and waits for the loop.
func (p *process[R]) close() {
	p.cancel()
	<-p.done
}

// run keeps the program alive until close.
func (p *process[R]) run() {
	defer close(p.done)
	runtime.LockOSThread() // see launch; the thread ends with this goroutine
	pause := restartFirst
	for p.life.Err() == nil {
		p.stderr.take()
		r, err := launch(p.life, p)
		if err == nil {
			started := time.Now()
			p.log.Info(p.contract.what+" started", logkey.PID, r.process.Process.Pid)
			err = p.prepare(p.life, r.remote)
			if err == nil {
				p.set(r.remote, "")
				err = p.watch(r)
			}
			var down R
			p.set(down, err.Error())
			r.kill()
			if time.Since(started) > restartCalm {
				pause = restartFirst
			}
			p.awaitGone(r)
		}
		var down R
		p.set(down, withLast(err, p.stderr.take()))
		if p.life.Err() != nil {
			return
		}
		p.log.Warn(p.contract.what+" is down", logkey.Error, err, logkey.Took, pause)
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-p.life.Done():
			timer.Stop()
		}
		pause = min(pause*2, restartSlow)
	}
}

// withLast is why a program is down, with the last that it said itself.
func withLast(err error, said string) string {
	if said == "" {
		return err.Error()
	}
	return err.Error() + ": " + strings.ToValidUTF8(said, "")
}

// watch returns, with the reason, when a program has ended or is silent.
func (p *process[R]) watch(r *running[R]) error {
	ping, poll := time.NewTicker(p.timing.pingEvery), time.NewTicker(exitPoll)
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
			ctx, cancel := context.WithTimeout(p.life, p.timing.pingLimit)
			_, err := r.remote.Ping(ctx)
			cancel()
			if err != nil {
				return fmt.Errorf("its program is silent: %w", err)
			}
		}
	}
}

// awaitGone waits for a program that kill has left behind. A second one beside
// it would only hang at the same place.
func (p *process[R]) awaitGone(r *running[R]) {
	select {
	case <-r.gone:
		return
	default:
	}
	pid := r.process.Process.Pid
	var down R
	p.set(down, fmt.Sprintf("its program (process %d) cannot be killed: it hangs in the kernel", pid))
	p.log.Error(p.contract.what+" cannot be killed: it hangs in the kernel, most likely in a device driver", logkey.PID, pid)
	select {
	case <-r.gone:
	case <-p.life.Done():
	}
}

// set publishes a running program, or that there is none.
func (p *process[R]) set(r R, reason string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.current == r && p.mu.reason == reason {
		return
	}
	p.mu.current, p.mu.reason = r, reason
	close(p.mu.change)
	p.mu.change = make(chan struct{})
}

// now returns what runs, why nothing does, and a channel that is closed at the
// next change.
func (p *process[R]) now() (current R, reason string, change <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.current, p.mu.reason, p.mu.change
}

// up returns the running program, waiting a moment for one that is down.
func (p *process[R]) up(ctx context.Context) (R, error) {
	return p.get(ctx, p.timing.patience)
}

// get returns the running program, waiting for it as long as ctx allows but no
// longer than limit.
func (p *process[R]) get(ctx context.Context, limit time.Duration) (R, error) {
	var none R
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		current, reason, change := p.now()
		if current != none {
			return current, nil
		}
		select {
		case <-change:
		case <-ctx.Done():
			return none, ctx.Err()
		case <-p.life.Done():
			return none, fmt.Errorf("%s %s: %w: the agent stops", p.contract.what, p.source.name, p.contract.unavailable)
		case <-timer.C:
			return none, fmt.Errorf("%s %s: %w: %s", p.contract.what, p.source.name, p.contract.unavailable, reason)
		}
	}
}

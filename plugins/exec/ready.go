package exec

import (
	"cmp"
	"log/slog"
	"net"
	osexec "os/exec"
	"sync/atomic"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/plugins/exec/supervisor"
)

const (
	// sparesDefault is how many supervisors wait for a task. Starting one is
	// most of what starting a task takes, and an idle one costs 1 MB.
	sparesDefault = 2
	// sparesMax is how many may wait after tasks that have ended, for others
	// that come soon; after sparesIdle without a start they are sent away.
	sparesMax  = 16
	sparesIdle = 10 * time.Second
)

// readySupervisor is a supervisor that waits for its spec. It ends by itself
// when the connection closes before that.
type readySupervisor struct {
	process    *osexec.Cmd
	connection *net.UnixConn
}

// pool is the supervisors that wait for a task. Its methods may be called from
// any goroutine.
type pool struct {
	program  *program
	isolator *isolator
	work     worker
	log      *slog.Logger

	spares    chan *readySupervisor // nil: none are kept
	wanted    int
	refilling atomic.Bool  // somebody fills spares
	trimming  atomic.Bool  // somebody waits to send some away
	starts    atomic.Int64 // of tasks
}

// newPool makes a pool that keeps as many supervisors ready as Config.Spares says.
func newPool(wanted int, program *program, isolator *isolator, work worker, log *slog.Logger) *pool {
	p := &pool{program: program, isolator: isolator, work: work, log: log}
	if p.wanted = min(cmp.Or(wanted, sparesDefault), sparesMax); p.wanted > 0 {
		p.spares = make(chan *readySupervisor, sparesMax)
	}
	return p
}

// take returns a supervisor that was kept ready, or a new one. One for
// a task with limits runs that task only.
func (p *pool) take(limits []supervisor.Limit) (ready *readySupervisor, spare bool, err error) {
	p.starts.Add(1)
	if len(limits) > 0 {
		if ready, err = p.start(); err != nil {
			return nil, false, err
		}
		if err := raiseLimits(ready.process.Process.Pid, limits); err != nil {
			ready.dismiss()
			return nil, false, err
		}
		return ready, false, nil
	}
	select {
	case ready := <-p.spares:
		return ready, true, nil
	default:
		ready, err := p.start()
		return ready, false, err
	}
}

// giveBack keeps the supervisor of a task that has ended, for another one, or
// ends it when there are enough.
func (p *pool) giveBack(ready *readySupervisor) {
	select {
	case p.spares <- ready:
		p.trimLater()
	default:
		ready.dismiss()
	}
}

// dismiss ends a supervisor without a task.
func (r *readySupervisor) dismiss() {
	r.connection.Close()
	timer := time.AfterFunc(startPatience, func() { r.process.Process.Kill() })
	defer timer.Stop()
	_ = r.process.Wait() // it has nothing to tell
}

// trimLater sends supervisors away that nobody has needed for a while. One
// goroutine at a time waits for that.
func (p *pool) trimLater() {
	if len(p.spares) <= p.wanted || !p.trimming.CompareAndSwap(false, true) {
		return
	}
	started := p.work.Go(func() {
		defer p.trimming.Store(false)
		for len(p.spares) > p.wanted {
			before := p.starts.Load()
			timer := time.NewTimer(sparesIdle)
			select {
			case <-timer.C:
			case <-p.work.Life().Done():
				timer.Stop()
				return
			}
			for p.starts.Load() == before && len(p.spares) > p.wanted {
				select {
				case ready := <-p.spares:
					ready.dismiss()
				default:
				}
			}
		}
	})
	if !started {
		p.trimming.Store(false)
	}
}

// refill starts supervisors in the background until enough are ready. One
// goroutine at a time does it, whoever asks.
func (p *pool) refill() {
	if len(p.spares) >= p.wanted || !p.refilling.CompareAndSwap(false, true) {
		return
	}
	started := p.work.Go(func() {
		defer p.refilling.Store(false)
		if _, err := p.isolator.level(p.work.Life()); err != nil {
			return
		}
		for len(p.spares) < p.wanted && p.work.Life().Err() == nil {
			ready, err := p.start()
			if err != nil {
				p.log.Warn("no supervisor can be kept ready", logkey.Error, err)
				return // the next start says why, or asks again
			}
			p.giveBack(ready)
		}
	})
	if !started {
		p.refilling.Store(false)
	}
}

// dismissAll ends the supervisors that got no task. Called when nothing
// fills or takes them any more.
func (p *pool) dismissAll() {
	for {
		select {
		case ready := <-p.spares:
			ready.dismiss()
		default:
			return
		}
	}
}

// start starts a supervisor process for the kind of tasks that the driver runs.
// Called once the level of isolation is known.
func (p *pool) start() (*readySupervisor, error) {
	return p.program.start(p.isolator.found.isolated && p.isolator.found.users)
}

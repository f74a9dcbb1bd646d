package consensus

import (
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"nomadlike/internal/logkey"
)

// guard ends the process when its durable state can no longer be trusted, in
// the order that keeps the cluster safe: first nothing leaves or enters any
// more, then exit. A leader whose disk hangs would otherwise go on sending
// heartbeats from another goroutine and stay leader for ever.
type guard struct {
	log       *slog.Logger
	stallWarn time.Duration
	stallFail time.Duration
	exit      func(code int)

	mu struct {
		sync.Mutex
		cut    func() // cuts the transport; nil until there is one
		failed bool
	}
}

func newGuard(config Config) *guard {
	return &guard{
		log:       config.Log,
		stallWarn: config.Timings.StallWarn,
		stallFail: config.Timings.StallFatal,
		exit:      config.ExitFunc,
	}
}

// arm reports what to cut before exit. Until then, failures are only returned:
// Open reports them to its caller.
func (g *guard) arm(cut func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.cut = cut
}

// disarm ends the watch: Shutdown has begun to take things apart.
func (g *guard) disarm() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.cut = nil
}

func (g *guard) hasFailed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.failed
}

// fail logs why, cuts the transport and ends the process. It returns at once
// when not armed, and in tests, where the exit function does; only the first
// failure counts.
func (g *guard) fail(code int, reason string, attrs ...any) {
	g.mu.Lock()
	cut := g.mu.cut
	if cut == nil || g.mu.failed {
		g.mu.Unlock()
		return
	}
	g.mu.failed = true
	g.mu.Unlock()
	g.log.Error("server stops: "+reason, attrs...)
	cut()
	g.exit(code)
}

// stallSteps is in how many steps a stall is measured. A step that is noticed
// late, by a quarter of its length, counts that quarter only.
const (
	stallSteps = 8
	stallLate  = 4
)

// watch times one disk operation. The returned function ends the watch; until
// then a warning and, a second later by default, the end of the process follow.
//
// Time counts by steps, each begun when the one before it was noticed, and in
// full only when it is noticed in time: a process that gets too little of the
// processor is not taken for one whose disk hangs. Nor is one with more
// goroutines ready to run than it can run: whoever comes back from the disk
// queues behind them, and so does each step.
func (g *guard) watch(operation string) (done func()) {
	s := &stall{guard: g, operation: operation, started: time.Now()}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.stepped = s.started
	s.mu.timer = time.AfterFunc(g.stallFail/stallSteps, s.step)
	return s.end
}

// stall is a disk operation in flight.
type stall struct {
	guard     *guard
	operation string
	started   time.Time

	mu struct {
		sync.Mutex
		timer   *time.Timer
		stepped time.Time     // when the newest step was noticed
		lasted  time.Duration // by the steps that were noticed
		warned  bool
		ended   bool
	}
}

// step notices that some more time has passed.
func (s *stall) step() {
	runtime.Gosched() // to the end of the queue in which an operation that is done waits to say so
	s.mu.Lock()
	if s.mu.ended {
		s.mu.Unlock()
		return
	}
	step, now := s.guard.stallFail/stallSteps, time.Now()
	if now.Sub(s.mu.stepped) <= step+step/stallLate {
		s.mu.lasted += step
	} else {
		s.mu.lasted += step / stallLate
	}
	s.mu.stepped = now
	warn := !s.mu.warned && s.mu.lasted >= s.guard.stallWarn
	s.mu.warned = s.mu.warned || warn
	fatal := s.mu.lasted >= step*stallSteps
	if !fatal {
		s.mu.timer.Reset(step)
	}
	s.mu.Unlock()
	if warn {
		s.guard.log.Warn("disk is slow: operation in flight", "operation", s.operation, logkey.Took, time.Since(s.started))
	}
	if fatal {
		s.guard.fail(exitStorage, "disk does not answer", "operation", s.operation, logkey.Took, time.Since(s.started))
	}
}

// end ends the watch.
func (s *stall) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.ended = true
	s.mu.timer.Stop()
}

// guardedVote puts raft's StableStore under the guard: a vote or term that
// cannot be stored ends the process, and no write is tried twice.
type guardedVote struct {
	store *voteStore
	guard *guard
}

var _ raft.StableStore = guardedVote{}

func (v guardedVote) write(operation string, do func() error) error {
	done := v.guard.watch(operation)
	err := do()
	done()
	if err == nil {
		return nil
	}
	v.guard.fail(exitStorage, "vote cannot be stored", logkey.Error, err)
	if v.guard.hasFailed() {
		runtime.Goexit() // only after an exit function of a test: raft would panic on the error
	}
	return err
}

func (v guardedVote) Set(key, value []byte) error {
	return v.write("store vote", func() error { return v.store.Set(key, value) })
}

func (v guardedVote) SetUint64(key []byte, value uint64) error {
	return v.write("store term", func() error { return v.store.SetUint64(key, value) })
}

func (v guardedVote) Get(key []byte) ([]byte, error) { return v.store.Get(key) }

func (v guardedVote) GetUint64(key []byte) (uint64, error) { return v.store.GetUint64(key) }

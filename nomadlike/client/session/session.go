package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/structs"
)

// Limits of one stream.
const (
	DialTimeout    = time.Second     // until the stream is open
	WelcomeTimeout = 3 * time.Second // until the registration is in the log
	FlushEvery     = 5 * time.Millisecond
	ByeTimeout     = 500 * time.Millisecond

	heartbeatDefault = 200 * time.Millisecond
	heartbeatMin     = 20 * time.Millisecond
	silentBeats      = 4                      // unanswered heartbeats until a server is given up
	silentMin        = 800 * time.Millisecond // but never sooner than this
	sentBeatsMax     = 256                    // heartbeats whose answers are remembered
	outageSaid       = 2 * time.Second        // of an outage until the log names it: servers restart
	outageEvery      = time.Minute            // between lines of the log while it lasts
)

// Stream is the client's end of Node.Session. Send is called by one
// goroutine and Recv by another; both return an error soon after the context
// given to the Opener is cancelled. CloseSend follows the last Send.
type Stream interface {
	Send(*structs.SessionUp) error
	Recv() (*structs.SessionDown, error)
	CloseSend() error
}

// Opener opens a Node.Session stream to the agent at addr (host:port). The
// stream ends when ctx is cancelled.
type Opener func(ctx context.Context, addr string) (Stream, error)

// Owner is told what comes down the stream. Its methods should return soon.
// All but Hello are called by one goroutine at a time, in the order of what
// came; while they work nothing more is received.
type Owner interface {
	// Hello returns the registration; called for each stream and after
	// Refresh, also while another method is at work.
	Hello() *structs.NodeRegister
	// Assignments takes what the server wants.
	Assignments(*structs.Assignments)
	// Delivered takes the reports that the servers are done with.
	Delivered([]Delivered)
	// Connected reports that a server has welcomed the node, or, with nil,
	// that the stream is lost.
	Connected(*structs.Welcome)
}

// Config is what a Session needs. Boottime, Chance and Logger are required.
type Config struct {
	NodeID   string
	Servers  func() []string // host:port of the servers known otherwise; may change
	Open     Opener
	Owner    Owner
	Boottime func() time.Duration // CLOCK_BOOTTIME
	Chance   func() float64       // random in [0, 1)
	Logger   *slog.Logger
	// Refused, if set, is told why a server ended or refused a stream; nil when
	// one has welcomed the node.
	Refused func(error)
}

// Session is a node's side of its one stream. Its methods may be called from
// any goroutine; Run is called once.
type Session struct {
	config Config

	wake    chan struct{} // the outbox has something, or Refresh was called
	refresh chan struct{}

	mu struct {
		sync.Mutex
		outbox  Outbox
		lease   Lease
		learned []string // servers named by the last Welcome
		server  string   // address of the current one, "" without
	}
}

// New makes a session; Run starts it.
func New(config Config) *Session {
	return &Session{config: config, wake: make(chan struct{}, 1), refresh: make(chan struct{}, 1)}
}

// Report queues a report until a server has it in its log. It never blocks.
func (s *Session) Report(r structs.AllocReport) {
	s.mu.Lock()
	s.mu.outbox.Put(r)
	s.mu.Unlock()
	poke(s.wake)
}

// Note queues a note until a server has it in its log. It never blocks.
func (s *Session) Note(n structs.AllocNote) {
	s.mu.Lock()
	s.mu.outbox.PutNote(n)
	s.mu.Unlock()
	poke(s.wake)
}

// Refresh says Hello again on the open stream, if there is one: the node's
// fingerprint has changed.
func (s *Session) Refresh() { poke(s.refresh) }

// Lease returns the lease as it stands.
func (s *Session) Lease() Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.lease
}

// RestoreLease sets the lease that an earlier process of the agent had in
// the same boot of the machine. It is called before Run.
func (s *Session) RestoreLease(l Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.lease = l
}

// Server is the address of the server that the stream leads to, "" without
// a stream.
func (s *Session) Server() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.server
}

// Unacknowledged is the number of reports that no server has in its log.
func (s *Session) Unacknowledged() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.outbox.Len()
}

// Run keeps a stream open until ctx is cancelled; then it sends what still
// waits and says Bye. It returns after everything it started has ended.
func (s *Session) Run(ctx context.Context) {
	var (
		tried    int
		lostAt   = time.Now()
		saidAt   time.Time // when the log last named an outage, zero in none
		lastAddr string    // of the server that welcomed the node last
	)
	for ctx.Err() == nil {
		servers := s.servers(lastAddr)
		welcomed := false
		var addr string
		var err error
		if len(servers) > 0 {
			addr = servers[tried%len(servers)]
			err = s.once(ctx, addr, func() { welcomed = true })
			if welcomed {
				tried, lostAt, lastAddr, saidAt = 0, time.Now(), addr, time.Time{}
			}
			if ctx.Err() != nil {
				return
			}
			if s.config.Refused != nil {
				s.config.Refused(err)
			}
			s.config.Logger.Debug("stream to server ended", logkey.Addr, addr, logkey.Error, err)
		}
		wait := Backoff(tried+1, len(servers), time.Since(lostAt), s.config.Chance())
		if welcomed {
			if len(servers) > 1 {
				wait = 0
			}
		} else {
			tried++
			if len(servers) > 0 && tried%len(servers) == 0 && time.Since(lostAt) >= outageSaid && time.Since(saidAt) >= outageEvery {
				saidAt = time.Now()
				s.config.Logger.Warn("no server takes this node", logkey.Count, len(servers), logkey.Addr, addr, logkey.Error, err)
			}
		}
		if !pause(ctx, wait) {
			return
		}
	}
}

// servers is every server that the node has heard of: first those that a
// server named, beginning after the one that the node just lost, then those
// that it heard of otherwise, where anybody may have named anything.
func (s *Session) servers(lost string) []string {
	s.mu.Lock()
	learned := Order(s.config.NodeID, s.mu.learned)
	s.mu.Unlock()
	after := slices.Index(learned, lost) + 1
	all := append(slices.Clone(learned[after:]), learned[:after]...)
	if s.config.Servers == nil {
		return all
	}
	for _, addr := range Order(s.config.NodeID, s.config.Servers()) {
		if !slices.Contains(all, addr) {
			all = append(all, addr)
		}
	}
	return all
}

// once lives through one stream.
func (s *Session) once(ctx context.Context, addr string, onWelcome func()) error {
	streamCtx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	stopWatch := context.AfterFunc(ctx, func() {
		// Leave the stream time for what still waits and for the Bye.
		time.AfterFunc(ByeTimeout, func() { cancel(context.Canceled) })
	})
	defer stopWatch()

	stream, err := s.open(ctx, streamCtx, cancel, addr)
	if err != nil {
		return fmt.Errorf("dial server %s: %w", addr, err)
	}
	welcome, first, err := s.greet(ctx, stream, cancel)
	if err != nil {
		return fmt.Errorf("register with server %s: %w", addr, err)
	}
	onWelcome()
	if s.config.Refused != nil {
		s.config.Refused(nil)
	}
	l := &link{
		session: s, stream: stream, cancel: cancel,
		done:     streamCtx.Done(),
		every:    heartbeatEvery(welcome),
		interval: make(chan time.Duration, 1),
		heard:    make(chan struct{}, 1),
	}
	s.begin(addr)
	s.adopt(welcome)
	s.config.Owner.Connected(welcome)
	s.config.Logger.Info("registered with server", logkey.Addr, addr, logkey.ServerID, welcome.ServerID)
	if first != nil {
		l.take(first)
	}

	var reading sync.WaitGroup
	reading.Go(func() { l.read() })
	err = l.write(ctx)
	cancel(err)
	reading.Wait()
	s.abandon()
	s.config.Owner.Connected(nil)
	return fmt.Errorf("stream to server %s: %w", addr, errors.Join(err, context.Cause(streamCtx)))
}

// open dials under DialTimeout; the stream itself outlives the timeout.
func (s *Session) open(ctx, streamCtx context.Context, cancel context.CancelCauseFunc, addr string) (Stream, error) {
	timeout := time.AfterFunc(DialTimeout, func() { cancel(errors.New("no answer")) })
	defer timeout.Stop()
	giveUp := context.AfterFunc(ctx, func() { cancel(context.Canceled) })
	defer giveUp()
	stream, err := s.config.Open(streamCtx, addr)
	if err == nil && streamCtx.Err() != nil {
		err = context.Cause(streamCtx)
	}
	return stream, err
}

// greet says Hello and waits for Welcome.
func (s *Session) greet(ctx context.Context, stream Stream, cancel context.CancelCauseFunc) (*structs.Welcome, *structs.SessionDown, error) {
	timeout := time.AfterFunc(WelcomeTimeout, func() { cancel(errors.New("no welcome")) })
	defer timeout.Stop()
	giveUp := context.AfterFunc(ctx, func() { cancel(context.Canceled) })
	defer giveUp()
	select {
	case <-s.refresh: // this Hello says it
	default:
	}
	sentAt := s.config.Boottime()
	if err := stream.Send(&structs.SessionUp{Hello: s.config.Owner.Hello()}); err != nil {
		return nil, nil, err
	}
	down, err := stream.Recv()
	if err != nil {
		return nil, nil, err
	}
	if down.Welcome == nil {
		return nil, nil, errors.New("the first message is no welcome")
	}
	welcome := down.Welcome
	s.welcomed(sentAt)
	rest := *down
	rest.Welcome = nil
	if rest == (structs.SessionDown{}) {
		return welcome, nil, nil
	}
	return welcome, &rest, nil
}

// welcomed counts the lease from the Hello that was answered.
func (s *Session) welcomed(sentAt time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.lease = s.mu.lease.Renew(sentAt)
}

func (s *Session) begin(addr string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.outbox.Reset()
	s.mu.server = addr
}

// adopt takes the server's terms.
func (s *Session) adopt(w *structs.Welcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.learned = slices.Clone(w.Servers)
	s.mu.lease.TTL = w.LeaseTTL.Std()
}

func (s *Session) abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.outbox.Reset()
	s.mu.server = ""
}

func heartbeatEvery(w *structs.Welcome) time.Duration {
	if w.HeartbeatEvery <= 0 {
		return heartbeatDefault
	}
	return max(w.HeartbeatEvery.Std(), heartbeatMin)
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// pause waits for d and reports whether ctx still lives.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

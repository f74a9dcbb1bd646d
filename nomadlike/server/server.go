package server

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/consensus"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// Server is one server's duties. Its methods may be called from any goroutine.
type Server struct {
	config     Config
	sessions   *sessions
	allowances *allowances
	hearing    *hearing
	contact    *contact
	members    *memberCache

	foresight *foresight
	placing   atomic.Bool               // the queue loop is starting what can start
	placedAt  atomic.Pointer[time.Time] // when it last started something; nil: never

	leading struct {
		sync.Mutex
		watch *watch // non-nil while this server leads
	}

	cancel  context.CancelFunc
	closing <-chan struct{} // closed when Close begins
	tasks   sync.WaitGroup
}

// Open starts a server's duties; Close ends them.
func Open(config Config) (*Server, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{
		config:   config,
		sessions: newSessions(), allowances: &allowances{now: config.Now},
		hearing: newHearing(config.ID),
		contact: newContact(),
		members: newMemberCache(),

		foresight: newForesight(&config),
		cancel:    cancel,
		closing:   ctx.Done(),
	}
	s.tasks.Go(func() { s.followLeadership(ctx) })
	s.tasks.Go(func() { s.reportHearing(ctx) })
	return s, nil
}

// Close ends all duties and streams, and waits for them; who waits in Submit
// or Consistent is told that this server is stopping. The log is the caller's
// to shut down afterwards.
func (s *Server) Close() {
	s.cancel()
	s.sessions.close()
	s.tasks.Wait()
	s.foresight.close()
}

// followLeadership does the leader's duties while this server leads.
func (s *Server) followLeadership(ctx context.Context) {
	news, open := s.nextLeadership(ctx)
	for open {
		if news.Leader {
			news, open = s.leadUntilNews(ctx, news)
		} else {
			news, open = s.nextLeadership(ctx)
		}
	}
}

// nextLeadership waits for news, and tells false when ctx ended instead.
func (s *Server) nextLeadership(ctx context.Context) (consensus.Leadership, bool) {
	select {
	case news := <-s.config.Log.LeadershipCh():
		return news, true
	case <-ctx.Done():
		return consensus.Leadership{}, false
	}
}

// leadUntilNews leads until there are other news, which it gives.
func (s *Server) leadUntilNews(ctx context.Context, news consensus.Leadership) (consensus.Leadership, bool) {
	term, stop := context.WithCancel(ctx)
	defer stop()
	var duties sync.WaitGroup
	duties.Go(func() { s.lead(term, news) })
	next, open := s.nextLeadership(ctx)
	stop()
	duties.Wait()
	return next, open
}

// lead does the leader's duties until ctx ends.
func (s *Server) lead(ctx context.Context, news consensus.Leadership) {
	log := s.config.Logger.With(logkey.Term, news.Term)
	log.Info("leading")
	defer log.Info("leading no more")

	watch := newWatch(s)
	s.setWatch(watch)
	defer s.setWatch(nil)
	var duties sync.WaitGroup
	duties.Go(func() { watch.run(ctx) })
	duties.Go(func() { s.runQueue(ctx) })
	duties.Go(func() { s.runForecasts(ctx) })
	duties.Go(func() { s.runSweeps(ctx) })
	duties.Go(func() { s.initCluster(ctx) })
	duties.Wait()
}

func (s *Server) setWatch(watch *watch) {
	s.leading.Lock()
	defer s.leading.Unlock()
	s.leading.watch = watch
}

// leaderWatch is the leader's watch over nodes, nil while this server does not
// lead.
func (s *Server) leaderWatch() *watch {
	s.leading.Lock()
	defer s.leading.Unlock()
	return s.leading.watch
}

// initCluster makes the cluster's record when the log is new.
func (s *Server) initCluster(ctx context.Context) {
	if s.config.ClusterInit == nil || s.config.Store.Snapshot().Cluster() != nil {
		return
	}
	if _, _, err := s.decide(ctx, structs.CommandClusterInit, s.config.ClusterInit); err != nil && ctx.Err() == nil {
		s.config.Logger.Error("cluster was not set up", logkey.Error, err)
	}
}

// Store is this server's copy of the state.
func (s *Server) Store() *state.Store { return s.config.Store }

// Sessions is the number of node streams that end at this server.
func (s *Server) Sessions() int { return s.sessions.count() }

// Hears reports whether a node's stream ends at this server.
func (s *Server) Hears(nodeID string) bool { return s.sessions.has(nodeID) }

// now is the wall clock as the log keeps it.
func (s *Server) now() structs.UnixNano { return structs.At(s.config.Now()) }

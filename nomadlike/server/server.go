package server

import (
	"context"
	"sync"

	"nomadlike/nomadlike/state"
)

// Server is one server's duties. Its methods, those of its parts among them, may
// be called from any goroutine.
type Server struct {
	*proposals // Submit, Consistent, and what other servers ask of the log
	*foresight // ForecastSnapshot, Preview, Try, Consult

	*sessions // ServeNode
	*reporter // AnswerLiveness

	config Config
	leader *leader
	cancel context.CancelFunc
	tasks  sync.WaitGroup
}

// Open starts a server's duties; Close ends them.
func Open(config Config) (*Server, error) {
	ctx, cancel := context.WithCancel(context.Background())
	s, err := assemble(ctx, cancel, config)
	if err != nil {
		cancel()
		return nil, err
	}
	s.tasks.Go(func() { s.leader.run(ctx) })
	s.tasks.Go(func() { s.reporter.run(ctx) })
	return s, nil
}

// assemble makes a server of its parts; it has no duties yet. Its Close cancels ctx.
func assemble(ctx context.Context, cancel context.CancelFunc, config Config) (*Server, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Server{config: config, cancel: cancel}
	s.foresight = newForesight(&s.config)
	s.proposals = &proposals{config: &s.config, writing: &s.foresight.writing, closing: ctx.Done()}
	s.leader = &leader{config: &s.config, proposals: s.proposals, foresight: s.foresight, placing: &placing{}}
	s.reporter = &reporter{config: &s.config, heartbeats: newHeartbeats(config.ID), contact: newContact(), leader: s.leader}
	s.sessions = newSessions(&s.config, s.proposals, s.reporter.heartbeats, s.reporter.contact)
	return s, nil
}

// Close ends all duties and streams, and waits for them; a caller that waits in Submit
// or Consistent is told that this server is stopping. The log is the caller's
// to shut down afterwards.
func (s *Server) Close() {
	s.cancel()
	s.sessions.close()
	s.tasks.Wait()
	s.sessions.wait()
	s.foresight.close()
}

// Store is this server's copy of the state.
func (s *Server) Store() *state.Store { return s.config.Store }

// Sessions is the number of node streams that end at this server.
func (s *Server) Sessions() int { return s.sessions.count() }

// Hears reports whether a node's stream ends at this server.
func (s *Server) Hears(nodeID string) bool { return s.sessions.has(nodeID) }

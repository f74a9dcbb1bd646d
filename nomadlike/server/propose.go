package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/consensus"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// Waits between tries while no leader is known, and the limit of a caller
// that brought none.
const (
	retryFirst    = 5 * time.Millisecond
	retryMax      = 100 * time.Millisecond
	submitTimeout = 15 * time.Second
)

// Submit proposes a command and returns once this server's own state has
// applied it. By is who asks. It tries again while surely nothing was
// proposed, and, for commands that may safely arrive twice, also when nobody
// can tell; until ctx or 15 s end.
//
// The error is the state's refusal (the index is then still that of the log
// entry), CodeUnavailable when nothing was done, or CodeTimeout when the
// outcome is unknown.
func (s *Server) Submit(ctx context.Context, kind structs.CommandKind, by string, body any) (structs.ApplyResult, uint64, error) {
	command, err := wire.EncodeCommand(kind, s.now(), by, body)
	if err != nil {
		return structs.ApplyResult{}, 0, structs.NewError(structs.CodeTooLarge, "server.command_too_large").Because(err)
	}
	ctx, cancel := context.WithTimeout(ctx, submitTimeout)
	defer cancel()
	unknown := false
	for wait := retryFirst; ; wait = min(2*wait, retryMax) {
		reply, err := s.proposeOnce(ctx, command)
		if err == nil {
			if reply.Result.Err != nil && unknown {
				// An earlier try may have done what this one is refused for.
				err = structs.NewError(structs.CodeTimeout, "server.outcome_unknown").Because(reply.Result.Err)
				return structs.ApplyResult{}, 0, err
			}
			return s.applied(ctx, reply)
		}
		switch structs.CodeOf(err) {
		case structs.CodeUnavailable:
		case structs.CodeTimeout:
			if unknown = true; !repeatable(kind) {
				return structs.ApplyResult{}, 0, err
			}
		default:
			return structs.ApplyResult{}, 0, err
		}
		if !s.pause(ctx, wait) {
			if unknown {
				err = structs.NewError(structs.CodeTimeout, "server.outcome_unknown").Because(err)
			}
			return structs.ApplyResult{}, 0, err
		}
	}
}

// repeatable tells whether a command may be applied twice with the effect of
// once: it names its own ids, or its second application changes nothing.
func repeatable(kind structs.CommandKind) bool {
	switch kind {
	case structs.CommandJoinTokenConsume, structs.CommandJobDelete, structs.CommandTokenDelete, structs.CommandJoinTokenDelete:
		return false
	}
	return true
}

// applied waits until the entry of a reply is in this server's own state.
func (s *Server) applied(ctx context.Context, reply *structs.ProposeReply) (structs.ApplyResult, uint64, error) {
	if err := s.config.Log.WaitApplied(ctx, reply.Index); err != nil {
		return structs.ApplyResult{}, 0, structs.NewError(structs.CodeTimeout, "server.outcome_unknown").Because(err)
	}
	if reply.Result.Err != nil {
		return reply.Result, reply.Index, reply.Result.Err
	}
	return reply.Result, reply.Index, nil
}

// proposeOnce proposes here, or hands the bytes to the leader once.
func (s *Server) proposeOnce(ctx context.Context, command []byte) (*structs.ProposeReply, error) {
	reply, err := s.proposeHere(ctx, command)
	var notLeader *consensus.NotLeaderError
	if err == nil || !errors.As(err, &notLeader) {
		return reply, err
	}
	leader := Agent{ID: notLeader.LeaderID, Addr: notLeader.LeaderAddr, Role: auth.RoleServer}
	if leader.Addr == "" || leader.ID == s.config.ID {
		return nil, err
	}
	return s.config.Peers.Propose(ctx, leader, &structs.ProposeRequest{Command: command})
}

// proposeHere puts a command into the log of this server. Failures are
// *structs.Error that keep the log's as their cause.
func (s *Server) proposeHere(ctx context.Context, command []byte) (*structs.ProposeReply, error) {
	result, err := s.config.Log.Propose(ctx, command)
	if err != nil {
		return nil, logError(err)
	}
	applied, ok := result.Value.(structs.ApplyResult)
	if !ok {
		return nil, fmt.Errorf("propose: the log's machine answered a %T", result.Value)
	}
	return &structs.ProposeReply{Index: result.Index, Result: applied}, nil
}

// decide proposes a command of the leader's own duties: here and once, because
// a server that leads no more has nothing to decide.
func (s *Server) decide(ctx context.Context, kind structs.CommandKind, body any) (structs.ApplyResult, uint64, error) {
	command, err := wire.EncodeCommand(kind, s.now(), s.config.ID, body)
	if err != nil {
		return structs.ApplyResult{}, 0, err
	}
	reply, err := s.proposeHere(ctx, command)
	if err != nil {
		return structs.ApplyResult{}, 0, err
	}
	if reply.Result.Err != nil {
		return reply.Result, reply.Index, reply.Result.Err
	}
	return reply.Result, reply.Index, nil
}

// logError tells a caller what a failure of the log means for their request.
func logError(err error) error {
	var notLeader *consensus.NotLeaderError
	switch {
	case errors.As(err, &notLeader):
		return structs.NewError(structs.CodeUnavailable, "server.no_leader").Because(err)
	case errors.Is(err, consensus.ErrOutcomeUnknown):
		return structs.NewError(structs.CodeTimeout, "server.outcome_unknown").Because(err)
	case errors.Is(err, consensus.ErrDiskFull):
		return structs.NewError(structs.CodeUnavailable, "server.disk_full").Because(err)
	case errors.Is(err, consensus.ErrTooLarge):
		return structs.NewError(structs.CodeTooLarge, "server.command_too_large").Because(err)
	default: // shut down, or the context ended before anything was handed over
		return structs.NewError(structs.CodeUnavailable, "server.no_leader").Because(err)
	}
}

// AnswerPropose answers Leader.Propose: another server hands a command over. It is
// looked at before it enters the log, where a kind that nobody knows would
// stop every server.
func (s *Server) AnswerPropose(ctx context.Context, request *structs.ProposeRequest) (*structs.ProposeReply, error) {
	if err := state.Check(request.Command); err != nil {
		return nil, err
	}
	return s.proposeHere(ctx, request.Command)
}

// AnswerReadIndex answers Leader.ReadIndex.
func (s *Server) AnswerReadIndex(ctx context.Context, _ *structs.ReadIndexRequest) (*structs.ReadIndexReply, error) {
	index, err := s.config.Log.ReadIndex(ctx)
	if err != nil {
		return nil, readError(err)
	}
	return &structs.ReadIndexReply{Index: index}, nil
}

// readError is logError for reads, of which no outcome is ever unknown.
func readError(err error) error {
	return structs.NewError(structs.CodeUnavailable, "server.no_leader").Because(err)
}

// Consistent waits until this server's state holds everything that was
// acknowledged before the call, whoever acknowledged it, and gives that state.
func (s *Server) Consistent(ctx context.Context) (*state.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, submitTimeout)
	defer cancel()
	for wait := retryFirst; ; wait = min(2*wait, retryMax) {
		index, err := s.readOnce(ctx)
		if err == nil {
			if err := s.config.Log.WaitApplied(ctx, index); err != nil {
				return nil, readError(err)
			}
			return s.config.Store.Snapshot(), nil
		}
		if !s.pause(ctx, wait) {
			return nil, readError(err)
		}
	}
}

// Fresh is Consistent for who has the Store at hand.
func (s *Server) Fresh(ctx context.Context) error {
	_, err := s.Consistent(ctx)
	return err
}

// readOnce asks this server's log, or the leader's.
func (s *Server) readOnce(ctx context.Context) (uint64, error) {
	index, err := s.config.Log.ReadIndex(ctx)
	var notLeader *consensus.NotLeaderError
	if err == nil || !errors.As(err, &notLeader) || notLeader.LeaderAddr == "" || notLeader.LeaderID == s.config.ID {
		return index, err
	}
	reply, err := s.config.Peers.ReadIndex(ctx, Agent{ID: notLeader.LeaderID, Addr: notLeader.LeaderAddr, Role: auth.RoleServer})
	if err != nil {
		return 0, err
	}
	return reply.Index, nil
}

// pause waits, and tells false when ctx ended or this server began to close.
func (s *Server) pause(ctx context.Context, span time.Duration) bool {
	select {
	case <-s.closing:
		return false
	default:
	}
	timer := time.NewTimer(span)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.closing:
	case <-ctx.Done():
	}
	return false
}

// pause waits, and tells false when ctx ended first.
func pause(ctx context.Context, span time.Duration) bool {
	timer := time.NewTimer(span)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

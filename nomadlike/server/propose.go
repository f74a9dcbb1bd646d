package server

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
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
	deposedEvery  = 50 * time.Millisecond // looks whether a leader that was asked still leads
)

// proposals is this server's way into the log and to the newest state, whoever
// leads. Its methods may be called from any goroutine.
type proposals struct {
	config  *Config
	writing *atomic.Int32   // submissions under way
	closing <-chan struct{} // closed when this server begins to close
}

// Submit proposes a command and returns once this server's own state has
// applied it. By is who asks. It tries again while surely nothing was
// proposed, and, for commands that may safely arrive twice, also when nobody
// can tell; until ctx or 15 s end.
//
// The error is the state's refusal (the index is then still that of the log
// entry), CodeUnavailable when nothing was done, or CodeTimeout when the
// outcome is unknown.
func (p *proposals) Submit(ctx context.Context, kind structs.CommandKind, by string, body any) (structs.ApplyResult, uint64, error) {
	return p.SubmitGuarded(ctx, structs.Guard{}, kind, by, body)
}

// SubmitGuarded is Submit of a command that the log applies only while guard
// stands; else the error has the id structs.RestChanged, or the token's end is
// its reason. While a server of an older protocol may have to apply it, the
// command goes without its guard, which that server would not understand.
func (p *proposals) SubmitGuarded(ctx context.Context, guard structs.Guard, kind structs.CommandKind, by string, body any) (structs.ApplyResult, uint64, error) {
	once, err := p.once(kind)
	if err != nil {
		return structs.ApplyResult{}, 0, err
	}
	return p.submit(ctx, guard, once, kind, by, body)
}

// SubmitOnce is Submit of a command that counts once by a name which whoever asks
// again says again; at most structs.OnceMax bytes. While a server of an older
// protocol may have to apply it, the command goes without its name.
func (p *proposals) SubmitOnce(ctx context.Context, name string, kind structs.CommandKind, by string, body any) (structs.ApplyResult, uint64, error) {
	if lowest, _ := p.config.Lowest(); lowest < wire.ProtocolOnce {
		name = ""
	}
	return p.submit(ctx, structs.Guard{}, name, kind, by, body)
}

func (p *proposals) submit(ctx context.Context, guard structs.Guard, once string, kind structs.CommandKind, by string, body any) (structs.ApplyResult, uint64, error) {
	p.writing.Add(1)
	defer p.writing.Add(-1)
	if err := p.understood(kind, body); err != nil {
		return structs.ApplyResult{}, 0, err
	}
	command, err := p.encode(guard, once, kind, by, body)
	if err != nil {
		return structs.ApplyResult{}, 0, structs.NewError(structs.CodeTooLarge, "server.command_too_large").Because(err)
	}
	ctx, cancel := context.WithTimeout(ctx, submitTimeout)
	defer cancel()
	unknown := false
	for wait := retryFirst; ; wait = min(2*wait, retryMax) {
		reply, err := p.proposeOnce(ctx, command)
		if err == nil {
			if reply.Result.Err != nil && unknown {
				// An earlier try may have done what this one is refused for.
				err = structs.NewError(structs.CodeTimeout, "server.outcome_unknown").Because(reply.Result.Err)
				return structs.ApplyResult{}, 0, err
			}
			return p.applied(ctx, reply)
		}
		if structs.IsLasting(err) && !ofNode(kind) {
			return structs.ApplyResult{}, 0, err
		}
		switch structs.CodeOf(err) {
		case structs.CodeUnavailable:
		case structs.CodeTimeout:
			if unknown = true; once == "" && !repeatable(kind) {
				return structs.ApplyResult{}, 0, err
			}
		default:
			return structs.ApplyResult{}, 0, err
		}
		if !p.pause(ctx, wait) {
			if unknown {
				err = structs.NewError(structs.CodeTimeout, "server.outcome_unknown").Because(err)
			}
			return structs.ApplyResult{}, 0, err
		}
	}
}

// encode makes the entry of a command, with its guard where there is one, and
// with the name by which it counts once where there is one.
func (p *proposals) encode(guard structs.Guard, once string, kind structs.CommandKind, by string, body any) ([]byte, error) {
	if once == "" && guard.IsZero() || p.config.Protocol() < wire.ProtocolGuards {
		return wire.EncodeCommand(kind, p.config.now(), by, body)
	}
	inner, err := wire.Marshal(body)
	if err != nil {
		return nil, err
	}
	return wire.EncodeCommand(structs.CommandGuarded, p.config.now(), by, &structs.Guarded{Guard: guard, Kind: kind, Body: inner, Once: once})
}

// once names a command that must count once, "" where that goes without saying:
// a submission names its job, and reports of nodes say how things are, or every
// server is not new enough.
func (p *proposals) once(kind structs.CommandKind) (string, error) {
	if lowest, _ := p.config.Lowest(); lowest < wire.ProtocolOnce || kind == structs.CommandJobSubmit || ofNode(kind) || !repeatable(kind) {
		return "", nil
	}
	var bits [16]byte
	if _, err := io.ReadFull(p.config.Rand, bits[:]); err != nil {
		return "", fmt.Errorf("draw the name of a command: %w", err)
	}
	return hex.EncodeToString(bits[:]), nil
}

// understood refuses a command that some server does not know yet, or that sets
// a field it does not know: in the log it would stop that server, or be dropped
// by one of long ago.
func (p *proposals) understood(kind structs.CommandKind, body any) error {
	needs := wire.Needs(kind, body)
	if needs <= wire.OldestProtocol {
		return nil
	}
	lowest, name := p.config.Lowest()
	if needs <= lowest {
		return nil
	}
	return structs.NewError(structs.CodeNotAvailable, "server.older_server", "server", name, "protocol", lowest, "needed", needs)
}

// ofNode reports whether a node's session proposes a command: nobody waits for
// the answer, and the session would end with the refusal.
func ofNode(kind structs.CommandKind) bool {
	switch kind {
	case structs.CommandNodeRegister, structs.CommandNodeStatus, structs.CommandAllocReports:
		return true
	}
	return false
}

// repeatable reports whether a command may be tried again when nobody can tell
// whether it was applied: it names its own ids, or it counts once (proposals.once).
func repeatable(kind structs.CommandKind) bool {
	switch kind {
	case structs.CommandJoinTokenConsume, structs.CommandJobDelete, structs.CommandTokenDelete, structs.CommandJoinTokenDelete:
		return false
	}
	return true
}

// applied waits until the entry of a reply is in this server's own state.
func (p *proposals) applied(ctx context.Context, reply *structs.ProposeReply) (structs.ApplyResult, uint64, error) {
	if err := p.config.Log.WaitApplied(ctx, reply.Index); err != nil {
		return structs.ApplyResult{}, 0, structs.NewError(structs.CodeTimeout, "server.outcome_unknown").Because(err)
	}
	if reply.Result.Err != nil {
		return reply.Result, reply.Index, reply.Result.Err
	}
	return reply.Result, reply.Index, nil
}

// proposeOnce proposes here, or hands the bytes to the leader once.
func (p *proposals) proposeOnce(ctx context.Context, command []byte) (*structs.ProposeReply, error) {
	reply, err := p.proposeHere(ctx, command)
	var notLeader *consensus.NotLeaderError
	if err == nil || !errors.As(err, &notLeader) {
		return reply, err
	}
	leader := Agent{ID: notLeader.LeaderID, Addr: notLeader.LeaderAddr, Role: auth.RoleServer}
	if leader.Addr == "" || leader.ID == p.config.ID {
		return nil, err
	}
	ctx, cancel := p.whileLeads(ctx, leader.ID)
	defer cancel()
	return p.config.Peers.Propose(ctx, leader, &structs.ProposeRequest{Command: command})
}

// whileLeads returns a context that ends when another server than leader is known
// to lead: one whose machine died answers nothing, and a caller that waits for that keeps
// nodes from registering at the next leader. The caller calls the function that
// comes with it.
func (p *proposals) whileLeads(ctx context.Context, leader string) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(deposedEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if now := p.config.Log.LeaderID(); now != "" && now != leader {
					cancel()
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() { cancel(); <-ended }
}

// proposeHere puts a command into the log of this server. Failures are
// *structs.Error that keep the log's as their cause.
func (p *proposals) proposeHere(ctx context.Context, command []byte) (*structs.ProposeReply, error) {
	result, err := p.config.Log.Propose(ctx, command)
	if err != nil {
		return nil, p.logError(err)
	}
	applied, ok := result.Value.(structs.ApplyResult)
	if !ok {
		return nil, fmt.Errorf("propose: the log's machine answered a %T", result.Value)
	}
	return &structs.ProposeReply{Index: result.Index, Result: applied}, nil
}

// decide proposes a command of the leader's own duties: here and once, because
// a server that leads no more has nothing to decide.
func (p *proposals) decide(ctx context.Context, kind structs.CommandKind, body any) (structs.ApplyResult, uint64, error) {
	if err := p.understood(kind, body); err != nil {
		return structs.ApplyResult{}, 0, err
	}
	command, err := wire.EncodeCommand(kind, p.config.now(), p.config.ID, body)
	if err != nil {
		return structs.ApplyResult{}, 0, err
	}
	reply, err := p.proposeHere(ctx, command)
	if err != nil {
		return structs.ApplyResult{}, 0, err
	}
	if reply.Result.Err != nil {
		return reply.Result, reply.Index, reply.Result.Err
	}
	return reply.Result, reply.Index, nil
}

// logError tells a caller what a failure of the log means for their request.
func (p *proposals) logError(err error) error {
	var notLeader *consensus.NotLeaderError
	switch {
	case errors.As(err, &notLeader):
		return structs.NewError(structs.CodeUnavailable, "server.no_leader").Because(err)
	case errors.Is(err, consensus.ErrOutcomeUnknown):
		return structs.NewError(structs.CodeTimeout, "server.outcome_unknown").Because(err)
	case errors.Is(err, consensus.ErrDiskFull):
		return structs.NewError(structs.CodeUnavailable, "server.disk_full", "server", p.config.Name).Because(err)
	case errors.Is(err, consensus.ErrTooLarge):
		return structs.NewError(structs.CodeTooLarge, "server.command_too_large").Because(err)
	default: // shut down, or the context ended before anything was handed over
		return structs.NewError(structs.CodeUnavailable, "server.no_leader").Because(err)
	}
}

// AnswerPropose answers Leader.Propose: another server hands a command over. It is
// looked at before it enters the log, where a kind that nobody knows would
// stop every server.
func (p *proposals) AnswerPropose(ctx context.Context, request *structs.ProposeRequest) (*structs.ProposeReply, error) {
	if err := state.Check(request.Command); err != nil {
		return nil, err
	}
	return p.proposeHere(ctx, request.Command)
}

// AnswerReadIndex answers Leader.ReadIndex.
func (p *proposals) AnswerReadIndex(ctx context.Context, _ *structs.ReadIndexRequest) (*structs.ReadIndexReply, error) {
	index, err := p.config.Log.ReadIndex(ctx)
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
// acknowledged before the call, whoever acknowledged it, and returns that state.
func (p *proposals) Consistent(ctx context.Context) (*state.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, submitTimeout)
	defer cancel()
	for wait := retryFirst; ; wait = min(2*wait, retryMax) {
		index, err := p.readOnce(ctx)
		if err == nil {
			if err := p.config.Log.WaitApplied(ctx, index); err != nil {
				return nil, readError(err)
			}
			return p.config.Store.Snapshot(), nil
		}
		if !p.pause(ctx, wait) {
			return nil, readError(err)
		}
	}
}

// Fresh is Consistent for callers that have the Store at hand.
func (p *proposals) Fresh(ctx context.Context) error {
	_, err := p.Consistent(ctx)
	return err
}

// readOnce asks this server's log, or the leader's.
func (p *proposals) readOnce(ctx context.Context) (uint64, error) {
	index, err := p.config.Log.ReadIndex(ctx)
	var notLeader *consensus.NotLeaderError
	if err == nil || !errors.As(err, &notLeader) || notLeader.LeaderAddr == "" || notLeader.LeaderID == p.config.ID {
		return index, err
	}
	ctx, cancel := p.whileLeads(ctx, notLeader.LeaderID)
	defer cancel()
	reply, err := p.config.Peers.ReadIndex(ctx, Agent{ID: notLeader.LeaderID, Addr: notLeader.LeaderAddr, Role: auth.RoleServer})
	if err != nil {
		return 0, err
	}
	return reply.Index, nil
}

// pause waits, and returns false when ctx ended or this server began to close.
func (p *proposals) pause(ctx context.Context, span time.Duration) bool {
	select {
	case <-p.closing:
		return false
	default:
	}
	timer := time.NewTimer(span)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.closing:
	case <-ctx.Done():
	}
	return false
}

// pause waits, and returns false when ctx ended first.
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

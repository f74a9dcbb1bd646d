package rpc

import (
	"context"
	"time"

	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/wire"
)

// Probes of an agent that seems silent.
const (
	ProbeTimeout  = 100 * time.Millisecond // of each probe
	ProbeAttempts = 3
)

const methodPing = "Agent.Ping"

// PingRequest asks whether an agent lives.
type PingRequest struct{}

// PingReply says that it does, and who it is.
type PingReply struct {
	Cluster  string `json:"cluster"`
	Role     string `json:"role"`
	ID       string `json:"id"`
	Protocol int    `json:"protocol"`       // wire.ProtocolVersion that it speaks
	Addr     string `json:"addr,omitempty"` // host:port at which it wants to be called; "" from agents of before

	// Removed says of a server that asks: an administrator took it out.
	Removed bool `json:"removed,omitempty"`

	// Condition is told by servers to servers.
	Condition
}

// Condition is how a server does, as it says itself.
type Condition struct {
	Full   bool   `json:"full,omitempty"`   // its disk has no room for log entries
	Backup string `json:"backup,omitempty"` // BackupFine or BackupFailed; "": it does not know yet
	Reason string `json:"reason,omitempty"` // why its last backup failed
}

// How the backups of a server do.
const (
	BackupFine   = "fine" // made, or none are asked for
	BackupFailed = "failed"
)

func declarePing(s *Server) {
	Unary(s, methodPing, FromAgents, func(_ context.Context, caller Peer, _ *PingRequest) (*PingReply, error) {
		self := s.identity.Self()
		reply := &PingReply{
			Cluster: self.Cluster, Role: string(self.Role), ID: self.ID, Protocol: wire.ProtocolVersion, Addr: s.addr,
			Removed: s.shuns != nil && s.shuns(caller.Identity),
		}
		if s.condition != nil && caller.Role == auth.RoleServer {
			reply.Condition = s.condition()
		}
		return reply, nil
	})
}

// Ping asks the agent at the other end who it is.
func Ping(ctx context.Context, conn *Conn) (*PingReply, error) {
	return Call[PingRequest, PingReply](ctx, conn, methodPing, &PingRequest{})
}

// Alive probes an agent directly: ProbeAttempts pings, ProbeTimeout each. It
// returns nil as soon as one is answered, else the last failure. A dial that
// outlasts one probe goes on and serves the next.
func Alive(ctx context.Context, conn *Conn) error {
	var err error
	for range ProbeAttempts {
		if err = probe(ctx, conn); err == nil || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// probe fills its whole interval even when the failure is known sooner: a
// refused dial must not use up all attempts within a millisecond, while the
// agent may just be restarting.
func probe(ctx context.Context, conn *Conn) error {
	ctx, cancel := context.WithTimeout(ctx, ProbeTimeout)
	defer cancel()
	_, err := Ping(ctx, conn)
	if err != nil {
		<-ctx.Done()
	}
	return err
}

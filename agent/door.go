package agent

import (
	"crypto/rand"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	"nomadlike/agent/config"
	"nomadlike/agent/httpapi"
	"nomadlike/agent/httpapi/front"
	"nomadlike/internal/messages"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/consensus"
	"nomadlike/nomadlike/wire"
)

// doorOver makes the HTTP door: of a server, whose requests go to replica, or of a
// node that passes them on.
func (a *Agent) doorOver(replica httpapi.Replica) http.Handler {
	hosts := append([]string{a.config.Name}, a.config.Hosts...)
	if !a.config.Server.Enabled {
		refused := newNodeRefusals(a.pool, a.node.serversToAsk, a.options.now, a.log)
		door := front.NewRemote(a.log, a.options.now, hosts, a.node.serversToAsk, a.ident, httpapi.OwnHealth(a.health, probesOf(a)), refused)
		sweepAudit(a.life, door)
		a.life.follow(refused.run)
		return door
	}
	out := &signOuts{
		self: a.addr, path: filepath.Join(a.config.DataDir, signedOutFile), servers: a.servers.addresses, identity: a.ident, ca: a.identity.ca, now: a.options.now, log: a.log,
	}
	c := httpapi.Config{
		Door:    front.Config{Log: a.log, Now: time.Now, Hosts: hosts, Limits: limitsOf(a.config.Limits), Rest: a.options.ui(), Audit: a.journal},
		Replica: replica, Store: a.store, Now: a.options.now, Rand: rand.Reader,
		Pool: a.pool, Identity: a.ident, Members: a.members, Servers: a.members, Archives: a.members, Authority: a.identity, Keys: a.teller, Vault: a.vault, Code: a.code, Images: a.vault.forRegistry, Tell: a.notifier.deliveries, Audit: a.copies, History: a.history,
		PageDomain: a.config.TaskDomain, Addr: a.addr, SpoolDir: a.config.DataDir, LapseGrace: a.config.Server.LapseGrace, Stopping: a.life.stopping,
		Leads: a.raft.IsLeader, Leader: a.raft.LeaderAddr, Full: a.raft.DiskFull, Hears: a.server.Hears,
		Raft: logStats(a.raft), Latencies: a.latencies,
		Ends: func() (time.Time, time.Time) { return a.ident.Load().ExpiresAt(), a.identity.ca().Certificate.NotAfter },
		Self: a.self, Health: a.health, Probes: probesOf(a), KeepSessions: out.keep, Providers: append(providersOf(&a.config.Server.SignIn, a.log), a.relying...),
	}
	if a.options.Lines != nil {
		c.LogLines = a.options.Lines.Lines
	}
	if a.backups != nil {
		c.Collectors = append(c.Collectors, a.backups)
	}
	door := httpapi.New(c)
	sweepAudit(a.life, door)
	return door
}

// limitsOf are the limits that the HTTP door keeps.
func limitsOf(config config.Limits) front.Limits {
	return front.Limits{
		Streams: config.Streams, RequestsPerSec: config.RequestsPerSec, SubmitsPerSec: config.SubmitsPerSec, TokenFailures: config.TokenFailures,
	}
}

// health reports whether this agent can do its work.
func (a *Agent) health() api.Health {
	out := api.Health{Healthy: true}
	if a.config.Server.Enabled {
		out.Server = &api.Check{OK: a.raft.LeaderID() != ""}
		if !out.Server.OK {
			out.Server.Message = messages.Text(messages.English, "agent.no_leader", nil)
		}
		if a.raft.DiskFull() {
			out.Server.OK = false
			out.Server.Message = messages.Text(messages.English, "agent.disk_full", map[string]string{"server": a.members.name, "path": a.members.dir})
		}
		if a.removed.believed() {
			out.Server.OK = false
			out.Server.Message = messages.Text(messages.English, "agent.refuse.removed", map[string]string{"id": a.ID()})
		}
		out.Healthy = out.Server.OK
	}
	if a.config.Client.Enabled {
		out.Client = &api.Check{OK: a.node.client.Connected()}
		if !out.Client.OK {
			out.Client.Message = messages.Text(messages.English, "agent.no_server", nil)
		}
		if refusal := a.node.client.Refusal(); refusal != nil {
			out.Client.OK = false
			out.Client.Message = messages.Text(messages.English, refusal.ID, refusal.Params)
		}
		if at, over := a.certificates.expired(); over {
			out.Client.OK = false
			out.Client.Message = messages.Textf(messages.English, "agent.certificate_expired", "at", at.UTC().Format(time.RFC3339)) + "; " +
				messages.Text(messages.English, "agent.certificate_expired.hint", nil)
		}
		out.Healthy = out.Healthy && out.Client.OK
	}
	return out
}

// logStats is what tells how this server's log is, for metrics.
func logStats(node *consensus.Node) func() httpapi.LogStats {
	return func() httpapi.LogStats {
		s := node.Stats()
		return httpapi.LogStats{
			Term: s.Term, Leaders: s.Leaders, CommitIndex: s.CommitIndex, AppliedIndex: s.AppliedIndex,
			SnapshotIndex: s.SnapshotIndex, SnapshotAt: s.SnapshotAt, LastContact: s.LastContact, LogBytes: s.LogBytes, FreeBytes: s.FreeBytes,
		}
	}
}

// self describes the agent; nothing in it is secret.
func (a *Agent) self() api.AgentSelf {
	out := api.AgentSelf{
		ID: a.ID(), Name: a.config.Name, Cluster: a.identity.credentials.Self.Cluster, Version: a.options.Version,
		Protocol: wire.ProtocolVersion, Config: a.config.Redacted(), Stats: map[string]string{},
	}
	if a.config.Server.Enabled {
		out.Roles = append(out.Roles, "server")
		out.Leader = a.raft.IsLeader()
		stats := a.raft.Stats()
		out.Stats["raft_state"] = stats.State
		out.Stats["raft_term"] = strconv.FormatUint(stats.Term, 10)
		out.Stats["raft_last_index"] = strconv.FormatUint(stats.LastIndex, 10)
		out.Stats["raft_last_term"] = strconv.FormatUint(stats.LastTerm, 10)
		out.Stats["raft_commit_index"] = strconv.FormatUint(stats.CommitIndex, 10)
		out.Stats["raft_applied_index"] = strconv.FormatUint(stats.AppliedIndex, 10)
	}
	if a.config.Client.Enabled {
		out.Roles = append(out.Roles, "client")
		out.Stats["server"] = a.node.client.Server()
	}
	counts := a.gossip.Counts()
	out.Stats["gossip_refused"] = strconv.FormatUint(counts.Refused, 10)
	out.Stats["certificate_expires"] = a.ident.Load().ExpiresAt().UTC().Format(time.RFC3339)
	return out
}

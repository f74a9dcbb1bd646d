package agent

import (
	"crypto/rand"
	"net/http"
	"strconv"
	"time"

	"nomadlike/internal/messages"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/wire"
)

// door makes the HTTP door: of a server, or of a client that passes requests
// on.
func (a *Agent) door() http.Handler { return a.doorOver(a.server) }

// doorOver is the door of a server whose requests go to replica.
func (a *Agent) doorOver(replica replica) http.Handler {
	hosts := newHostList(a.config)
	if !a.config.Server.Enabled {
		return newRemote(a.log, a.now, hosts, a.serversToAsk, a.ident, readHealth(a.health))
	}
	asked := newSurvey(time.Now, a.log, figuresOver(a.pool))
	named := &seriesCollector{store: a.store, survey: asked, leads: a.raft.IsLeader, hears: a.server.Hears, now: time.Now}
	site := &site{
		replica: replica, store: a.store, log: a.log, now: a.now, lapseGrace: a.config.Server.LapseGrace, rand: rand.Reader, pool: a.pool, house: a.house,
		identity: a.identity, addr: a.addr, spoolDir: a.config.DataDir, stopping: a.stopping,
		survey:  asked,
		keys:    a,
		metrics: newMetrics(a.store, a.raft.IsLeader, a.raft.DiskFull, named), self: a.self, health: a.health,
	}
	if a.backups != nil {
		site.metrics.registry.MustRegister(a.backups)
	}
	f := newFront(a.log, time.Now, site, hosts, newLimiter(a.config.Limits, time.Now), a.options.ui())
	f.metrics = site.metrics
	a.keepSessions(f.sessions)
	toLeader := newProxy(a.log, a.ident, a.now, func() []string {
		if leader := a.raft.LeaderAddr(); leader != "" {
			return []string{leader}
		}
		return nil
	}, f.fail)
	f.route(site.handlers(func(here handler) handler {
		return func(r *request) error {
			if a.raft.IsLeader() {
				return here(r)
			}
			toLeader.ServeHTTP(r.w, r.Request)
			return nil
		}
	}))
	return f
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
			out.Server.Message = messages.Text(messages.English, "agent.disk_full", map[string]string{"server": a.house.name, "path": a.house.dir})
		}
		if a.removed.believed() {
			out.Server.OK = false
			out.Server.Message = messages.Text(messages.English, "agent.refuse.removed", map[string]string{"id": a.ID()})
		}
		out.Healthy = out.Server.OK
	}
	if a.config.Client.Enabled {
		out.Client = &api.Check{OK: a.client.Connected()}
		if !out.Client.OK {
			out.Client.Message = messages.Text(messages.English, "agent.no_server", nil)
		}
		if refusal := a.client.Refusal(); refusal != nil {
			out.Client.OK = false
			out.Client.Message = messages.Text(messages.English, refusal.ID, refusal.Params)
		}
		if at, over := a.expired(); over {
			out.Client.OK = false
			out.Client.Message = messages.Textf(messages.English, "agent.certificate_expired", "at", at.UTC().Format(time.RFC3339)) + "; " +
				messages.Text(messages.English, "agent.certificate_expired.hint", nil)
		}
		out.Healthy = out.Healthy && out.Client.OK
	}
	return out
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
		out.Stats["server"] = a.client.Server()
	}
	counts := a.gossip.Counts()
	out.Stats["gossip_refused"] = strconv.FormatUint(counts.Refused, 10)
	out.Stats["certificate_expires"] = a.ident.Load().ExpiresAt().UTC().Format(time.RFC3339)
	return out
}

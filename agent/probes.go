package agent

import (
	"nomadlike/agent/httpapi"
	"nomadlike/nomadlike/api"
)

// probesOf are what load balancers ask an agent. It answers anybody, so a no has one of
// a few words and neither names nor paths.
func probesOf(a *Agent) httpapi.Probes {
	said := func(trouble string) api.Probe { return api.Probe{OK: trouble == "", Reason: trouble} }
	return httpapi.Probes{
		Live:  func() api.Probe { return api.Probe{OK: true} },
		Ready: func() api.Probe { return said(troubleOf(a)) },
		Leader: func() api.Probe {
			if trouble := troubleOf(a); trouble == api.ProbeStopping {
				return said(trouble)
			}
			if !a.config.Server.Enabled || !a.raft.IsLeader() {
				return said(api.ProbeNotLeader)
			}
			return said("")
		},
	}
}

// troubleOf says why an agent should get no requests now; "": nothing is wrong.
func troubleOf(a *Agent) string {
	select {
	case <-a.life.stopping:
		return api.ProbeStopping
	default:
	}
	if a.config.Server.Enabled {
		switch {
		case a.removed.believed():
			return api.ProbeRemoved
		case a.raft.DiskFull():
			return api.ProbeDiskFull
		case a.raft.LeaderID() == "":
			return api.ProbeNoLeader
		}
		return "" // how its own node is matters to nobody who asks the server
	}
	_, over := a.certificates.expired()
	switch {
	case over:
		return api.ProbeCertificate
	case a.node.client.Refusal() != nil:
		return api.ProbeRefused
	case !a.node.client.Connected():
		return api.ProbeNoServer
	}
	return ""
}

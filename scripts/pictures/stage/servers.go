package stage

import (
	"context"
	"fmt"
	"strings"
	"time"

	"nomadlike/agent/httpapi"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// version is what every agent of a story says of itself, but for the one that nobody
// has upgraded yet.
const (
	version  = "1.4.0"
	outdated = "1.3.2"
)

// servers are the three servers of every story. The second does not renew its
// certificate, and the third could not make its last backup and runs an older version.
type servers struct{ count int }

var (
	_ httpapi.Membership = servers{}
	_ httpapi.Servers    = servers{}
)

func newServers() servers { return servers{count: 3} }

func (servers) id(i int) string   { return strings.Repeat(string(rune('d'+i)), 32) }
func (servers) name(i int) string { return fmt.Sprintf("control-%d", i+1) }

func (servers) version(i int) string {
	if i == 2 {
		return outdated
	}
	return version
}

func (servers) certificateEnd(i int) structs.UnixNano {
	if i == 1 {
		return structs.At(Now.Add(19 * time.Hour))
	}
	return structs.At(Now.Add(time.Duration(50+i) * time.Hour))
}

// Peers implements httpapi.Membership.
func (s servers) Peers() []api.RaftPeer {
	var list []api.RaftPeer
	for i := range s.count {
		list = append(list, api.RaftPeer{ID: s.id(i), Name: s.name(i), Addr: fmt.Sprintf("10.1.0.%d:4646", i+1), Voter: true, Leader: i == 0})
	}
	return list
}

// Members implements httpapi.Membership.
func (s servers) Members() []api.Member {
	var list []api.Member
	for i := range s.count {
		addr := fmt.Sprintf("10.1.0.%d", i+1)
		list = append(list, api.Member{
			ID: s.id(i), Name: s.name(i), Role: "server", GossipAddr: addr + ":4648", RPCAddr: addr + ":4646",
			Status: "alive", Leader: i == 0, Version: s.version(i), Protocol: wire.ProtocolVersion, CertificateEndsAt: s.certificateEnd(i),
		})
	}
	return list
}

// Health implements httpapi.Servers.
func (s servers) Health() api.AutopilotHealth {
	health := api.AutopilotHealth{
		Healthy: true, FailureTolerance: 1, LeaderID: s.id(0),
		Certificates: []api.CertificateEnd{{ID: s.id(1), Name: s.name(1), Role: "server", EndsAt: s.certificateEnd(1)}},
		Versions: []api.AgentVersion{
			{Version: version, Agents: 17, Names: []string{s.name(0), s.name(1), "cpu-01", "gpu-01"}},
			{Version: outdated, Agents: 1, Names: []string{s.name(2)}},
		},
	}
	for i, peer := range s.Peers() {
		one := api.ServerHealth{RaftPeer: peer, Status: "alive", Healthy: true}
		if i == 2 {
			one.BackupFailed = "write /backup/nomadlike-20261125T0300Z.snap: no space left on device"
		}
		health.Servers = append(health.Servers, one)
	}
	return health
}

// GossipServers implements httpapi.Membership.
func (servers) GossipServers() []string { return nil }

// Protocol implements httpapi.Membership.
func (servers) Protocol() int { return wire.ProtocolVersion }

// Lowest implements httpapi.Membership.
func (s servers) Lowest() (int, string) { return wire.ProtocolVersion, s.id(0) }

// Speaks implements httpapi.Membership.
func (servers) Speaks(string) int { return wire.ProtocolVersion }

// Join implements httpapi.Servers.
func (servers) Join(_ context.Context, addresses []string) (int, error) { return len(addresses), nil }

// AppliedIndex implements httpapi.Servers.
func (servers) AppliedIndex() uint64 { return 1 }

// MayRemove implements httpapi.Servers: nobody leaves.
func (servers) MayRemove(id string) error { return auth.NotFound("server", id) }

// Remove implements httpapi.Servers.
func (servers) Remove(_ context.Context, id string) error { return auth.NotFound("server", id) }

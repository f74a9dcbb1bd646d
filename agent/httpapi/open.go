package httpapi

import (
	"io"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/state"
)

// Config is what the HTTP API of a server needs of its agent.
type Config struct {
	Door    front.Config // without Callers and Observer
	Replica Replica
	Store   *state.Store     // of Replica
	Now     func() time.Time // of certificates and tokens
	Rand    io.Reader

	Pool     *rpc.Pool // connections to nodes
	Identity *rpc.Identity

	Members   Membership
	Servers   Servers
	Archives  Archives
	Authority Authority
	Keys      Keys

	Addr       string          // host:port of this agent
	SpoolDir   string          // for snapshots on their way out
	LapseGrace time.Duration   // how long after its end a certificate is renewed
	Stopping   <-chan struct{} // closed when the agent stops

	Leads  func() bool          // this server leads
	Leader func() string        // host:port of the leader, or ""
	Full   func() bool          // no room for log entries
	Hears  func(id string) bool // a node is connected here

	Self   func() api.AgentSelf
	Health func() api.Health

	KeepSessions func(*front.Sessions)  // has sign-ins outlive this server
	Collectors   []prometheus.Collector // of the agent
}

// New makes the HTTP door of a server.
func New(c Config) *front.Front {
	asked := newSurvey(time.Now, c.Door.Log, usageOver(c.Pool))
	named := &seriesCollector{store: c.Store, survey: asked, leads: c.Leads, hears: c.Hears, now: time.Now}
	site := &handlers{
		replica: c.Replica, store: c.Store, log: c.Door.Log, now: c.Now, lapseGrace: c.LapseGrace, rand: c.Rand, pool: c.Pool,
		members: c.Members, servers: c.Servers, archives: c.Archives, authority: c.Authority, addr: c.Addr, spoolDir: c.SpoolDir,
		stopping: c.Stopping, survey: asked, keys: c.Keys, metrics: newMetrics(c.Store, c.Leads, c.Full, named), self: c.Self, health: c.Health,
	}
	site.metrics.registry.MustRegister(c.Collectors...)
	c.Door.Callers, c.Door.Observer = site, site.metrics
	f := front.New(c.Door)
	c.KeepSessions(f.SignIns())
	toLeader := front.NewProxy(c.Door.Log, c.Identity, c.Now, func() []string {
		if leader := c.Leader(); leader != "" {
			return []string{leader}
		}
		return nil
	}, f.Fail)
	f.Route(site.table(func(here front.Handler) front.Handler {
		return func(r *front.Request) error {
			if c.Leads() {
				return here(r)
			}
			toLeader.ServeHTTP(r.Writer, r.Request)
			return nil
		}
	}))
	return f
}

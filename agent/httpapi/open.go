package httpapi

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// Config is what the HTTP API of a server needs of its agent.
type Config struct {
	Door    front.Config // without Callers and Observer
	Replica Replica
	Store   *state.Store     // of Replica
	Now     func() time.Time // of certificates and tokens
	Rand    io.Reader

	PasswordCost auth.Cost  // zero: auth.PasswordCost
	Providers    []Provider // that people sign in through

	Pool     *rpc.Pool // connections to nodes
	Identity *rpc.Identity

	Members   Membership
	Servers   Servers
	Archives  Archives
	Authority Authority
	Keys      Keys
	Vault     Vault
	Code      Code
	Images    OpenImageSecret
	Tell      Tell
	Audit     AuditRecord
	History   History

	PageDomain string          // below which tasks' pages are; "": they are not shown
	Addr       string          // host:port of this agent
	SpoolDir   string          // for snapshots on their way out
	LapseGrace time.Duration   // how long after its end a certificate is renewed
	Stopping   <-chan struct{} // closed when the agent stops

	Leads  func() bool          // this server leads
	Leader func() string        // host:port of the leader, or ""
	Full   func() bool          // no room for log entries
	Hears  func(id string) bool // a node is connected here

	Raft      func() LogStats                           // nil: a fake, without series of Raft
	Ends      func() (certificate, authority time.Time) // of this agent and of the CA
	Latencies *Latencies                                // what the log and the scheduler tell; nil: nobody tells any

	Self   func() api.AgentSelf
	Health func() api.Health
	Probes Probes

	LogLines func() []byte // the newest of the agent's log; nil: it keeps none

	KeepSessions func(*front.Sessions)  // has sign-ins outlive this server
	Collectors   []prometheus.Collector // of the agent
}

// New makes the HTTP door of a server.
func New(c Config) *front.Front {
	asked := newSurvey(time.Now, c.Door.Log, usageOver(c.Pool))
	if c.Latencies == nil {
		c.Latencies = NewLatencies()
	}
	named := &seriesCollector{store: c.Store, survey: asked, leads: c.Leads, hears: c.Hears, now: time.Now}
	site := endpointsOf(&c, asked, newMetrics(c.Store, c.Leads, c.Full, named))
	site.metrics.registry.MustRegister(c.Latencies, queueCollector{c.Store, c.Now})
	if c.Raft != nil {
		site.metrics.registry.MustRegister(serverCollector{raft: c.Raft, members: c.Members.Members, self: c.Self, ends: c.Ends, leads: c.Leads})
	}
	site.metrics.registry.MustRegister(c.Collectors...)
	c.Door.Callers, c.Door.Observer = &callers{replica: c.Replica, store: c.Store, now: c.Now}, site.metrics
	c.Door.Signer = &doorSigner{login: site.login, leads: c.Leads, leader: c.Leader, agents: front.ToServers(c.Identity, c.Now)}
	c.Door.Used = newTokenUses(c.Now, c.Door.Log, func(ctx context.Context, uses structs.TokensUsed) error {
		_, _, err := c.Replica.SubmitGuarded(ctx, structs.Guard{}, structs.CommandTokensUsed, "", uses)
		return err
	}).note
	f := front.New(c.Door)
	c.KeepSessions(f.SignIns())
	site.pages.open(f)
	site.debug.to = func(addr string) http.Handler {
		return front.NewProxy(c.Door.Log, c.Identity, c.Now, func() []string { return []string{addr} }, f.Fail)
	}
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

// endpointsOf builds the handlers of each noun with what they need.
func endpointsOf(c *Config, asked *survey, told *metrics) *endpoints {
	all := &core{replica: c.Replica, store: c.Store, log: c.Door.Log, now: c.Now, stopping: c.Stopping}
	calls := &nodeCalls{store: c.Store, log: c.Door.Log, pool: c.Pool}
	submissions := &submissionHandlers{core: all, submissions: c.Replica, boards: c.Replica, calls: calls, members: c.Members}
	usage := usageHandlers{core: all, calls: calls, survey: asked}
	login := newLoginHandlers(all, c)
	images := &imageHandlers{core: all, calls: calls, open: c.Images}
	made := &endpoints{
		find:        finders{all},
		jobs:        jobHandlers{core: all, usage: &usage},
		submissions: submissions,
		allocations: allocationHandlers{core: all, calls: calls, images: images, keys: c.Authority},
		pages:       &taskPageHandlers{core: all, calls: calls, keys: c.Authority, domain: c.PageDomain},
		files:       fileHandlers{all, calls},
		usage:       usage,
		queue:       queueHandlers{core: all, boards: c.Replica, futures: c.Replica},
		forecasts:   &forecastHandlers{core: all, futures: c.Replica, admit: submissions.admit, protocol: c.Members.Protocol},
		outlook:     &outlookHandlers{core: all, futures: c.Replica, boards: c.Replica},
		events:      eventHandlers{all},
		nodes:       nodeHandlers{core: all, members: c.Members, futures: c.Replica, lapseGrace: c.LapseGrace},
		devices:     deviceHandlers{core: all, calls: calls, survey: asked},
		pools:       poolHandlers{core: all, members: c.Members},
		images:      images,
		maintenance: maintenanceHandlers{core: all, futures: c.Replica, rand: c.Rand},
		projects:    projectHandlers{core: all, boards: c.Replica, members: c.Members},
		users:       userHandlers{core: all},
		settings:    settingsHandlers{core: all},
		tally:       tallyHandlers{core: all},
		login:       login,
		secrets:     &secretHandlers{core: all, vault: c.Vault, members: c.Members, rotating: make(chan struct{}, 1)},
		templates:   templateHandlers{all},
		code:        newCodeHandlers(all, c.Code, c.Members),
		data:        dataHandlers{core: all, members: c.Members, rand: c.Rand},
		notify:      notifyHandlers{core: all, vault: c.Vault, members: c.Members, tell: c.Tell, rand: c.Rand},
		tokens:      tokenHandlers{core: all, setup: c.Replica, rand: c.Rand, done: c.Authority.SetupDone, login: login},
		shares:      shareHandlers{core: all, rand: c.Rand},
		services:    &serviceAccountHandlers{core: all, rand: c.Rand},
		joinTokens:  joinTokenHandlers{core: all, rand: c.Rand, addr: c.Addr, ca: func() string { return c.Keys.CurrentKey(structs.KeyCA) }},
		joins:       joinHandlers{core: all, joins: c.Replica, members: c.Members, authority: c.Authority, lapseGrace: c.LapseGrace},
		servers:     serverHandlers{core: all, members: c.Members, servers: c.Servers},
		snapshots:   snapshotHandlers{core: all, archives: c.Archives, applied: c.Servers.AppliedIndex, spoolDir: c.SpoolDir},
		keys:        keyHandlers{core: all, keys: c.Keys, members: c.Members, rotating: make(chan struct{}, 1)},
		audit:       auditHandlers{core: all, record: c.Audit, members: c.Members},
		reports:     reportHandlers{core: all, history: c.History},
		metrics:     told,
		debug:       &debugHandlers{core: all, self: c.Self, members: c.Members, metrics: told, lines: c.LogLines, profiling: make(chan struct{}, 1)},
		self:        c.Self,
		health:      c.Health,
		probes:      c.Probes,
	}
	made.dataBytes = &dataBytes{dataHandlers: &made.data, calls: calls, bodies: newTurns(dataBodiesMax, api.DataUploadsMax)}
	made.data.removed = made.dataBytes.drop
	made.dataFiles = &dataFiles{dataBytes: made.dataBytes, streams: make(chan struct{}, api.DataArchiveMax)}
	return made
}

package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"nomadlike/agent/config"
	"nomadlike/agent/httpapi"
	"nomadlike/agent/httpapi/front"
	"nomadlike/internal/logkey"
	"nomadlike/internal/messages"
	"nomadlike/nomadlike/audit/journal"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/consensus"
	"nomadlike/nomadlike/gossip"
	"nomadlike/nomadlike/history/store"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/server"
	"nomadlike/nomadlike/state"
)

// Bounds of the HTTP listener and of stopping.
const (
	headerTimeout  = 10 * time.Second
	headerSizeMax  = 16 << 10 // bytes
	idleTimeout    = 2 * time.Minute
	streamsGrace   = time.Second // for open streams to end by themselves
	stopTimeout    = 10 * time.Second
	gossipGoodbye  = 500 * time.Millisecond
	bootstrapEvery = 10 * time.Millisecond
	logPatience    = 3 * time.Second
)

// Options are what an agent needs of its process besides its configuration.
type Options struct {
	Log      *slog.Logger
	Lines    *httpapi.LogLines // the newest of Log, for whoever may see them; may be nil
	Level    *slog.LevelVar    // of Log, for changes of the configuration; may be nil
	Out      io.Writer         // what a person at the console should read; may be nil
	Language messages.Language
	Version  string
	Getenv   func(string) string  // os.Getenv
	Reload   <-chan config.Config // new configurations, after SIGHUP; may be nil
	UI       http.Handler         // serves the web pages; nil: a page that says how to build them
	// Guides puts the guides before the handler of the pages; nil: there are none.
	Guides func(pages http.Handler) http.Handler
	// Supervisor replaces the supervisor program of the exec driver, for
	// tests; empty means the embedded one, or this program itself.
	Supervisor []string
	now        func() time.Time // the clock of certificates, for tests; time.Now
	renewLook  time.Duration    // for tests; renewLook
	foundLook  time.Duration    // for tests; foundLook

	// reaches lets messages be sent to an address in any case, for tests, whose servers
	// are on this machine; nil: to none.
	reaches func(netip.AddrPort) bool

	// freeBytes returns the free space of a server's directory, for tests; nil asks
	// the file system.
	freeBytes func(dir string) (uint64, error)

	// SysRoot is where sysfs and the device nodes of network cards are looked
	// for, for tests; empty means "/".
	SysRoot string
}

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Out == nil {
		o.Out = io.Discard
	}
	if o.Language == "" {
		o.Language = messages.English
	}
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	if o.now == nil {
		o.now = time.Now
	}
	if o.renewLook == 0 {
		o.renewLook = renewLook
	}
	if o.foundLook == 0 {
		o.foundLook = foundLook
	}
	if o.Version == "" {
		o.Version = "dev"
	}
	return o
}

// Agent is a running agent: it opens its parts in order, hands each what it needs,
// and stops them. Start makes it; its exported methods may be called from any
// goroutine.
type Agent struct {
	config     config.Config
	configured config.Config // as Start was given it
	options    Options
	log        *slog.Logger
	life       *lifecycle

	addr   string // host:port under which others reach this agent
	ident  *rpc.Identity
	mux    *rpc.Mux
	rpc    *rpc.Server
	pool   *rpc.Pool
	gossip *gossip.Gossip
	http   *http.Server

	telling sync.Mutex // one tellOthers at a time

	identity     *identity
	certificates *certificates
	servers      *servers
	removals     *removals // of nodes, as this agent knows them
	keyring      *keyring
	conditions   *conditions
	removed      *dismissal // of this server
	node         *clientPart

	// Servers only.
	store     *state.Store
	raft      *consensus.Node
	server    *server.Server
	proposer  atomic.Pointer[server.Server] // server, for what runs while it opens
	members   *membership
	backups   *backups // nil: none are configured
	teller    *teller
	latencies *httpapi.Latencies
	journal   *journal.Journal // of who did what
	copies    *auditCopies
	history   *store.Store       // of ended attempts
	relying   []httpapi.Provider // providers of OpenID Connect
	vault     *vault             // of secrets
	code      *codeKeeper        // that travels with jobs
	notifier  *notifier
}

// Run runs an agent until ctx ends or it fails, and stops it in order.
func Run(ctx context.Context, config config.Config, options Options) error {
	agent, err := Start(ctx, config, options)
	if err != nil {
		return err
	}
	err = agent.wait(ctx)
	agent.log.Info("stopping")
	if notifyErr := tellManager(context.WithoutCancel(ctx), agent.options.Getenv, "STOPPING=1"); notifyErr != nil {
		agent.log.Warn("service manager was not told", logkey.Error, notifyErr)
	}
	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	return errors.Join(err, agent.Stop(stopCtx))
}

// wait returns when ctx ends, or with what ended the agent.
func (a *Agent) wait(ctx context.Context) error {
	ready := make(chan struct{})
	go func() { // it ends with the agent, or with ctx
		if a.certificates.certified(ctx) {
			close(ready)
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-a.life.failed:
			return err
		case <-ready:
			ready = nil
			if err := tellManager(ctx, a.options.Getenv, readyState()); err != nil {
				a.log.Warn("service manager was not told", logkey.Error, err)
			}
			a.announce()
			// Starting took memory that an idle agent never needs again; left to
			// itself the runtime returns it over many minutes.
			go debug.FreeOSMemory()
		case next, ok := <-a.options.Reload:
			if !ok {
				a.options.Reload = nil
				continue
			}
			a.reload(next)
		}
	}
}

// Start starts an agent; it is ready when Start returns, but for what needs
// other agents. On error nothing is left running. ctx bounds only the start.
func Start(ctx context.Context, config config.Config, options Options) (*Agent, error) {
	agent, err := start(ctx, config, options)
	if !mayReplace(config, err) {
		return agent, err
	}
	options = options.withDefaults()
	if replaceErr := replace(ctx, config, options.Log, options.now()); replaceErr != nil {
		options.Log.Warn("the server does not come back as another one", logkey.Error, replaceErr)
		return nil, err
	}
	return start(ctx, config, options)
}

func start(ctx context.Context, config config.Config, options Options) (*Agent, error) {
	a := &Agent{
		config: config, configured: config, options: options.withDefaults(), life: newLifecycle(),
	}
	a.log = a.options.Log
	if err := a.start(ctx); err != nil {
		stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		return nil, errors.Join(err, a.Stop(stopCtx))
	}
	return a, nil
}

func (a *Agent) start(ctx context.Context) error {
	steps := []func(context.Context) error{
		a.openDataDir, a.openPort, a.openGossip, a.openServer,
		func(context.Context) error { return a.node.open() }, a.serveRPC, func(context.Context) error { return a.node.run() },
		a.awaitLog, a.serveHTTP,
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if !a.config.Dev {
		return nil
	}
	dev := &development{
		addr: a.addr, dataDir: a.config.DataDir, getenv: a.options.Getenv, log: a.log, life: a.life,
		identity: a.identity, store: a.store, server: a.server, node: a.node,
	}
	return dev.open(ctx)
}

// Addr is the host:port under which others reach this agent.
func (a *Agent) Addr() string { return a.addr }

// ID is the agent's id in the cluster.
func (a *Agent) ID() string { return a.identity.credentials.Self.ID }

// CA is the cluster's CA certificate, PEM.
func (a *Agent) CA() []byte { return a.identity.caPEM() }

// DataDir is where the agent keeps its files.
func (a *Agent) DataDir() string { return a.config.DataDir }

// Failed returns the error that ends the agent, once.
func (a *Agent) Failed() <-chan error { return a.life.failed }

// Stop ends the agent in order; tasks go on without it, except in development
// mode without a data directory of its own. Later calls wait for the first.
func (a *Agent) Stop(ctx context.Context) error { return a.life.stop(ctx) }

// openDataDir locks the data directory; development mode may make one that
// goes with the agent.
func (a *Agent) openDataDir(context.Context) error {
	if a.config.DataDir == "" {
		dir, err := os.MkdirTemp("", "nomadlike-dev-")
		if err != nil {
			return fmt.Errorf("make data directory: %w", err)
		}
		if err := os.Chmod(dir, 0o711); err != nil { // tasks of other users pass through it
			return fmt.Errorf("make data directory: %w", err)
		}
		a.config.DataDir = dir
		a.life.atStop(func(context.Context) { a.life.stopFailed("development mode", os.RemoveAll(dir)) })
	}
	unlock, err := lockDataDir(a.config.DataDir)
	if err != nil {
		return err
	}
	a.life.atStop(func(context.Context) { unlock() })
	return nil
}

// openPort opens the TLS port and finds out who this agent is.
func (a *Agent) openPort(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(a.config.Bind, strconv.Itoa(a.config.HTTPPort)))
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	a.addr = net.JoinHostPort(a.config.Advertise, strconv.Itoa(port))
	if err := a.identify(ctx, listener); err != nil {
		return errors.Join(err, listener.Close())
	}
	a.ident = rpc.NewIdentity(a.identity.credentials)
	a.servers = &servers{self: a.ID(), configured: a.config.Client.Servers, token: a.config.JoinToken.Addr}
	a.log = a.log.With("agent", a.ID()[:8])
	a.node = &clientPart{
		config: a.config, options: a.options, log: a.log, life: a.life, id: a.ID(), addr: a.addr, identity: a.identity, ident: a.ident,
		servers: a.servers.addresses,
	}
	a.conditions = &conditions{self: a.ID(), raft: &a.servers.raft, log: a.log}
	a.removed = &dismissal{id: a.ID(), node: a.config.Client.Enabled, log: a.log, fail: a.life.fail}
	muxed := rpc.MuxConfig{
		Identity: a.ident, Logger: a.log, ConnsPerIPMax: a.config.Limits.ConnectionsPeer, Relay: a.node.relay(), Now: a.options.now,
	}
	if a.config.TaskDomain != "" && a.config.Server.Enabled {
		muxed.Pages = (&pageCertificate{domain: a.config.TaskDomain, ca: a.identity.ca, now: a.options.now, log: a.log}).named
	}
	a.mux = rpc.NewMux(listener, muxed)
	a.removals = openRemovals(a.config.DataDir, a.config.Server.Enabled)
	a.removals.log, a.removals.life, a.removals.disconnect = a.log, a.life, a.mux.Disconnect
	a.rpc = rpc.NewServer(a.ident, a.log)
	a.rpc.Advertise(a.addr)
	a.rpc.Refuse(a.removals.refuse)
	a.pool = rpc.NewPool(a.dialer())
	a.certificates = &certificates{
		life: a.life, log: a.log, now: a.options.now, look: a.options.renewLook, getenv: a.options.Getenv, out: a.options.Out, language: a.options.Language,
		identity: a.identity, own: a.ident, pool: a.pool, servers: a.servers.addresses, disconnect: a.mux.DisconnectAll,
		name: a.config.Name, advertise: a.config.Advertise, token: a.config.JoinToken, doors: joinAddresses(a.config),
		tell: a.tellOthers,
	}
	a.keyring = &keyring{
		server: a.config.Server.Enabled, log: a.log, life: a.life,
		identity: a.identity, certificates: a.certificates, removals: a.removals, servers: a.servers, rpc: a.rpc, pool: a.pool,
	}
	a.keyring.registerTrust()
	a.node.rpc, a.node.pool, a.node.renew = a.rpc, a.pool, a.certificates.every
	a.life.atStop(func(ctx context.Context) {
		// Last: what the server and the node feed has ended by then, and a
		// leader has handed over.
		grace, done := context.WithTimeout(ctx, streamsGrace)
		defer done()
		a.rpc.Stop(grace)
		a.pool.Close()
		a.life.stopFailed("port", a.mux.Close())
	})
	return nil
}

func (a *Agent) dialer() rpc.Dialer { return rpc.Dialer{Identity: a.ident, Now: a.options.now} }

// identify reads, makes or joins for the agent's identity.
func (a *Agent) identify(ctx context.Context, listener net.Listener) error {
	if _, err := finishReplacement(a.config.DataDir, a.options.now()); err != nil {
		return err
	}
	id, err := loadIdentity(a.config.DataDir)
	if err != nil {
		return err
	}
	joined := a.config.JoinToken.Secret != ""
	switch {
	case id != nil:
	case joined:
		var seeds []string
		if id, seeds, err = joinCluster(ctx, a.config, a.log); err == nil {
			a.config.Server.Join = append(a.config.Server.Join, seeds...)
		}
	case a.config.Server.Enabled && (len(a.config.Server.Join) == 0 || a.config.Found):
		if err = (&founding{a.config, a.addr, a.options.foundLook, a.log}).mayFound(ctx, listener); err == nil {
			id, err = foundCluster(a.config, a.addr, a.options.now())
		}
	default:
		err = refuseWithoutToken()
	}
	if err != nil {
		return err
	}
	a.identity = id
	if err := id.check(a.config); err != nil {
		return err
	}
	err = id.refresh(a.options.now(), a.config.Advertise)
	if errors.Is(err, syscall.ENOSPC) && !id.credentials.Over(a.options.now()) {
		a.log.Warn("certificate is not renewed yet", logkey.Error, err) // the one there is does for now
		return nil
	}
	return err
}

// openServer opens the log and the server's duties.
func (a *Agent) openServer(context.Context) error {
	if !a.config.Server.Enabled {
		return nil
	}
	var err error
	if a.relying, err = relyingOnAll(a.config.Server.SignIn.OIDC); err != nil {
		return err
	}
	if a.journal, err = openAudit(&a.config, a.ID(), a.life, a.log); err != nil {
		return err
	}
	a.copies = &auditCopies{journal: a.journal, pool: a.pool, servers: a.servers, life: a.life, log: a.log}
	a.store = state.New()
	a.servers.store = a.store
	if a.history, err = openHistory(&a.config, a.life, a.log); err != nil {
		return err
	}
	timings := consensus.DefaultTimings()
	if a.config.Scale > 0 {
		timings = timings.Scale(a.config.Scale)
	}
	a.latencies = httpapi.NewLatencies()
	a.raft, err = consensus.Open(consensus.Config{
		ClusterID: a.identity.credentials.Self.Cluster, ID: a.ID(), Dir: filepath.Join(a.config.DataDir, serverDir),
		Stream: a.mux.RaftLayer(a.dialer(), a.servers.raftIDAt), Advertise: a.addr,
		FSM: server.NewKeepingMachine(a.store, a.history), Log: a.log, Timings: timings,
		FreeBytes: a.options.freeBytes, Full: func(id string) bool { return a.conditions.of(id).Full }, Committed: a.latencies.Committed,
	})
	if err != nil {
		return logProblem(err)
	}
	a.servers.raft.Store(a.raft)
	a.life.run(func() { a.conditions.tellRoom(a.tellOthers, a.life.stopping) })
	a.life.atStop(func(ctx context.Context) { a.life.stopFailed("log", a.raft.Shutdown(ctx, true)) })
	a.members = &membership{
		raft: a.raft, condition: a.conditions.of, gossip: a.gossip, log: a.log, now: time.Now, expect: a.config.Server.BootstrapExpect,
		name: a.config.Name, dir: filepath.Join(a.config.DataDir, serverDir), pool: a.pool, store: a.store,
	}
	if a.identity.founder && len(a.raft.Peers()) == 0 {
		if err := a.identity.renewJoins(a.identity.ca().Fingerprint(), a.addr, time.Now()); err != nil {
			return err
		}
	}
	a.backups = openBackups(a.config.Server.Backup, a.raft, a.identity.credentials.Self.Cluster, a.ID(), a.log, a.life)
	a.conditions.backups, a.conditions.members, a.conditions.store, a.conditions.proposer = a.backups, a.members, a.store, &a.proposer
	tend := func(ctx context.Context) { // what a leader does at each sweep beside the state's own
		a.members.tend(ctx)
		a.teller.tellAll(ctx)
		a.conditions.tell(ctx)
	}
	a.teller = &teller{
		id: a.ID(), now: a.options.now, lapseGrace: a.config.Server.LapseGrace, log: a.log, life: a.life,
		identity: a.identity, own: a.keyring.own, pool: a.pool, raft: a.raft, members: a.members, store: a.store, proposer: &a.proposer,
	}
	a.server, err = server.Open(server.Config{
		ID: a.ID(), Name: a.config.Name, Store: a.store, Log: a.raft, Peers: server.PoolPeers{Pool: a.pool},
		Now: time.Now, Rand: rand.Reader, Logger: a.log, ClusterInit: a.identity.record(),
		Servers: a.servers.others, Addresses: a.servers.addresses, CleanUp: tend, ForgetNodes: a.config.Server.ForgetNodes, Protocol: a.members.Protocol, Lowest: a.members.Lowest, Speaks: a.members.Speaks, Kept: a.config.Server.Kept, JobBytesMax: a.config.Server.JobBytesMax, Observer: a.latencies,
		SignCSR: func(csr []byte, who auth.Identity, ip string) ([]byte, error) {
			return a.identity.sign(csr, who, a.options.now(), ip)
		},
	})
	if err != nil {
		return err
	}
	a.life.atStop(func(context.Context) { a.server.Close() })
	a.proposer.Store(a.server)
	a.server.Register(a.rpc)
	a.rpc.Shun(a.servers.shuns)
	a.rpc.Report(a.conditions.own)
	a.removals.follow(a.store)
	a.keyring.registerGossip()
	a.keyring.registerCA()
	a.copies.register(a.rpc)
	filler := &historyFiller{
		history: a.history, pool: a.pool, servers: a.servers, protocol: a.members.Protocol, log: a.log,
	}
	filler.register(a.rpc)
	takeNodeRefusals(a.rpc, a.journal, a.life)
	if a.vault, err = openVault(a); err != nil {
		return err
	}
	if a.code, err = openCode(a); err != nil {
		return err
	}
	(&stager{snapshot: a.store.Snapshot, consistent: a.server.Consistent}).register(a.rpc)
	if a.notifier, err = openNotifier(a); err != nil {
		return err
	}
	openKeeper(a)
	openDataSweeper(a)
	a.copies.follow()
	a.life.follow(filler.run)
	a.keyring.follow()
	if a.identity.founder && len(a.raft.Peers()) == 0 {
		return a.members.begin(a.life, a.addr)
	}
	return nil
}

// serveRPC begins to answer other agents.
func (a *Agent) serveRPC(context.Context) error {
	server.RegisterWitness(a.rpc, a.pool, func(id string) string { return string(a.gossip.View(id).State) })
	// Ask for the listeners before the first connection is accepted: the mux
	// refuses protocols that nobody asked for.
	listener := a.mux.RPC()
	a.mux.HTTP()
	a.life.serve("serve RPC", func() error { return a.rpc.Serve(listener) })
	a.life.serve("serve port", a.mux.Serve)
	return nil
}

// awaitLog waits a moment for the log of a server that needs nobody else, so
// that whoever finds the agent answering finds it ready.
func (a *Agent) awaitLog(ctx context.Context) error {
	if a.raft == nil || len(a.raft.Peers()) != 1 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, logPatience)
	defer cancel()
	_, err := a.store.Block(ctx, func(now *state.Snapshot) (bool, <-chan struct{}) {
		return now.Cluster() != nil, now.WatchCluster()
	})
	if err != nil {
		a.log.Warn("the log is not ready yet", logkey.Error, err)
	}
	return nil
}

// serveHTTP begins to answer people.
func (a *Agent) serveHTTP(context.Context) error {
	base, cancel := context.WithCancel(context.Background())
	a.http = &http.Server{
		Handler:           a.doorOver(a.server),
		ReadHeaderTimeout: headerTimeout,
		MaxHeaderBytes:    headerSizeMax,
		IdleTimeout:       idleTimeout,
		BaseContext:       func(net.Listener) context.Context { return base },
		ConnState:         front.HeadState,
		ErrorLog:          slog.NewLogLogger(a.log.Handler(), slog.LevelDebug),
	}
	listener := front.HeadListener{Listener: a.mux.HTTP()}
	a.life.serve("serve HTTP", func() error {
		if err := a.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	a.life.atStop(func(ctx context.Context) {
		defer cancel()
		grace, done := context.WithTimeout(ctx, streamsGrace)
		defer done()
		if err := a.http.Shutdown(grace); err != nil {
			a.log.Debug("requests are cut off", logkey.Error, err)
			_ = a.http.Close()
		}
	})
	if a.config.Dev { // nobody joins, and the command line is signed in already
		return a.identity.forget(setupFile, joinServer, joinClient)
	}
	if err := a.identity.publish(); errors.Is(err, syscall.ENOSPC) {
		a.log.Warn("join tokens lie in the directory of the identity alone", logkey.Error, err) // the server is needed more than they are
	} else if err != nil {
		return err
	}
	if a.identity.founder {
		a.life.run(func() { a.identity.forgetSpent(a.store, a.life.stopping, a.log) })
	}
	return nil
}

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
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/internal/messages"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/client"
	"nomadlike/nomadlike/consensus"
	"nomadlike/nomadlike/gossip"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/server"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/wire"
	"nomadlike/plugins/exec"
)

// Bounds of the HTTP listener and of stopping.
const (
	headerTimeout  = 10 * time.Second
	headerSizeMax  = 16 << 10 // bytes
	idleTimeout    = 2 * time.Minute
	bodyTimeout    = time.Minute // to send a JSON body
	streamsGrace   = time.Second // for open streams to end by themselves
	stopTimeout    = 10 * time.Second
	gossipGoodbye  = 500 * time.Millisecond
	bootstrapEvery = 10 * time.Millisecond
	logPatience    = 3 * time.Second
)

// Options are what an agent needs of its process besides its configuration.
type Options struct {
	Log      *slog.Logger
	Level    *slog.LevelVar // of Log, for changes of the configuration; may be nil
	Out      io.Writer      // what a person at the console should read; may be nil
	Language messages.Language
	Version  string
	Getenv   func(string) string // os.Getenv
	Reload   <-chan Config       // new configurations, after SIGHUP; may be nil
	UI       http.Handler        // serves the web pages; nil: a page that says how to build them
	// Supervisor replaces the supervisor program of the exec driver, for
	// tests; empty means the embedded one, or this program itself.
	Supervisor []string
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
	if o.Version == "" {
		o.Version = "dev"
	}
	return o
}

// Agent is a running agent. Start makes it; its other methods may be called
// from any goroutine.
type Agent struct {
	config     Config
	configured Config // as Start was given it
	options    Options
	log        *slog.Logger

	addr     string // host:port under which others reach this agent
	identity *identity
	ident    *rpc.Identity
	mux      *rpc.Mux
	rpc      *rpc.Server
	pool     *rpc.Pool
	gossip   *gossip.Gossip

	// Servers only.
	store  *state.Store
	raft   *consensus.Node
	server *server.Server
	house  *parliament

	// Clients only.
	client *client.Client
	driver *exec.Driver

	http     *http.Server
	stopping chan struct{} // closed when Stop begins; ends streams
	failed   chan error    // the first failure that ends the agent
	tasks    sync.WaitGroup
	undo     []func(context.Context) // what Stop does, last first

	stop struct {
		sync.Once
		err error
	}
}

// Run runs an agent until ctx ends or it fails, and stops it in order.
func Run(ctx context.Context, config Config, options Options) error {
	agent, err := Start(ctx, config, options)
	if err != nil {
		return err
	}
	if err := notify(ctx, agent.options.Getenv, readyState()); err != nil {
		agent.log.Warn("service manager was not told", logkey.Error, err)
	}
	agent.announce()
	err = agent.wait(ctx)
	agent.log.Info("stopping")
	if notifyErr := notify(context.WithoutCancel(ctx), agent.options.Getenv, "STOPPING=1"); notifyErr != nil {
		agent.log.Warn("service manager was not told", logkey.Error, notifyErr)
	}
	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	return errors.Join(err, agent.Stop(stopCtx))
}

// wait returns when ctx ends, or with what ended the agent.
func (a *Agent) wait(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-a.failed:
			return err
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
func Start(ctx context.Context, config Config, options Options) (*Agent, error) {
	a := &Agent{
		config: config, configured: config, options: options.withDefaults(),
		stopping: make(chan struct{}), failed: make(chan error, 1),
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
		a.openDataDir, a.openPort, a.openGossip, a.openServer, a.openClient, a.serveRPC, a.runClient,
		a.awaitLog, a.serveHTTP, a.openDevelopment,
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// atStop has f called by Stop, after everything that was started later has
// stopped.
func (a *Agent) atStop(f func(context.Context)) { a.undo = append(a.undo, f) }

// fail ends the agent, unless it is ending already.
func (a *Agent) fail(err error) {
	select {
	case a.failed <- err:
	default:
	}
}

// Addr is the host:port under which others reach this agent.
func (a *Agent) Addr() string { return a.addr }

// ID is the agent's id in the cluster.
func (a *Agent) ID() string { return a.identity.credentials.Self.ID }

// CA is the cluster's CA certificate, PEM.
func (a *Agent) CA() []byte { return a.identity.caPEM }

// DataDir is where the agent keeps its files.
func (a *Agent) DataDir() string { return a.config.DataDir }

// Failed gives the error that ends the agent, once.
func (a *Agent) Failed() <-chan error { return a.failed }

// Stop ends the agent in order; tasks go on without it, except in development
// mode without a data directory of its own. Later calls wait for the first.
func (a *Agent) Stop(ctx context.Context) error {
	a.stop.Do(func() {
		close(a.stopping)
		for i := len(a.undo) - 1; i >= 0; i-- {
			a.undo[i](ctx)
		}
		a.tasks.Wait()
	})
	return a.stop.err
}

func (a *Agent) stopFailed(what string, err error) {
	if err != nil {
		a.stop.err = errors.Join(a.stop.err, fmt.Errorf("stop %s: %w", what, err))
	}
}

// openDataDir locks the data directory; development mode may make one that
// goes with the agent.
func (a *Agent) openDataDir(context.Context) error {
	if a.config.DataDir == "" {
		dir, err := os.MkdirTemp("", "nomadlike-dev-")
		if err != nil {
			return fmt.Errorf("make data directory: %w", err)
		}
		a.config.DataDir = dir
		a.atStop(func(context.Context) { a.stopFailed("development mode", os.RemoveAll(dir)) })
	}
	unlock, err := lockDataDir(a.config.DataDir)
	if err != nil {
		return err
	}
	a.atStop(func(context.Context) { unlock() })
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
	if err := a.identify(ctx); err != nil {
		return errors.Join(err, listener.Close())
	}
	a.ident = rpc.NewIdentity(a.identity.credentials)
	a.log = a.log.With("agent", a.ID()[:8])
	a.mux = rpc.NewMux(listener, rpc.MuxConfig{
		Identity: a.ident, Logger: a.log, ConnsPerIPMax: a.config.Limits.ConnectionsPeer,
	})
	a.rpc = rpc.NewServer(a.ident, a.log)
	a.pool = rpc.NewPool(rpc.Dialer{Identity: a.ident})
	a.atStop(func(ctx context.Context) {
		// Last: what the server and the node feed has ended by then, and a
		// leader has handed over.
		grace, done := context.WithTimeout(ctx, streamsGrace)
		defer done()
		a.rpc.Stop(grace)
		a.pool.Close()
		a.stopFailed("port", a.mux.Close())
	})
	a.tasks.Go(a.keepCertificate)
	return nil
}

// identify reads, makes or joins for the agent's identity.
func (a *Agent) identify(ctx context.Context) error {
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
	case a.config.Server.Enabled && len(a.config.Server.Join) == 0:
		id, err = foundCluster(a.config, a.addr, time.Now())
	default:
		err = refuseWithoutToken()
	}
	if err != nil {
		return err
	}
	a.identity = id
	return id.check(a.config)
}

// openGossip makes the agent a member.
func (a *Agent) openGossip(context.Context) error {
	port := a.config.Gossip
	if port == 0 {
		port = -1
	}
	var err error
	a.gossip, err = gossip.Open(gossip.Config{
		Name: a.ID(),
		Meta: gossip.Meta{
			Name:    a.config.Name,
			Cluster: a.identity.credentials.Self.Cluster, Role: string(a.identity.role()), RPCAddr: a.addr,
			Protocol: wire.ProtocolVersion, Version: a.options.Version,
		},
		Key: a.identity.gossipKey, Logger: a.log, BindAddr: a.config.Bind, Port: port, AdvertiseAddr: a.config.Advertise,
		Seeds: a.config.Server.Join, Known: gossip.KnownFile(filepath.Join(a.config.DataDir, "servers.json")),
		Scale: a.config.Scale,
	})
	if err != nil {
		return err
	}
	a.tasks.Go(func() { // somebody must read; what is told is read from the table
		for range a.gossip.Events() {
			continue
		}
	})
	a.atStop(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, gossipGoodbye)
		defer cancel()
		if err := a.gossip.Leave(ctx); err != nil {
			a.log.Debug("leave gossip", logkey.Error, err) // nobody may be left to hear it
		}
	})
	return nil
}

// openServer opens the log and the server's duties.
func (a *Agent) openServer(context.Context) error {
	if !a.config.Server.Enabled {
		return nil
	}
	a.store = state.New()
	timings := consensus.DefaultTimings()
	if a.config.Scale > 0 {
		timings = timings.Scale(a.config.Scale)
	}
	var err error
	a.raft, err = consensus.Open(consensus.Config{
		ClusterID: a.identity.credentials.Self.Cluster, ID: a.ID(), Dir: filepath.Join(a.config.DataDir, serverDir),
		Stream: a.mux.RaftLayer(rpc.Dialer{Identity: a.ident}), Advertise: a.addr,
		FSM: server.NewMachine(a.store), Log: a.log, Timings: timings,
	})
	if err != nil {
		return err
	}
	a.atStop(func(ctx context.Context) { a.stopFailed("log", a.raft.Shutdown(ctx, true)) })
	a.house = &parliament{raft: a.raft, gossip: a.gossip, log: a.log, now: time.Now, expect: a.config.Server.BootstrapExpect}
	a.server, err = server.Open(server.Config{
		ID: a.ID(), Store: a.store, Log: a.raft, Peers: server.PoolPeers{Pool: a.pool},
		Now: time.Now, Rand: rand.Reader, Logger: a.log, ClusterInit: a.identity.record(),
		Servers: a.otherServers, Addresses: a.serverAddresses, CleanUp: a.house.tend,
		SignCSR: func(csr []byte, who auth.Identity) ([]byte, error) {
			host, _, _ := net.SplitHostPort(a.gossip.View(who.ID).Meta.RPCAddr)
			return a.identity.sign(csr, who, time.Now(), host)
		},
	})
	if err != nil {
		return err
	}
	a.atStop(func(context.Context) { a.server.Close() })
	a.server.Register(a.rpc)
	if a.identity.founder && len(a.raft.Peers()) == 0 {
		return a.bootstrap()
	}
	return nil
}

// bootstrap begins the log: at once when this server is to be alone, else as
// soon as gossip knows as many servers as expected.
func (a *Agent) bootstrap() error {
	if a.config.Server.BootstrapExpect == 1 {
		return a.raft.Bootstrap([]consensus.Peer{{ID: a.ID(), Addr: a.addr, Voter: true}})
	}
	a.tasks.Go(func() {
		tick := time.NewTicker(bootstrapEvery)
		defer tick.Stop()
		for {
			servers := a.gossip.Servers()
			if len(servers) >= a.config.Server.BootstrapExpect {
				peers := make([]consensus.Peer, len(servers))
				for i, member := range servers {
					peers[i] = consensus.Peer{ID: member.ID, Addr: member.Meta.RPCAddr, Voter: true}
				}
				err := a.raft.Bootstrap(peers)
				if err != nil && !errors.Is(err, consensus.ErrShutdown) {
					a.fail(err)
				}
				return
			}
			select {
			case <-tick.C:
			case <-a.stopping:
				return
			}
		}
	})
	return nil
}

func (a *Agent) otherServers() []server.Agent {
	var others []server.Agent
	for _, member := range a.gossip.Servers() {
		if member.ID != a.ID() {
			others = append(others, server.Agent{ID: member.ID, Addr: member.Meta.RPCAddr, Role: auth.RoleServer})
		}
	}
	return others
}

// serverAddresses lists the servers' ports: those that gossip knows, and
// those of the configuration, which may know more at the start.
func (a *Agent) serverAddresses() []string {
	var addresses []string
	seen := map[string]bool{}
	add := func(addr string) {
		if !seen[addr] {
			seen[addr] = true
			addresses = append(addresses, addr)
		}
	}
	for _, member := range a.gossip.Servers() {
		add(member.Meta.RPCAddr)
	}
	for _, addr := range a.config.Client.Servers {
		add(addr)
	}
	if len(addresses) == 0 && a.config.JoinToken.Addr != "" {
		add(a.config.JoinToken.Addr)
	}
	return addresses
}

// serveRPC begins to answer other agents.
func (a *Agent) serveRPC(context.Context) error {
	server.RegisterWitness(a.rpc, a.pool, func(id string) string { return string(a.gossip.View(id).State) })
	// Ask for the listeners before the first connection is accepted: the mux
	// refuses protocols that nobody asked for.
	listener := a.mux.RPC()
	a.mux.HTTP()
	a.background("serve RPC", func() error { return a.rpc.Serve(listener) })
	a.background("serve port", a.mux.Serve)
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
		Handler:           a.door(),
		ReadHeaderTimeout: headerTimeout,
		MaxHeaderBytes:    headerSizeMax,
		IdleTimeout:       idleTimeout,
		BaseContext:       func(net.Listener) context.Context { return base },
		ErrorLog:          slog.NewLogLogger(a.log.Handler(), slog.LevelDebug),
	}
	listener := a.mux.HTTP()
	a.background("serve HTTP", func() error {
		if err := a.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	a.atStop(func(ctx context.Context) {
		defer cancel()
		grace, done := context.WithTimeout(ctx, streamsGrace)
		defer done()
		if err := a.http.Shutdown(grace); err != nil {
			a.log.Debug("requests are cut off", logkey.Error, err)
			_ = a.http.Close()
		}
	})
	return a.identity.publish()
}

// background runs f until it returns; an error ends the agent.
func (a *Agent) background(what string, f func() error) {
	a.tasks.Go(func() {
		if err := f(); err != nil {
			a.fail(fmt.Errorf("%s: %w", what, err))
		}
	})
}

package config

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/client/data/remote"
	clientmachine "nomadlike/nomadlike/client/machine"
	"nomadlike/nomadlike/client/prepare"
	"nomadlike/nomadlike/client/room"
	"nomadlike/nomadlike/client/workspace"
	"nomadlike/nomadlike/launch"
	"nomadlike/nomadlike/server"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/host"
)

// Defaults of the configuration.
const (
	DefaultHTTPPort   = 4646
	DefaultGossipPort = 4648
	DefaultDataDir    = "/var/lib/nomadlike"
	DefaultPortMin    = 20000 // of the ports given to jobs
	DefaultPortMax    = 29999

	connectionsPeerDefault = 1024
	streamsDefault         = 1000
	requestsDefault        = 5000.0
	submissionsDefault     = 2000.0
	tokenFailuresDefault   = 20

	forgetNodesDefault = 30 * 24 * time.Hour

	bootstrapExpectMax = 7
	scaleMax           = 20
)

// Config is everything that an agent needs to know before it starts; made by
// Load, checked, with every default filled in.
type Config struct {
	Name      string // of this machine in the cluster
	DataDir   string // absolute; made with mode 0700 when missing
	Bind      string // IP that the ports listen on
	Advertise string // IP under which others reach this agent
	HTTPPort  int    // 0: any free one, for tests
	Gossip    int    // 0: any free one, for tests

	Server Server
	Client Client

	JoinToken auth.JoinToken // zero: found a cluster, or come back to one
	LogLevel  string
	LogFormat string
	PluginDir string
	Plugins   []host.PluginConfig // external drivers
	Devices   DevicePlugins
	Limits    Limits
	Hosts     []string // names under which browsers may reach the API
	Scale     float64  // stretches the timings of failure detection; 1 on a quiet LAN
	Dev       bool
	Found     bool     // a cluster is founded although another one may know this server
	Files     []string // that this was read from; no task sees them
}

// Redacted is the configuration as operators may see it.
func (c Config) Redacted() map[string]any {
	token := ""
	if c.JoinToken.Secret != "" {
		token = "***"
	}
	return map[string]any{
		"name": c.Name, "data_dir": c.DataDir, "bind": c.Bind, "advertise": c.Advertise, "join_token": token,
		"ports":  map[string]any{"http": c.HTTPPort, "gossip": c.Gossip},
		"server": map[string]any{"enabled": c.Server.Enabled, "bootstrap_expect": c.Server.BootstrapExpect, "join": c.Server.Join},
		"client": map[string]any{
			"enabled": c.Client.Enabled, "servers": c.Client.Servers, "pool": c.Client.Pool, "interface": c.Client.Interface,
			"port_min": c.Client.PortMin, "port_max": c.Client.PortMax, "meta": c.Client.Meta,
			"topology": c.Client.Topology, "rdma": c.Client.RDMA, "devices": len(c.Client.Devices),
			"storages": len(c.Client.Storages),
			"reserved": map[string]any{"cpu": c.Client.ReservedCPU, "memory": c.Client.ReservedMemory},
		},
		"log": map[string]any{"level": c.LogLevel, "format": c.LogFormat}, "plugin_dir": c.PluginDir, "hosts": c.Hosts,
		"scale": c.Scale, "dev": c.Dev,
	}
}

// Ended jobs that servers keep.
const (
	keepJobsDefault = 10_000
	keepJobsMax     = 1_000_000

	jobBytesDefault = 256 << 20 // of the specifications of all live jobs
	jobBytesLeast   = 16 << 20  // so that a user may have some of the largest
)

// ServerConfig is the part of a server.
type Server struct {
	Enabled         bool
	BootstrapExpect int           // the founder starts Raft when it sees so many servers
	Join            []string      // host:port of gossip
	LapseGrace      time.Duration // how long after its end a node's certificate is renewed
	Kept            server.Kept   // ended jobs that stay in the state
	JobBytesMax     int64         // of the specifications of all jobs that have not ended; 0: any
	Backup          Backup
	ForgetNodes     time.Duration // how long a node is down before it is forgotten; 0: never
}

// ClientConfig is the part of a client.
type Client struct {
	Enabled         bool
	Servers         []string // host:port of servers' ports
	Pool            string
	Interface       string // whose address ranks use among themselves; "": that of Advertise
	PortMin         int
	PortMax         int
	ReservedCPU     float64 // cores
	ReservedMemory  int64   // bytes
	Meta            map[string]string
	Topology        []string // where the machine stands, outermost first: room, rack, switch
	RDMA            bool
	EnvFile         string           // of variables that tasks have; "": none
	NCCLDebug       string           // in the prefix of mode horovod; "": INFO
	GuardRendezvous bool             // the ports at which gangs meet are kept, where the agent can
	Devices         []structs.Device // declared, not found by a plugin
	Docker          Docker
	Exec            Exec
	Storages        []workspace.Storage
	Remotes         map[string]remote.Server // of the storages on servers, by their names
	Data            Data
	Disk            clientmachine.DiskBounds
	Room            room.Bounds
}

// LimitsConfig is the part of limits.
type Limits struct {
	ConnectionsPeer int
	Streams         int
	RequestsPerSec  float64
	SubmitsPerSec   float64
	TokenFailures   int // a minute from one address
}

// problem is one thing wrong with a configuration, named by its path.
type problem struct {
	path string // "server.bootstrap_expect"
	id   string // of the catalogue
	args []any  // pairs
}

// surroundings are what defaults depend on; the door to the machine.
type surroundings struct {
	hostname func() (string, error)
	address  func(iface string) (string, error) // first global unicast IP of the machine, or of an interface
	readFile func(string) ([]byte, error)
	workDir  func() (string, error)
}

func machine() surroundings {
	return surroundings{hostname: os.Hostname, address: machineAddress, readFile: os.ReadFile, workDir: os.Getwd}
}

// resolve turns merged settings into a Config. It lists all problems.
func resolve(s Settings, env surroundings) (Config, []problem) {
	r := resolver{settings: s, env: env}
	dev := get(s.Dev, false)
	r.config = Config{
		LogLevel:  r.word("log.level", get(blockOf(s.Log).Level, "info"), "debug", "info", "warn", "error"),
		LogFormat: r.word("log.format", get(blockOf(s.Log).Format, "auto"), "auto", "text", "json"),
		PluginDir: get(s.PluginDir, ""),
		Hosts:     blockOf(s.HTTP).Hosts,
		Scale:     get(s.Scale, 1),
		Dev:       dev,
		Found:     get(s.Found, false),
	}
	if !(r.config.Scale >= 0.5 && r.config.Scale <= scaleMax) {
		r.refuse("scale", "agent.config.scale", "value", r.config.Scale, "max", scaleMax)
	}
	r.name()
	r.roles(dev)
	r.addresses(dev)
	r.dataDir()
	r.client()
	r.limits()
	r.plugins()
	r.joinToken()
	r.found()
	return r.config, r.problems
}

type resolver struct {
	settings Settings
	env      surroundings
	config   Config
	problems []problem
	remotes  map[string]remote.Server // of the storages that were read so far
}

func (r *resolver) refuse(path, id string, args ...any) {
	r.problems = append(r.problems, problem{path: path, id: id, args: args})
}

func blockOf[T any](block *T) T {
	var zero T
	return get(block, zero)
}

func (r *resolver) word(path, value string, allowed ...string) string {
	for _, word := range allowed {
		if word == value {
			return value
		}
	}
	r.refuse(path, "agent.config.word", "value", value, "allowed", strings.Join(allowed, ", "))
	return allowed[0]
}

// name defaults to the host name, made into a legal one.
func (r *resolver) name() {
	if r.settings.Name != nil {
		r.config.Name = *r.settings.Name
		if id := structs.NameProblem(r.config.Name); id != "" {
			r.refuse("name", id)
		}
		return
	}
	host, err := r.env.hostname()
	if err != nil {
		r.refuse("name", "agent.config.hostname", "reason", err)
		return
	}
	r.config.Name = legalName(host)
}

// legalName makes the first label of a host name into a name.
func legalName(host string) string {
	label, _, _ := strings.Cut(strings.ToLower(host), ".")
	var b strings.Builder
	for _, c := range label {
		letter, digit := c >= 'a' && c <= 'z', c >= '0' && c <= '9'
		if b.Len() == 0 && digit {
			b.WriteByte('n')
		}
		if letter || digit || c == '-' && b.Len() > 0 {
			b.WriteRune(c)
		}
	}
	name := b.String()
	name = strings.TrimRight(name[:min(len(name), structs.NameLengthMax)], "-")
	if structs.NameProblem(name) != "" {
		return "node"
	}
	return name
}

// kept resolves which ended jobs stay in the state.
func (r *resolver) kept(server ServerBlock) {
	kept := &r.config.Server.Kept
	if kept.Jobs = get(server.KeepJobs, keepJobsDefault); kept.Jobs < 0 || kept.Jobs > keepJobsMax {
		r.refuse("server.keep_jobs", "agent.config.keep_jobs", "value", kept.Jobs, "max", keepJobsMax)
	}
	if text := get(server.KeepJobsFor, ""); text != "" {
		span, err := structs.ParseDuration(text)
		if err != nil || span < 0 {
			r.refuse("server.keep_jobs_for", "agent.config.keep_jobs_for", "value", text)
		}
		kept.For = span
	}
	r.config.Server.JobBytesMax = jobBytesDefault
	if text := get(server.JobsSizeMax, ""); text != "" {
		size, err := structs.ParseSize(text)
		if err != nil || size < 0 || size > 0 && size < jobBytesLeast {
			r.refuse("server.jobs_size_max", "agent.config.jobs_size_max", "value", text, "min", structs.FormatSize(jobBytesLeast))
		}
		r.config.Server.JobBytesMax = size
	}
}

func (r *resolver) roles(dev bool) {
	server, client := blockOf(r.settings.Server), blockOf(r.settings.Client)
	r.config.Server.Enabled = get(server.Enabled, dev)
	r.config.Client.Enabled = get(client.Enabled, dev)
	r.config.Server.Join = server.Join
	r.config.Server.Backup = r.backup(server.Backup)
	r.config.Client.Servers = client.Servers
	r.config.Server.BootstrapExpect = get(server.BootstrapExpect, 1)
	if n := r.config.Server.BootstrapExpect; n < 1 || n > bootstrapExpectMax {
		r.refuse("server.bootstrap_expect", "agent.config.expect", "value", n, "max", bootstrapExpectMax)
	}
	r.config.Server.LapseGrace = r.span("server.renew_grace", server.LapseGrace, auth.LapseGraceDefault)
	r.config.Server.ForgetNodes = r.span("server.forget_nodes", server.ForgetNodes, forgetNodesDefault)
	r.kept(server)
	if !r.config.Server.Enabled && !r.config.Client.Enabled {
		r.refuse("", "agent.config.no_role")
	}
	for i, address := range r.config.Server.Join {
		r.config.Server.Join[i] = r.hostPort("server.join", address, DefaultGossipPort)
	}
	for i, address := range r.config.Client.Servers {
		r.config.Client.Servers[i] = r.hostPort("client.servers", address, DefaultHTTPPort)
	}
	if dev && (len(r.config.Server.Join) > 0 || r.config.Server.BootstrapExpect != 1) {
		r.refuse("server", "agent.config.dev_join")
	}
}

// span reads a span of time that may be nothing.
func (r *resolver) span(path string, text *string, otherwise time.Duration) time.Duration {
	if text == nil {
		return otherwise
	}
	span, err := structs.ParseDuration(*text)
	if err != nil || span < 0 {
		r.refuse(path, "agent.config.renew_grace", "value", *text)
	}
	return span.Std()
}

// hostPort completes an address with a default port.
func (r *resolver) hostPort(path, address string, port int) string {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		host, portText = strings.Trim(address, "[]"), strconv.Itoa(port)
	}
	badHost := host == "" || strings.Contains(host, ":") && net.ParseIP(host) == nil
	if n, err := strconv.Atoi(portText); err != nil || n < 1 || n > 65535 || badHost {
		r.refuse(path, "agent.config.address", "value", address)
	}
	return net.JoinHostPort(host, portText)
}

func (r *resolver) addresses(dev bool) {
	ports := blockOf(r.settings.Ports)
	r.config.HTTPPort = r.port("ports.http", get(ports.HTTP, DefaultHTTPPort))
	r.config.Gossip = r.port("ports.gossip", get(ports.Gossip, DefaultGossipPort))
	if r.config.HTTPPort == r.config.Gossip && r.config.HTTPPort != 0 {
		r.refuse("ports.gossip", "agent.config.same_port", "value", r.config.Gossip)
	}
	bind := "0.0.0.0"
	if dev {
		bind = "127.0.0.1"
	}
	r.config.Bind = get(r.settings.Bind, bind)
	ip := net.ParseIP(r.config.Bind)
	switch {
	case ip == nil:
		r.refuse("bind", "agent.config.ip", "value", r.config.Bind)
		return
	case dev && !ip.IsLoopback():
		r.refuse("bind", "agent.config.dev_bind", "value", r.config.Bind)
	}
	if r.settings.Advertise != nil {
		r.config.Advertise = *r.settings.Advertise
		if advertised := net.ParseIP(r.config.Advertise); advertised == nil || advertised.IsUnspecified() {
			r.refuse("advertise", "agent.config.ip", "value", r.config.Advertise)
		}
		return
	}
	if !ip.IsUnspecified() {
		r.config.Advertise = r.config.Bind
		return
	}
	address, err := r.env.address(get(blockOf(r.settings.Client).Interface, ""))
	if err != nil {
		r.refuse("advertise", "agent.config.no_address", "reason", err)
		return
	}
	r.config.Advertise = address
}

func (r *resolver) port(path string, port int) int {
	if port < 0 || port > 65535 {
		r.refuse(path, "agent.config.port", "value", port)
	}
	return port
}

func (r *resolver) dataDir() {
	dir := get(r.settings.DataDir, "")
	if dir == "" && r.config.Dev {
		return // Run makes a temporary one
	}
	if dir == "" {
		dir = DefaultDataDir
	}
	if !filepath.IsAbs(dir) {
		work, err := r.env.workDir()
		if err != nil {
			r.refuse("data_dir", "agent.config.data_dir", "reason", err)
		}
		dir = filepath.Join(work, dir)
	}
	r.config.DataDir = filepath.Clean(dir)
}

func (r *resolver) client() {
	block := blockOf(r.settings.Client)
	c := &r.config.Client
	c.Pool = get(block.Pool, "")
	c.Interface = get(block.Interface, "")
	c.Meta = block.Meta
	c.Docker = r.docker(block.Docker)
	c.Exec = r.exec(block.Exec)
	c.PortMin, c.PortMax = get(block.PortMin, DefaultPortMin), get(block.PortMax, DefaultPortMax)
	if c.PortMin < 1024 || c.PortMax > 65535 || c.PortMin > c.PortMax {
		r.refuse("client.port_min", "agent.config.port_range", "min", c.PortMin, "max", c.PortMax)
	}
	if c.Pool != "" {
		if id := structs.NameProblem(c.Pool); id != "" {
			r.refuse("client.pool", id)
		}
	}
	reserved := blockOf(block.Reserved)
	c.ReservedCPU = get(reserved.CPU, 0)
	if !(c.ReservedCPU >= 0 && c.ReservedCPU <= 4096) {
		r.refuse("client.reserved.cpu", "agent.config.reserved_cpu", "value", c.ReservedCPU)
	}
	if text := get(reserved.Memory, ""); text != "" {
		bytes, err := structs.ParseSize(text)
		if err != nil {
			r.refuse("client.reserved.memory", "agent.config.size", "value", text, "reason", err)
		}
		c.ReservedMemory = bytes
	}
	c.Topology, c.RDMA = block.Topology, get(block.RDMA, false)
	if c.EnvFile = get(block.EnvFile, ""); c.EnvFile != "" {
		if _, err := prepare.ReadEnvFile(c.EnvFile, nil); err != nil {
			r.refuse("client.env_file", "agent.config.env_file", "path", c.EnvFile, "cause", err)
		}
	}
	c.GuardRendezvous = get(block.GuardRendezvous, true)
	c.NCCLDebug = get(block.NCCLDebug, "")
	if words := []string{"", launch.NCCLDebugOff, "VERSION", "WARN", "INFO", "ABORT", "TRACE"}; !slices.Contains(words, c.NCCLDebug) {
		r.refuse("client.nccl_debug", "agent.config.nccl_debug", "value", c.NCCLDebug)
	}
	if len(c.Topology) > topologyMax {
		r.refuse("client.topology", "agent.config.topology", "max", topologyMax)
	}
	for _, level := range c.Topology {
		if level == "" || !structs.PlainText(level, deviceTextMax) {
			r.refuse("client.topology", "agent.config.text", "value", strconv.Quote(level), "max", deviceTextMax)
		}
	}
	c.Devices = r.devices(block.Devices)
	c.Storages = r.storages(block.Storages)
	c.Remotes = r.remotes
	c.Data = r.data(block.Data)
	c.Disk = r.disk(block.Disk)
	c.Room = r.room(block.Task)
}

func (r *resolver) limits() {
	block := blockOf(r.settings.Limits)
	r.config.Limits = Limits{
		ConnectionsPeer: r.positive("limits.connections_peer", get(block.ConnectionsPeer, connectionsPeerDefault)),
		Streams:         r.positive("limits.streams", get(block.Streams, streamsDefault)),
		TokenFailures:   r.positive("limits.token_failures", get(block.TokenFailures, tokenFailuresDefault)),
		RequestsPerSec:  r.rate("limits.requests_per_sec", get(block.RequestsPerSec, requestsDefault)),
		SubmitsPerSec:   r.rate("limits.submissions_per_s", get(block.JobsPerSecond, submissionsDefault)),
	}
}

func (r *resolver) positive(path string, n int) int {
	if n < 1 {
		r.refuse(path, "agent.config.positive", "value", n)
	}
	return n
}

func (r *resolver) rate(path string, n float64) float64 {
	if !(n > 0 && n <= 1e6) {
		r.refuse(path, "agent.config.positive", "value", n)
	}
	return n
}

// found refuses what cannot be meant.
func (r *resolver) found() {
	if r.config.Found && (!r.config.Server.Enabled || r.config.JoinToken.Secret != "") {
		r.refuse("", "agent.config.found")
	}
}

func (r *resolver) joinToken() {
	path, text := "join_token", get(r.settings.JoinToken, "")
	if r.settings.JoinFile != nil {
		if text != "" {
			r.refuse("join_token_file", "agent.config.two_tokens")
		}
		path = "join_token_file"
		r.config.Files = append(r.config.Files, *r.settings.JoinFile)
		data, err := r.env.readFile(*r.settings.JoinFile)
		if errors.Is(err, fs.ErrNotExist) && r.isSomebody() {
			return // it has joined, and whoever gave it the token took it back
		}
		if err != nil {
			r.refuse(path, "agent.config.token_file", "reason", err)
			return
		}
		text = strings.TrimSpace(string(data))
	}
	if text == "" {
		return
	}
	token, err := auth.ParseJoinToken(text)
	if err != nil {
		r.refuse(path, "agent.config.join_token")
		return
	}
	r.config.JoinToken = token
}

// Where the data directory holds the agent's certificate.
const (
	IdentityDir     = "identity"
	CertificateFile = "agent.pem" // in IdentityDir
)

// isSomebody reports whether the data directory holds an identity already.
func (r *resolver) isSomebody() bool {
	_, err := r.env.readFile(filepath.Join(r.config.DataDir, IdentityDir, CertificateFile))
	return r.config.DataDir != "" && err == nil
}

// machineAddress is the address under which other machines most likely reach
// this one: the first global unicast IPv4 address, then IPv6, then loopback.
func machineAddress(iface string) (string, error) {
	addresses, err := interfaceAddresses(iface)
	if err != nil {
		return "", err
	}
	var best net.IP
	for _, address := range addresses {
		network, ok := address.(*net.IPNet)
		if !ok || !network.IP.IsGlobalUnicast() {
			continue
		}
		if network.IP.To4() != nil {
			return network.IP.String(), nil
		}
		if best == nil {
			best = network.IP
		}
	}
	switch {
	case best != nil:
		return best.String(), nil
	case iface != "":
		return "", fmt.Errorf("interface %s has no address", iface)
	}
	return "127.0.0.1", nil
}

func interfaceAddresses(iface string) ([]net.Addr, error) {
	if iface == "" {
		addresses, err := net.InterfaceAddrs()
		if err != nil {
			return nil, fmt.Errorf("list addresses of this machine: %w", err)
		}
		return addresses, nil
	}
	found, err := net.InterfaceByName(iface)
	if err != nil {
		return nil, fmt.Errorf("find interface %s: %w", iface, errors.Unwrap(err))
	}
	addresses, err := found.Addrs()
	if err != nil {
		return nil, fmt.Errorf("list addresses of %s: %w", iface, err)
	}
	return addresses, nil
}

package config

import (
	"errors"
	"io/fs"
	"net"
	"path/filepath"
	"strconv"
	"strings"

	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/host"
)

// Defaults of the configuration that others rely on.
const (
	DefaultHTTPPort   = 4646
	DefaultGossipPort = 4648
	DefaultDataDir    = "/var/lib/nomadlike"

	portMax  = 65535
	scaleMax = 20
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

	JoinToken  auth.JoinToken // zero: found a cluster, or come back to one
	JoinFile   string         // where the token came from; "" for a flag or one of Files
	LogLevel   string
	LogFormat  string
	PluginDir  string
	Plugins    []host.PluginConfig // external drivers
	Devices    DevicePlugins
	Limits     Limits
	Hosts      []string // names under which browsers may reach the API
	TaskDomain string   // below which browsers see tasks' pages; "": they see none
	Scale      float64  // stretches the timings of failure detection; 1 on a quiet LAN
	Dev        bool
	Found      bool     // a cluster is founded although another one may know this server
	Files      []string // that this was read from; no task sees them

	said Settings // what it was made of
}

// secretText is a text that is meant as something else, and that nobody is shown.
func secretText[M any](said **string, meant *M) *value {
	return (&value{kind: kindText, said: said, meant: meant, settle: func(*resolver, string) {}}).hidden()
}

// ownName is by default the host name, made into a legal one.
func (r *resolver) ownName(s *Settings) {
	if s.Name != nil {
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

// TaskDomainDev is the task domain of development mode: browsers look for names below
// localhost on their own machine.
const TaskDomainDev = "tasks.localhost"

// taskDomain checks the domain of tasks' pages, below which no name of an agent may lie:
// its pages would be a task's.
func taskDomain(r *resolver) {
	c := &r.config
	if c.TaskDomain == "" && c.Dev {
		c.TaskDomain = TaskDomainDev
	}
	if c.TaskDomain == "" {
		return
	}
	c.TaskDomain = strings.ToLower(strings.TrimPrefix(c.TaskDomain, "*."))
	if !auth.ValidPageDomain(c.TaskDomain) {
		r.refuse("http.task_domain", "agent.config.task_domain", "value", c.TaskDomain)
	}
	for _, host := range append([]string{c.Name}, c.Hosts...) {
		if strings.HasSuffix("."+strings.ToLower(host), "."+c.TaskDomain) {
			r.refuse("http.task_domain", "agent.config.task_domain_host", "value", c.TaskDomain, "host", host)
		}
	}
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

func (r *resolver) addresses(s *Settings) {
	c := &r.config
	if c.HTTPPort == c.Gossip && c.HTTPPort != 0 {
		r.refuse("ports.gossip", "agent.config.same_port", "value", c.Gossip)
	}
	if s.Bind == nil && c.Dev {
		c.Bind = "127.0.0.1"
	}
	ip := net.ParseIP(c.Bind)
	switch {
	case ip == nil:
		r.refuse("bind", "agent.config.ip", "value", c.Bind)
		return
	case c.Dev && !ip.IsLoopback():
		r.refuse("bind", "agent.config.dev_bind", "value", c.Bind)
	}
	if s.Advertise != nil {
		if advertised := net.ParseIP(c.Advertise); advertised == nil || advertised.IsUnspecified() {
			r.refuse("advertise", "agent.config.ip", "value", c.Advertise)
		}
		return
	}
	if !ip.IsUnspecified() {
		c.Advertise = c.Bind
		return
	}
	iface := ""
	if s.Client != nil && s.Client.Interface != nil {
		iface = *s.Client.Interface
	}
	address, err := r.env.address(iface)
	if err != nil {
		r.refuse("advertise", "agent.config.no_address", "reason", err)
		return
	}
	c.Advertise = address
}

// dataDir makes the data directory an absolute one.
func (r *resolver) dataDir(s *Settings) {
	unsaid := s.DataDir == nil || *s.DataDir == ""
	if unsaid && r.config.Dev {
		r.config.DataDir = "" // Run makes a temporary one
		return
	}
	dir := r.config.DataDir
	if unsaid {
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

// found refuses what cannot be meant.
func (r *resolver) found() {
	if r.config.Found && (!r.config.Server.Enabled || r.config.JoinToken.Secret != "") {
		r.refuse("", "agent.config.found")
	}
}

func (r *resolver) joinToken(s *Settings) {
	path, text := "join_token", get(s.JoinToken, "")
	if s.JoinFile != nil {
		if text != "" {
			r.refuse("join_token_file", "agent.config.two_tokens")
		}
		path = "join_token_file"
		r.config.Files = append(r.config.Files, *s.JoinFile)
		data, err := r.env.readFile(*s.JoinFile)
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
	r.config.JoinFile = get(s.JoinFile, "")
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

// get is the value of a setting, or what it is by default.
func get[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

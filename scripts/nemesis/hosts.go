package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"nomadlike/nomadlike/api"
)

// dataSizeMax bounds the disk of a host in bytes: little enough to fill in a
// moment, more than a server's floor of free space and a few log segments.
const dataSizeMax = 448 << 20

// host is one machine: a network namespace with an address, a disk of its own
// in memory, and one agent.
type host struct {
	name   string
	server bool
	ns     string
	veth   string
	addr   string
	dir    string
	client *api.Client // speaks to this host's agent alone

	mu struct {
		sync.Mutex
		args    []string
		process *os.Process
		ended   chan struct{} // closed when the process was reaped
		wanted  bool          // nobody but the nemesis may end it
		code    int           // of the process that ended last
		exits   []exit        // that nobody wanted
	}
}

// exit is an agent that ended by itself.
type exit struct {
	at   time.Time
	code int
}

// cluster is every host of one run, on one bridge.
type cluster struct {
	cas     int // how often the CA was replaced
	binary  string
	dir     string
	bridge  string
	subnet  string
	hosts   []*host
	token   string
	ca      []byte
	all     *api.Client // asks any server
	cgroups bool        // agents see the machine's
}

// command runs a program of the system and keeps what it says in the error.
func command(name string, args ...string) error {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// newCluster makes the hosts, servers s1.. and clients c1.., and starts nothing.
func newCluster(binary, dir string, servers, clients int) (_ *cluster, err error) {
	c := &cluster{binary: binary, dir: dir, bridge: fmt.Sprintf("nn%d", os.Getpid()%100000), subnet: fmt.Sprintf("10.%d.%d", 190+os.Getpid()/250%50, os.Getpid()%250+1)}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	err = errors.Join(command("ip", "link", "add", c.bridge, "type", "bridge"),
		command("ip", "addr", "add", c.subnet+".254/24", "dev", c.bridge), command("ip", "link", "set", c.bridge, "up"))
	if err != nil {
		return c, err
	}
	// A Docker engine drops what is bridged, unless it is told.
	if command("iptables", "-S", "DOCKER-USER") == nil {
		if err := command("iptables", "-I", "DOCKER-USER", "-i", c.bridge, "-o", c.bridge, "-j", "ACCEPT"); err != nil {
			return c, err
		}
	}
	for i := range servers + clients {
		h := &host{name: fmt.Sprintf("s%d", i+1), server: i < servers, addr: fmt.Sprintf("%s.%d", c.subnet, i+1)}
		if !h.server {
			h.name = fmt.Sprintf("c%d", i-servers+1)
		}
		h.ns, h.veth, h.dir = c.bridge+"-"+h.name, c.bridge+h.name, filepath.Join(dir, h.name)
		c.hosts = append(c.hosts, h)
		if err := os.MkdirAll(h.data(), 0o755); err != nil {
			return c, fmt.Errorf("make the directory of %s: %w", h.name, err)
		}
		err := errors.Join(command("mount", "-t", "tmpfs", "-o", "mode=0755,size="+strconv.Itoa(dataSizeMax), c.bridge+h.name, h.data()),
			command("ip", "netns", "add", h.ns),
			command("ip", "link", "add", h.veth, "type", "veth", "peer", "name", "eth0", "netns", h.ns),
			command("ip", "link", "set", h.veth, "master", c.bridge, "up"),
			command("ip", "-n", h.ns, "addr", "add", h.addr+"/24", "dev", "eth0"),
			command("ip", "-n", h.ns, "link", "set", "eth0", "up"), command("ip", "-n", h.ns, "link", "set", "lo", "up"))
		if err != nil {
			return c, err
		}
	}
	return c, nil
}

func (h *host) data() string { return filepath.Join(h.dir, "data") }

// start starts the agent; nil args repeat those of the last start.
func (c *cluster) start(h *host, args ...string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if args != nil {
		h.mu.args = args
	}
	log, err := os.OpenFile(filepath.Join(h.dir, "agent.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the log of %s: %w", h.name, err)
	}
	defer log.Close()
	// `ip netns exec` mounts a /sys of its own, without the groups of the machine.
	enter := []string{"ip", "netns", "exec", h.ns}
	if c.cgroups {
		enter = []string{"nsenter", "--net=/run/netns/" + h.ns}
	}
	line := append(enter, c.binary, "agent", "-name", h.name, "-data-dir", h.data(), "-bind", h.addr, "-advertise", h.addr)
	line = append(line, h.mu.args...)
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, "/"
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + h.dir, "NOMADLIKE_CONFIG_DIR=" + filepath.Join(h.dir, "cli"), clockVariable + "=" + h.clockFile()}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is the nemesis' own
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", h.name, err)
	}
	ended := make(chan struct{})
	h.mu.process, h.mu.ended, h.mu.wanted = cmd.Process, ended, true
	go func() {
		err := cmd.Wait()
		h.mu.Lock()
		defer h.mu.Unlock()
		h.mu.code = cmd.ProcessState.ExitCode()
		if h.mu.process == cmd.Process {
			h.mu.process = nil
			if h.mu.wanted {
				h.mu.exits = append(h.mu.exits, exit{time.Now(), h.mu.code})
			}
		}
		_ = err // the exit code tells it
		close(ended)
	}()
	return nil
}

// pid is the agent's process, 0 when none runs.
func (h *host) pid() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mu.process == nil {
		return 0
	}
	return h.mu.process.Pid
}

func (h *host) running() bool { return h.pid() != 0 }

// end ends the agent with a signal and waits for it; after a minute it is killed.
func (h *host) end(signal syscall.Signal) error {
	h.mu.Lock()
	process, ended := h.mu.process, h.mu.ended
	h.mu.wanted = false
	h.mu.Unlock()
	if process == nil {
		return nil
	}
	if err := process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end %s: %w", h.name, err)
	}
	select {
	case <-ended:
		return nil
	case <-time.After(time.Minute):
		_ = process.Kill()
		<-ended
		return fmt.Errorf("end %s: it ignored signal %s for a minute", h.name, signal)
	}
}

// mayEnd lets the agent end by itself without that being a finding.
func (h *host) mayEnd() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.wanted = false
}

// unwanted returns and forgets the exits that nobody asked for.
func (h *host) unwanted() []exit {
	h.mu.Lock()
	defer h.mu.Unlock()
	exits := h.mu.exits
	h.mu.exits = nil
	return exits
}

// processes are the pids of everything on the host.
func (h *host) processes() []int {
	out, _ := exec.Command("ip", "netns", "pids", h.ns).Output()
	var pids []int
	for _, field := range strings.Fields(string(out)) {
		if pid, err := strconv.Atoi(field); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// die ends every process of the host at once, as a power cut does.
func (h *host) die() {
	h.mu.Lock()
	h.mu.wanted = false
	ended := h.mu.ended
	running := h.mu.process != nil
	h.mu.Unlock()
	for range 3 {
		for _, pid := range h.processes() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	if running {
		<-ended
	}
}

func (c *cluster) servers() []*host { return c.role(true) }
func (c *cluster) clients() []*host { return c.role(false) }

func (c *cluster) role(server bool) []*host {
	return slices.DeleteFunc(slices.Clone(c.hosts), func(h *host) bool { return h.server != server })
}

func (c *cluster) named(name string) *host {
	for _, h := range c.hosts {
		if h.name == name {
			return h
		}
	}
	return nil
}

// askEvery is how often wait asks; less often on a machine that has more to do than it
// can, where the questions would keep from happening what they ask for.
const askEvery = 50 * time.Millisecond

// wait asks condition again and again; it fails after limit.
func wait(ctx context.Context, limit time.Duration, what string, condition func(context.Context) bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(patient(askEvery))
	defer tick.Stop()
	for !condition(ctx) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited %s for %s", limit, what)
		case <-tick.C:
		}
	}
	return nil
}

// form starts every agent, makes the first token and waits until all is ready.
func (c *cluster) form(ctx context.Context, clientConfig string) error {
	servers, clients := c.servers(), c.clients()
	expect := strconv.Itoa(len(servers))
	first := servers[0]
	if err := c.start(first, "-server", "-bootstrap-expect", expect); err != nil {
		return err
	}
	joinClient, joinServer := filepath.Join(first.data(), "join-client"), filepath.Join(first.data(), "join-server")
	err := wait(ctx, patient(recoveryMax), "the join lines of the first server", func(context.Context) bool {
		for _, file := range []string{joinClient, joinServer} {
			if info, err := os.Stat(file); err != nil || info.Size() == 0 {
				return false
			}
		}
		return true
	})
	if err != nil {
		return err
	}
	// They have files of their own, as on machines of their own: the server that
	// made them removes them when they are spent.
	for _, file := range []*string{&joinClient, &joinServer} {
		copied := filepath.Join(c.dir, filepath.Base(*file))
		data, err := os.ReadFile(*file)
		if err == nil {
			err = os.WriteFile(copied, data, 0o600)
		}
		if err != nil {
			return fmt.Errorf("keep a join token: %w", err)
		}
		*file = copied
	}
	for _, h := range servers[1:] {
		if err := c.start(h, "-server", "-bootstrap-expect", expect, "-join-token-file", joinServer); err != nil {
			return err
		}
	}
	for _, h := range clients {
		if err := c.start(h, "-client", "-join-token-file", joinClient, "-config", clientConfig); err != nil {
			return err
		}
	}
	if err := c.signIn(ctx); err != nil {
		return err
	}
	return wait(ctx, patient(2*recoveryMax), "a cluster in which everybody is well", c.well)
}

// signIn makes the first token and a client for every host.
func (c *cluster) signIn(ctx context.Context) error {
	first := c.servers()[0]
	secret, err := os.ReadFile(filepath.Join(first.data(), "setup-secret"))
	if err != nil {
		return fmt.Errorf("read the setup secret: %w", err)
	}
	if c.ca, err = os.ReadFile(filepath.Join(first.data(), "identity", "ca.pem")); err != nil {
		return fmt.Errorf("read the CA: %w", err)
	}
	setup, err := api.New(api.Config{Address: first.url(), CAPEM: c.ca, RetryFor: time.Minute})
	if err != nil {
		return err
	}
	defer setup.Close()
	created, err := setup.BootstrapToken(ctx, strings.TrimSpace(string(secret)))
	if err != nil {
		return err
	}
	c.token = created.Secret
	var urls []string
	for _, h := range c.hosts {
		// Nothing is repeated behind the history's back.
		if h.client, err = api.New(api.Config{Address: h.url(), CAPEM: c.ca, Token: c.token, RetryFor: -1}); err != nil {
			return err
		}
		if h.server {
			urls = append(urls, h.url())
		}
	}
	c.all, err = api.New(api.Config{Address: strings.Join(urls, ","), CAPEM: c.ca, Token: c.token, RetryFor: 10 * time.Second})
	return err
}

func (h *host) url() string { return "https://" + net.JoinHostPort(h.addr, "4646") }

// well reports whether every server is a healthy voter and every node ready.
func (c *cluster) well(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	health, err := c.all.Autopilot(ctx)
	if err != nil || !health.Healthy || len(health.Servers) != len(c.servers()) || health.FailureTolerance != (len(c.servers())-1)/2 {
		return false
	}
	nodes, _, err := c.all.Nodes(ctx, nil)
	if err != nil {
		return false
	}
	ready := 0
	for i := range nodes.Nodes {
		if nodes.Nodes[i].Schedulable() {
			ready++
		}
	}
	return ready == len(c.clients())
}

// leader is the server that leads by the word of most, nil when nobody knows.
func (c *cluster) leader(ctx context.Context) *host {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	peers, err := c.all.RaftPeers(ctx)
	if err != nil {
		return nil
	}
	for _, peer := range peers.Peers {
		if peer.Leader {
			return c.named(peer.Name)
		}
	}
	return nil
}

// term is the newest term of the log that a server knows, 0 when none answers.
func (c *cluster) term(ctx context.Context) (newest uint64) {
	for _, h := range c.servers() {
		asking, cancel := context.WithTimeout(ctx, 5*time.Second)
		self, err := h.client.AgentSelf(asking)
		cancel()
		if err != nil {
			continue
		}
		if term, err := strconv.ParseUint(self.Stats["raft_term"], 10, 64); err == nil {
			newest = max(newest, term)
		}
	}
	return newest
}

// close ends everything that the cluster started and takes its hosts away. The
// logs stay.
func (c *cluster) close() {
	for _, h := range c.hosts {
		h.die()
	}
	for _, h := range c.hosts {
		_ = command("ip", "netns", "del", h.ns)
		_ = command("umount", "-l", h.data())
	}
	_ = command("iptables", "-D", "DOCKER-USER", "-i", c.bridge, "-o", c.bridge, "-j", "ACCEPT")
	_ = command("ip", "link", "del", c.bridge)
}

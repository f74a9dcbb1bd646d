package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"nomadlike/nomadlike/api"
)

const pollEvery = 2 * time.Millisecond

// until asks condition again and again; it fails after limit.
func until(ctx context.Context, limit time.Duration, what string, condition func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for !condition() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited %s for %s", limit, what)
		case <-tick.C:
		}
	}
	return nil
}

// world is a set of hosts with agents.
type world struct {
	b      *bench
	dir    string
	stage  string // what tasks may write, as on a disk that all hosts share
	netns  bool
	bridge string
	subnet string
	agents map[string]*agentHost
	order  []string
	client *api.Client
}

// agentHost is one machine with one agent.
type agentHost struct {
	name   string
	ns     string
	veth   string
	addr   string
	port   int
	gossip int
	dir    string
	args   []string
	cmd    *exec.Cmd
}

func (h *agentHost) config() string { return filepath.Join(h.dir, "agent.hcl") }

// stageDir makes a directory that every task may write to.
func (w *world) stageDir(name string) (string, error) {
	dir := filepath.Join(w.stage, name)
	return dir, errors.Join(os.Mkdir(dir, 0o755), os.Chmod(dir, 0o777))
}

func ip(args ...string) error {
	out, err := exec.Command("ip", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

func (b *bench) newWorld(names ...string) (*world, error) {
	b.hosts++
	w := &world{b: b, dir: filepath.Join(b.dir, "world"+strconv.Itoa(b.hosts)), agents: map[string]*agentHost{}, order: names}
	w.stage = filepath.Join(w.dir, "stage")
	if err := errors.Join(os.Mkdir(w.dir, 0o755), os.Mkdir(w.stage, 0o755), os.Chmod(w.stage, 0o777)); err != nil {
		return nil, err
	}
	w.netns = os.Geteuid() == 0 && ip("netns", "list") == nil
	w.bridge = fmt.Sprintf("nb%d-%d", os.Getpid()%100000, b.hosts)
	w.subnet = fmt.Sprintf("10.%d.%d", 90+os.Getpid()%100, b.hosts%250+1)
	if w.netns {
		if err := errors.Join(ip("link", "add", w.bridge, "type", "bridge"), ip("addr", "add", w.subnet+".254/24", "dev", w.bridge), ip("link", "set", w.bridge, "up")); err != nil {
			return nil, err
		}
	}
	for i, name := range names {
		host := &agentHost{name: name, dir: filepath.Join(w.dir, name), addr: "127.0.0.1", port: 24000 + b.hosts*100 + i*4, gossip: 24000 + b.hosts*100 + i*4 + 2}
		if w.netns {
			host.ns, host.veth = w.bridge+"-"+name, fmt.Sprintf("%s%s", w.bridge, name)
			host.addr, host.port, host.gossip = fmt.Sprintf("%s.%d", w.subnet, i+1), 4646, 4648
			err := errors.Join(ip("netns", "add", host.ns),
				ip("link", "add", host.veth, "type", "veth", "peer", "name", "eth0", "netns", host.ns),
				ip("link", "set", host.veth, "master", w.bridge, "up"),
				ip("-n", host.ns, "addr", "add", host.addr+"/24", "dev", "eth0"),
				ip("-n", host.ns, "link", "set", "eth0", "up"), ip("-n", host.ns, "link", "set", "lo", "up"))
			if err != nil {
				return nil, err
			}
		}
		if err := os.MkdirAll(host.dir, 0o711); err != nil {
			return nil, err
		}
		w.agents[name] = host
		if err := w.configure(name, ""); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// configure writes an agent's file, with these lines in its exec block.
func (w *world) configure(name, exec string) error {
	text := fmt.Sprintf("client {\n  exec {\n    writable = [%q]\n    %s\n  }\n}\n", w.stage, exec)
	return os.WriteFile(w.agents[name].config(), []byte(text), 0o600)
}

// start starts the agent of a host; nil args repeat those of the last start.
func (w *world) start(name string, args ...string) error {
	host := w.agents[name]
	if args != nil {
		host.args = args
	}
	full := append([]string{
		"agent", "-config", host.config(), "-name", name, "-data-dir", filepath.Join(host.dir, "data"), "-bind", host.addr, "-advertise", host.addr,
		"-port", strconv.Itoa(host.port), "-gossip-port", strconv.Itoa(host.gossip),
	}, host.args...)
	command := append([]string{w.b.binary}, full...)
	if w.netns {
		command = append([]string{"ip", "netns", "exec", host.ns}, command...)
	}
	log, err := os.OpenFile(filepath.Join(host.dir, "agent.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	host.cmd = exec.Command(command[0], command[1:]...)
	host.cmd.Stdout, host.cmd.Stderr = log, log
	host.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + host.dir, "NOMADLIKE_CONFIG_DIR=" + filepath.Join(host.dir, "cli")}
	host.cmd.Dir = "/"
	return host.cmd.Start() // "ip netns exec" becomes the agent: the pid is its own
}

// killAgent ends the agent only, as kill -9 does.
func (w *world) killAgent(name string) {
	host := w.agents[name]
	_ = host.cmd.Process.Kill()
	_, _ = host.cmd.Process.Wait()
}

// lose makes a machine vanish: off the network, every process dead.
func (w *world) lose(name string) {
	host := w.agents[name]
	if w.netns {
		_ = ip("link", "set", host.veth, "down")
	}
	for _, pid := range w.pids(host) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// pids are the processes of a host.
func (w *world) pids(host *agentHost) []int {
	var pids []int
	if w.netns {
		out, _ := exec.Command("ip", "netns", "pids", host.ns).Output()
		for _, field := range strings.Fields(string(out)) {
			if pid, err := strconv.Atoi(field); err == nil {
				pids = append(pids, pid)
			}
		}
		return pids
	}
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		environ, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ"))
		cmdline, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline"))
		if strings.Contains(string(environ)+string(cmdline), host.dir+"/data") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// logShown is how much of an agent's log is shown when a figure could not be
// measured, in bytes.
const logShown = 4 << 10

// showLog prints the end of an agent's log.
func (w *world) showLog(name string) {
	log, err := os.ReadFile(filepath.Join(w.agents[name].dir, "agent.log"))
	if err != nil {
		return
	}
	fmt.Fprintf(os.Stderr, "end of the log of %s:\n%s\n", name, log[max(0, len(log)-logShown):])
}

// stop ends everything that the world started.
func (w *world) stop() {
	if w.client != nil {
		w.client.Close()
	}
	for range 3 {
		for _, host := range w.agents {
			for _, pid := range w.pids(host) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
	for _, host := range w.agents {
		if host.cmd != nil {
			_, _ = host.cmd.Process.Wait()
		}
		if w.netns {
			_ = ip("netns", "del", host.ns)
		}
	}
	if w.netns {
		_ = ip("link", "del", w.bridge)
	}
	_ = os.RemoveAll(w.dir)
}

// dev starts a development agent, with these lines in its exec block, and signs in.
func (b *bench) dev(ctx context.Context, exec string) (*world, error) {
	w, err := b.newWorld("dev")
	if err != nil {
		return nil, err
	}
	if err := w.configure("dev", exec); err != nil {
		return w, err
	}
	if w.netns { // development mode listens on loopback only
		w.agents["dev"].addr = "127.0.0.1"
		w.unNamespace()
	}
	if err := w.start("dev", "-dev"); err != nil {
		return w, err
	}
	cli := filepath.Join(w.agents["dev"].dir, "cli")
	err = until(ctx, 20*time.Second, "the context file", func() bool {
		saved, err := api.LoadContext(cli)
		return err == nil && saved.Token != ""
	})
	if err != nil {
		return w, err
	}
	saved, err := api.LoadContext(cli)
	if err != nil {
		return w, err
	}
	w.client, err = api.New(api.Config{Address: saved.Address, Token: saved.Token, CAPEM: []byte(saved.CA)})
	if err != nil {
		return w, err
	}
	return w, w.ready(ctx, 1)
}

// unNamespace puts the only host onto this machine's own loopback.
func (w *world) unNamespace() {
	for _, host := range w.agents {
		_ = ip("netns", "del", host.ns)
		host.port, host.gossip = 24000+w.b.hosts*100, 24000+w.b.hosts*100+2
	}
	_ = ip("link", "del", w.bridge)
	w.netns = false
}

// ready waits until n nodes are ready.
func (w *world) ready(ctx context.Context, n int) error {
	return until(ctx, 60*time.Second, fmt.Sprintf("%d ready nodes", n), func() bool {
		list, _, err := w.client.Nodes(ctx, &api.Query{Stale: true})
		if err != nil {
			return false
		}
		count := 0
		for _, node := range list.Nodes {
			if node.Status == "ready" {
				count++
			}
		}
		return count >= n
	})
}

// cluster starts servers s1.. and clients c1.. and signs in.
func (b *bench) cluster(ctx context.Context, servers, clients int) (*world, error) {
	var names []string
	for i := range servers {
		names = append(names, fmt.Sprintf("s%d", i+1))
	}
	for i := range clients {
		names = append(names, fmt.Sprintf("c%d", i+1))
	}
	w, err := b.newWorld(names...)
	if err != nil {
		return nil, err
	}
	if err := w.form(ctx, servers, clients); err != nil {
		w.stop()
		return nil, err
	}
	return w, nil
}

func (w *world) form(ctx context.Context, servers, clients int) error {
	expect := strconv.Itoa(servers)
	if err := w.start("s1", "-server", "-bootstrap-expect", expect); err != nil {
		return err
	}
	data := filepath.Join(w.agents["s1"].dir, "data")
	err := until(ctx, 20*time.Second, "join lines", func() bool {
		info, err := os.Stat(filepath.Join(data, "join-client"))
		return err == nil && info.Size() > 0
	})
	if err != nil {
		return err
	}
	for _, name := range w.order[1:] {
		role, file := "-client", "join-client"
		if name[0] == 's' {
			role, file = "-server", "join-server"
		}
		args := []string{role, "-join-token-file", filepath.Join(data, file)}
		if name[0] == 's' {
			args = append(args, "-bootstrap-expect", expect)
		}
		if err := w.start(name, args...); err != nil {
			return err
		}
	}
	if err := w.signIn(ctx, servers, data); err != nil {
		return err
	}
	return w.ready(ctx, clients)
}

func (w *world) signIn(ctx context.Context, servers int, data string) error {
	ca, err := os.ReadFile(filepath.Join(data, "identity", "ca.pem"))
	if err != nil {
		return err
	}
	secret, err := os.ReadFile(filepath.Join(data, "setup-secret"))
	if err != nil {
		return err
	}
	var addresses []string
	for i := range servers {
		host := w.agents[fmt.Sprintf("s%d", i+1)]
		addresses = append(addresses, "https://"+net.JoinHostPort(host.addr, strconv.Itoa(host.port)))
	}
	// The others may not have joined yet: only the first one is asked.
	first, err := api.New(api.Config{Address: addresses[0], CAPEM: ca, RetryFor: 30 * time.Second})
	if err != nil {
		return err
	}
	defer first.Close()
	created, err := first.BootstrapToken(ctx, strings.TrimSpace(string(secret)))
	if err != nil {
		return err
	}
	w.client, err = api.New(api.Config{Address: strings.Join(addresses, ","), CAPEM: ca, Token: created.Secret, RetryFor: 30 * time.Second})
	return err
}

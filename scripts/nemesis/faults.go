package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"nomadlike/nomadlike/api"
)

// fault is one kind of trouble. strike begins it and returns who it hit and how
// it ends; what it did before an error is undone by then.
type fault struct {
	name        string
	least, most time.Duration // how long it lasts
	traits      trait
	strike      func(context.Context, *strike) error
}

// trait is what must hold, or may happen, while a fault is in force.
type trait int

const (
	exits  trait = 1 << iota // those hit may end by themselves: the disk cannot be trusted
	loses                    // a machine with running ranks is gone: their gangs must run elsewhere
	halts                    // no majority is left: nothing may be acknowledged
	writes                   // a majority is whole: when it lasts goesOnAfter, something must be acknowledged
)

func (f *fault) has(t trait) bool { return f.traits&t != 0 }

// goesOnAfter is how long a fault must last before no write at all in it is a
// finding, on a machine that has processors for it: many times what the others
// need to elect a leader, since what is judged is whether writes go on. Half of
// it may pass before the first: a disk that has just become full takes some more.
const goesOnAfter = 8 * time.Second

// strike is one fault that happens now.
type strike struct {
	cluster *cluster
	history *history
	chance  *rand.Rand
	lasts   time.Duration
	hit     []*host
	undo    []func(context.Context) error // last first
}

func (s *strike) undone(f func(context.Context) error) { s.undo = append(s.undo, f) }

// heal takes the fault back, all of it, whatever fails.
func (s *strike) heal(ctx context.Context) error {
	var failures []error
	for i := len(s.undo) - 1; i >= 0; i-- {
		failures = append(failures, s.undo[i](ctx))
	}
	s.undo = nil
	return errors.Join(failures...)
}

func faults() []fault {
	const second = time.Second
	return []fault{
		{"kill-leader", second / 5, 5 * second, writes, kill(leader)},
		{"kill-follower", second / 5, 8 * second, writes, kill(follower)},
		{"kill-client-agent", second / 5, 5 * second, 0, kill(client)},
		{"kill-two-servers", 2 * second, 6 * second, halts, kill(majority)},
		{"kill-every-agent", second / 5, 3 * second, halts, kill(everybody)},
		{"power-cut-of-a-client", 6 * second, 9 * second, loses, powerCut},
		{"pause-leader", second, 10 * second, writes, pause(leader)},
		{"pause-follower", second, 10 * second, writes, pause(follower)},
		{"pause-client-agent", second, 6 * second, 0, pause(client)},
		{"freeze-client-machine", 5 * second, 8 * second, loses, freeze},
		{"cut-leader", 2 * second, 8 * second, writes, cut(leader)},
		{"cut-follower", 2 * second, 20 * second, writes, cut(follower)},
		{"cut-client", 6 * second, 9 * second, loses, cut(client)},
		{"cut-client-past-lease", 20 * second, 23 * second, loses, cut(client)},
		{"cut-leaders-in-turn", 6 * second, 9 * second, 0, cutInTurn},
		{"one-way-to-leader", 2 * second, 8 * second, writes, filter(leader, "INPUT", "-s")},
		{"one-way-from-leader", 2 * second, 8 * second, writes, filter(leader, "OUTPUT", "-d")},
		{"one-way-to-client", 2 * second, 5 * second, 0, filter(client, "INPUT", "-s")},
		{"servers-not-transitive", 3 * second, 8 * second, 0, notTransitive},
		{"no-udp", 3 * second, 9 * second, writes, filter(everybody, "INPUT", "-s", "-p", "udp")},
		{"no-tcp-to-client", 3 * second, 6 * second, 0, filter(client, "INPUT", "-s", "-p", "tcp")},
		{"no-big-packets", 3 * second, 8 * second, 0, filter(leader, "OUTPUT", "-d", "-m", "length", "--length", "1200:65535")},
		{"loss", 4 * second, 10 * second, 0, filter(everybody, "INPUT", "-s", "-m", "statistic", "--mode", "random", "--probability", "0.1")},
		{"thin-line-of-leader", 4 * second, 8 * second, 0, thinLine(leader)},
		{"full-disk-of-leader", 8 * second, 10 * second, exits | writes, fullDisk(leader)},
		{"full-disk-of-follower", 3 * second, 8 * second, exits | writes, fullDisk(follower)},
		{"full-disk-of-client", 3 * second, 6 * second, 0, fullDisk(client)},
		{"fsync-error-of-leader", 2 * second, 4 * second, exits, disk(leader, "error=EIO")},
		{"fsync-error-of-client", 2 * second, 4 * second, exits, disk(client, "error=EIO")},
		{"hung-disk-of-leader", 6 * second, 8 * second, exits, disk(leader, "delay_enter=20s")},
		{"slow-disk-of-leader", 3 * second, 8 * second, 0, disk(leader, "delay_enter=30ms")},
		{"rolling-restart", 0, 0, 0, rollingRestart},
		{"follower-away", 15 * second, 40 * second, writes, kill(follower)},
		{"client-wiped", second, 3 * second, 0, wipeClient},
		{"client-past-certificate", certificateLife + 2*second, certificateLife + 4*second, 0, kill(client)},
		{"client-hears-followers-only", 4 * second, 9 * second, 0, clientNotTransitive},
		{"thin-line-of-client", 4 * second, 8 * second, 0, thinLine(client)},
		{"no-big-packets-of-client", 3 * second, 8 * second, 0, filter(client, "OUTPUT", "-d", "-m", "length", "--length", "1200:65535")},
		{"server-replaced", 5 * second, 7 * second, 0, replaceServer},
		{"rotate-keys-under-kill-leader", second / 5, 2 * second, 0, rotateKeys(leader)},
		{"rotate-keys-under-kill-client", second / 5, 2 * second, 0, rotateKeys(client)},
		{"restore", 3 * second, 6 * second, 0, restore},
		{"restore-after-loss", 7 * second, 10 * second, 0, restoreAfterLoss},
		{"clock-of-leader", 4 * second, 9 * second, 0, clock(leader)},
		{"clock-of-follower", 4 * second, 9 * second, 0, clock(follower)},
		{"clock-of-client", 4 * second, 9 * second, 0, clock(client)},
	}
}

// chooser names whom a fault hits.
type chooser func(context.Context, *strike) []*host

func one(s *strike, of []*host) []*host { return []*host{of[s.chance.IntN(len(of))]} }

func leader(ctx context.Context, s *strike) []*host {
	if h := s.cluster.leader(ctx); h != nil {
		return []*host{h}
	}
	return one(s, s.cluster.servers())
}

func follower(ctx context.Context, s *strike) []*host {
	servers, leads := s.cluster.servers(), s.cluster.leader(ctx)
	first := s.chance.IntN(len(servers))
	if servers[first] == leads {
		first = (first + 1) % len(servers)
	}
	return []*host{servers[first]}
}

func client(_ context.Context, s *strike) []*host    { return one(s, s.cluster.clients()) }
func everybody(_ context.Context, s *strike) []*host { return s.cluster.hosts }

// majority is the leader and, of three, one more.
func majority(ctx context.Context, s *strike) []*host {
	hit := leader(ctx, s)
	for _, h := range s.cluster.servers() {
		if h != hit[0] && len(hit) <= len(s.cluster.servers())/2 {
			hit = append(hit, h)
		}
	}
	return hit
}

func kill(who chooser) func(context.Context, *strike) error {
	return func(ctx context.Context, s *strike) error {
		s.hit = who(ctx, s)
		for _, h := range s.hit {
			if err := h.end(syscall.SIGKILL); err != nil {
				return err
			}
			s.undone(func(context.Context) error { return s.cluster.start(h) })
		}
		return nil
	}
}

// powerCut ends everything on a machine and takes it off the network.
func powerCut(ctx context.Context, s *strike) error {
	s.hit = client(ctx, s)
	h := s.hit[0]
	if err := command("ip", "link", "set", h.veth, "down"); err != nil {
		return err
	}
	h.die()
	s.undone(func(context.Context) error {
		return errors.Join(command("ip", "link", "set", h.veth, "up"), s.cluster.start(h))
	})
	return nil
}

func pause(who chooser) func(context.Context, *strike) error {
	return func(ctx context.Context, s *strike) error {
		s.hit = who(ctx, s)
		for _, h := range s.hit {
			if err := signalAll([]int{h.pid()}, syscall.SIGSTOP); err != nil {
				return err
			}
			s.undone(func(context.Context) error { return signalAll([]int{h.pid()}, syscall.SIGCONT) })
		}
		return nil
	}
}

// freeze stops every process of a machine, tasks included.
func freeze(ctx context.Context, s *strike) error {
	s.hit = client(ctx, s)
	pids := s.hit[0].processes()
	s.undone(func(context.Context) error { return signalAll(pids, syscall.SIGCONT) })
	return signalAll(pids, syscall.SIGSTOP)
}

// signalAll sends a signal; processes that have ended meanwhile are no error.
func signalAll(pids []int, signal syscall.Signal) error {
	for _, pid := range pids {
		if pid == 0 {
			continue
		}
		if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("send %s to %d: %w", signal, pid, err)
		}
	}
	return nil
}

// others are the addresses of all hosts but h, for a packet filter.
func (c *cluster) others(h *host) string {
	var addresses []string
	for _, other := range c.hosts {
		if other != h {
			addresses = append(addresses, other.addr)
		}
	}
	return strings.Join(addresses, ",")
}

// drop has a host drop packets: of chain, to or from peers, that match.
func (s *strike) drop(h *host, chain, direction, peers string, match ...string) error {
	line := append([]string{"netns", "exec", h.ns, "iptables", "-w", "-A", chain, direction, peers}, match...)
	s.undone(func(context.Context) error { return command("ip", "netns", "exec", h.ns, "iptables", "-w", "-F") })
	return command("ip", append(line, "-j", "DROP")...)
}

func filter(who chooser, chain, direction string, match ...string) func(context.Context, *strike) error {
	return func(ctx context.Context, s *strike) error {
		s.hit = who(ctx, s)
		for _, h := range s.hit {
			if err := s.drop(h, chain, direction, s.cluster.others(h), match...); err != nil {
				return err
			}
		}
		return nil
	}
}

func cut(who chooser) func(context.Context, *strike) error {
	return func(ctx context.Context, s *strike) error {
		s.hit = who(ctx, s)
		for _, h := range s.hit {
			peers := s.cluster.others(h)
			if err := errors.Join(s.drop(h, "INPUT", "-s", peers), s.drop(h, "OUTPUT", "-d", peers)); err != nil {
				return err
			}
		}
		return nil
	}
}

// cutInTurn cuts two leaders off one after the other under writes, each with
// entries that nobody else has, and then starts every server anew: a server that had to
// drop entries must be able to open its log.
func cutInTurn(ctx context.Context, s *strike) error {
	for range 2 {
		turn := &strike{cluster: s.cluster, history: s.history, chance: s.chance}
		s.undone(turn.heal)
		if err := cut(leader)(ctx, turn); err != nil {
			return err
		}
		s.hit = append(s.hit, turn.hit...)
		pass(ctx, s.lasts/2)
		if err := turn.heal(ctx); err != nil {
			return err
		}
		if err := wait(ctx, patient(recoveryMax), "a leader", func(ctx context.Context) bool { return s.cluster.leader(ctx) != nil }); err != nil {
			return err
		}
	}
	for _, h := range s.cluster.servers() {
		if err := h.end(syscall.SIGKILL); err != nil {
			return err
		}
		s.undone(func(context.Context) error { return s.cluster.start(h) })
	}
	return nil
}

// pass lets time pass: that is all a fault does while it lasts.
func pass(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// notTransitive cuts the leader and one follower from each other alone.
func notTransitive(ctx context.Context, s *strike) error {
	a := leader(ctx, s)[0]
	b := follower(ctx, s)[0]
	s.hit = []*host{a, b}
	return errors.Join(s.drop(a, "INPUT", "-s", b.addr), s.drop(b, "INPUT", "-s", a.addr))
}

// clientNotTransitive cuts a client and the leader from each other alone: both
// reach the other servers.
func clientNotTransitive(ctx context.Context, s *strike) error {
	a, b := leader(ctx, s)[0], client(ctx, s)[0]
	s.hit = []*host{a, b}
	return errors.Join(s.drop(a, "INPUT", "-s", b.addr), s.drop(b, "INPUT", "-s", a.addr))
}

func thinLine(who chooser) func(context.Context, *strike) error {
	return func(ctx context.Context, s *strike) error {
		s.hit = who(ctx, s)
		h := s.hit[0]
		s.undone(func(context.Context) error {
			return command("tc", "-n", h.ns, "qdisc", "del", "dev", "eth0", "root")
		})
		return command("tc", "-n", h.ns, "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "2mbit", "burst", "32k", "latency", "400ms")
	}
}

// fullDisk leaves no byte free where an agent keeps its data.
func fullDisk(who chooser) func(context.Context, *strike) error {
	return func(ctx context.Context, s *strike) error {
		s.hit = who(ctx, s)
		h := s.hit[0]
		ballast := filepath.Join(h.data(), "ballast")
		s.undone(func(context.Context) error {
			err := os.Remove(ballast)
			if !h.running() {
				err = errors.Join(err, s.cluster.start(h))
			}
			return err
		})
		file, err := os.Create(ballast)
		if err != nil {
			return fmt.Errorf("fill the disk of %s: %w", h.name, err)
		}
		defer file.Close()
		block := make([]byte, 1<<20)
		for range dataSizeMax/len(block) + 1 {
			if _, err := file.Write(block); err != nil {
				if errors.Is(err, syscall.ENOSPC) {
					return nil
				}
				return fmt.Errorf("fill the disk of %s: %w", h.name, err)
			}
		}
		return nil
	}
}

// disk has every flush of an agent's files fail, or last.
func disk(who chooser, how string) func(context.Context, *strike) error {
	return func(ctx context.Context, s *strike) error {
		s.hit = who(ctx, s)
		h := s.hit[0]
		trace := exec.Command("strace", "-f", "-q", "-o", "/dev/null", "-e", "trace=fsync,fdatasync", "-e", "inject=fsync,fdatasync:"+how, "-p", strconv.Itoa(h.pid()))
		if err := trace.Start(); err != nil {
			return fmt.Errorf("trace %s: %w", h.name, err)
		}
		s.undone(func(context.Context) error {
			_ = trace.Process.Signal(syscall.SIGINT) // detaches
			ended := make(chan struct{})
			go func() { _ = trace.Wait(); close(ended) }()
			select {
			case <-ended:
			case <-time.After(10 * time.Second):
				_ = trace.Process.Kill()
				<-ended
			}
			if !h.running() {
				return s.cluster.start(h)
			}
			return nil
		})
		return nil
	}
}

// rollingRestart ends and starts every server in order, as an upgrade does; the
// next one when the cluster is well again.
func rollingRestart(ctx context.Context, s *strike) error {
	for _, h := range s.cluster.servers() {
		s.hit = append(s.hit, h)
		if err := h.end(syscall.SIGTERM); err != nil {
			return err
		}
		if err := s.cluster.start(h); err != nil {
			return err
		}
		if err := wait(ctx, patient(recoveryMax), "a well cluster after the restart of "+h.name, s.cluster.well); err != nil {
			return err
		}
	}
	return nil
}

// wipeClient loses the disk of a client under running ranks; it joins again with
// its old command and a fresh token. What ran there must neither stay nor run
// twice.
func wipeClient(ctx context.Context, s *strike) error {
	s.hit = client(ctx, s)
	h := s.hit[0]
	if err := h.end(syscall.SIGKILL); err != nil {
		return err
	}
	s.undone(func(ctx context.Context) error { return s.cluster.rejoin(ctx, h, "client") })
	return h.wipe()
}

// wipe removes everything that an agent kept.
func (h *host) wipe() error {
	entries, err := os.ReadDir(h.data())
	if err != nil {
		return fmt.Errorf("wipe %s: %w", h.name, err)
	}
	for _, entry := range entries {
		if err := os.RemoveAll(filepath.Join(h.data(), entry.Name())); err != nil {
			return fmt.Errorf("wipe %s: %w", h.name, err)
		}
	}
	return nil
}

// rejoin starts an agent whose disk was lost, with a fresh token.
func (c *cluster) rejoin(ctx context.Context, h *host, role string) error {
	join, err := c.all.CreateJoinToken(ctx, api.JoinTokenRequest{Role: role, Uses: 1})
	if err != nil {
		return fmt.Errorf("make a join token: %w", err)
	}
	file := filepath.Join(h.dir, "join")
	if err := os.WriteFile(file, []byte(join.Join), 0o600); err != nil {
		return err
	}
	h.mu.Lock()
	args := slices.Clone(h.mu.args)
	h.mu.Unlock()
	if at := slices.Index(args, "-join-token-file"); at >= 0 {
		args[at+1] = file
	} else {
		args = append(args, "-join-token-file", file)
	}
	return c.start(h, args...)
}

// replaceServer removes a follower, which must stay removed, wipes it and has it
// join as a new server.
func replaceServer(ctx context.Context, s *strike) error {
	s.hit = follower(ctx, s)
	h, c := s.hit[0], s.cluster
	peers, err := c.all.RaftPeers(ctx)
	if err != nil {
		return err
	}
	h.mayEnd() // a server that was removed may stop
	for _, peer := range peers.Peers {
		if peer.Name == h.name {
			if err := c.removeServer(ctx, peer.ID); err != nil {
				return fmt.Errorf("remove %s: %w", h.name, err)
			}
			s.history.removed(peer.ID, h.name)
		}
	}
	s.undone(func(ctx context.Context) error {
		if err := h.end(syscall.SIGKILL); err != nil {
			return err
		}
		h.die()
		return errors.Join(h.wipe(), c.rejoin(ctx, h, "server"))
	})
	return nil
}

// removeServer removes a server. A request of which nobody knows whether it took
// effect, as on a machine that is short of processors, is made again unless it did.
func (c *cluster) removeServer(ctx context.Context, id string) error {
	var failure error
	err := wait(ctx, patient(recoveryMax), "the removal of a server", func(ctx context.Context) bool {
		if _, failure = c.all.RemoveRaftPeer(ctx, id); failure == nil {
			return true
		}
		peers, err := c.all.RaftPeers(ctx)
		return err == nil && !slices.ContainsFunc(peers.Peers, func(p api.RaftPeer) bool { return p.ID == id })
	})
	if err != nil {
		return errors.Join(err, failure)
	}
	return nil
}

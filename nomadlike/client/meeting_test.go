package client

import (
	"fmt"
	"net"
	"os"
	osexec "os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/structs"
)

// pair is two agents in two networks that see each other.
type pair struct {
	c     *control
	names []string // of the networks
	addrs []string
	dirs  []string
	kills []func()
	again []func() // start the agent anew
}

func newPair(t *testing.T) *pair {
	t.Helper()
	names, addrs := network(t)
	p := &pair{c: newControl(), names: names, addrs: addrs}
	server := p.c.listen(t)
	for i, name := range names {
		dir := tempDir(t)
		cleanUp(t, dir)
		start := func() func() {
			return startAgent(t, osexec.Command("ip", "netns", "exec", name, os.Args[0]),
				childEnv+"="+dir, childServerEnv+"="+server, fmt.Sprintf("%s=n%d", childNodeEnv, i+1))
		}
		p.dirs, p.kills = append(p.dirs, dir), append(p.kills, start())
		p.again = append(p.again, func() { p.kills[i] = start() })
	}
	return p
}

// gang makes a gang with prechecks, of a rank on either node.
func (p *pair) gang(name, command string, port int) []*structs.Assignment {
	ranks := gang(name, 1, command, "n1", "n2")
	ranks[0].Job.Distributed = structs.Distributed{Mode: structs.ModePyTorch, MasterPort: port, Rewrite: structs.RewriteNone}
	ranks[0].Job.Checkpoint = &structs.Checkpoint{Precheck: true}
	for i, addr := range p.addrs {
		ranks[0].Members[i].Addr, ranks[0].Members[i].RPCAddr = addr, addr+":4646"
	}
	return ranks
}

func (p *pair) prepare(t *testing.T, ranks []*structs.Assignment) {
	t.Helper()
	p.c.assign(ranks...)
	for _, a := range ranks {
		wantStatus(t, p.c, a.Alloc.ID, structs.AllocPrepared)
	}
}

func (p *pair) release(ranks []*structs.Assignment) {
	for _, a := range ranks {
		p.c.change(a.Alloc.ID, func(a *structs.Allocation) { a.Released = true })
	}
}

func (p *pair) end(t *testing.T, ranks []*structs.Assignment) {
	t.Helper()
	for _, a := range ranks {
		p.c.change(a.Alloc.ID, func(a *structs.Allocation) { a.Desired = structs.DesiredStop })
	}
	for _, a := range ranks {
		wantEnd(t, p.c, a.Alloc.ID)
	}
}

// finds waits until a rule was found for a rank, and returns its text.
func (p *pair) finds(t *testing.T, a *structs.Assignment, rule string) string {
	t.Helper()
	var text string
	eventually.Within(t, time.Minute, rule+" is found for rank "+a.Alloc.Name, func() bool {
		i := slices.Index(p.c.toldOf(a.Alloc.ID, structs.EventEnvironmentFound, "rule"), rule)
		if i >= 0 {
			text = p.c.toldOf(a.Alloc.ID, structs.EventEnvironmentFound, "text")[i]
		}
		return i >= 0
	})
	return text
}

// inNetwork runs f in a network.
func inNetwork(t *testing.T, name string, f func() error) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		fd, err := unix.Open("/var/run/netns/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			err = unix.Setns(fd, unix.CLONE_NEWNET)
			unix.Close(fd)
		}
		if err == nil {
			err = f()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// listenIn makes this test, a stranger to every task, listen in a network.
func listenIn(t *testing.T, name, address string) {
	t.Helper()
	var l net.Listener
	inNetwork(t, name, func() (err error) {
		l, err = net.Listen("tcp", address)
		return err
	})
	t.Cleanup(func() { l.Close() })
}

func tool(t *testing.T, name string, args ...string) {
	t.Helper()
	if text, err := osexec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, text)
	}
}

// processName is this program's name as the kernel keeps it.
func processName(t *testing.T) string {
	t.Helper()
	name, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(name))
}

// TestMeetingIsChecked: where the ranks of a gang meet is looked at before the
// start and while they run, and what is wrong with it is named.
func TestMeetingIsChecked(t *testing.T) {
	p := newPair(t)
	quiet := func(t *testing.T, ranks []*structs.Assignment) {
		t.Helper()
		for _, a := range ranks {
			for _, rule := range p.c.toldOf(a.Alloc.ID, structs.EventEnvironmentFound, "rule") {
				if strings.HasPrefix(rule, "master-") || strings.HasPrefix(rule, "env-") {
					t.Errorf("%s: found %s", a.Alloc.Name, rule)
				}
			}
		}
	}
	t.Run("a good one is quiet", func(t *testing.T) {
		ranks := p.gang("good", `sh -c 'export NCCL_DEBUG=INFO; test $RANK = 0 && exec python3 -m http.server -b $MASTER_ADDR $MASTER_PORT; exec sleep 60'`, 29501)
		p.prepare(t, ranks)
		quiet(t, ranks)
		for _, a := range ranks {
			if seen := p.c.toldOf(a.Alloc.ID, structs.EventEnvironment, "seen"); len(seen) != 1 || !strings.Contains(seen[0], "env.MASTER_PORT=29501") {
				t.Errorf("told before the start: %q", seen)
			}
		}
		p.release(ranks)
		for _, a := range ranks {
			wantStatus(t, p.c, a.Alloc.ID, structs.AllocRunning)
		}
		for _, a := range ranks {
			p.finds(t, a, "nccl-debug") // of the running command: it was looked at
		}
		quiet(t, ranks)
		p.end(t, ranks)
	})
	t.Run("a stranger is there before", func(t *testing.T) {
		listenIn(t, p.names[0], p.addrs[0]+":29502")
		ranks := p.gang("before", "sleep 60", 29502)
		p.prepare(t, ranks)
		if text := p.finds(t, ranks[1], "master-foreign"); !strings.Contains(text, "before-1-0:29502 answers before") {
			t.Errorf("told %q", text)
		}
		p.end(t, ranks)
	})
	t.Run("a stranger comes", func(t *testing.T) {
		ranks := p.gang("comes", "sleep 60", 29503)
		p.prepare(t, ranks)
		quiet(t, ranks)
		listenIn(t, p.names[0], p.addrs[0]+":29503")
		p.release(ranks)
		if text := p.finds(t, ranks[0], "master-foreign"); !strings.Contains(text, fmt.Sprintf("port 29503, %s (%d)", processName(t), os.Getpid())) {
			t.Errorf("told %q", text)
		}
		p.end(t, ranks)
	})
	t.Run("the environment is changed by the command", func(t *testing.T) {
		ranks := p.gang("changed", `sh -c 'export MASTER_PORT=1 NCCL_DEBUG=INFO; unset WORLD_SIZE; exec sleep 60'`, 29504)
		p.prepare(t, ranks)
		quiet(t, ranks)
		p.release(ranks)
		if text := p.finds(t, ranks[1], "env-changed"); !strings.Contains(text, "MASTER_PORT=1 (29504)") {
			t.Errorf("told %q", text)
		}
		if text := p.finds(t, ranks[1], "env-unset"); !strings.Contains(text, "WORLD_SIZE") {
			t.Errorf("told %q", text)
		}
		p.end(t, ranks)
	})
	t.Run("the environment is dropped", func(t *testing.T) {
		ranks := p.gang("dropped", `sh -c 'env -i sleep 61; true'`, 29505)
		p.prepare(t, ranks)
		p.release(ranks)
		if text := p.finds(t, ranks[0], "env-dropped"); !strings.Contains(text, "sleep") {
			t.Errorf("told %q", text)
		}
		p.end(t, ranks)
	})
	t.Run("the command names what nobody sets", func(t *testing.T) {
		ranks := p.gang("unset", "sleep ${NO_SUCH_TIME}", 29506)
		p.prepare(t, ranks)
		if text := p.finds(t, ranks[0], "command-unset"); !strings.Contains(text, "NO_SUCH_TIME") {
			t.Errorf("told %q", text)
		}
		p.end(t, ranks)
	})
	t.Run("a script of the command does", func(t *testing.T) {
		ranks := p.gang("unset-in-script", "sh -c 'X=6; sleep ${NO_SUCH_TIME}$X${NO_SUCH_END:-1}'", 29508)
		p.prepare(t, ranks)
		if text := p.finds(t, ranks[0], "command-unset"); !strings.Contains(text, "NO_SUCH_TIME") || strings.Contains(text, "NO_SUCH_END") {
			t.Errorf("told %q", text)
		}
		p.end(t, ranks)
	})
	t.Run("a firewall stands between", func(t *testing.T) {
		tool(t, "ip", "netns", "exec", p.names[0], "iptables", "-A", "INPUT", "-p", "tcp", "--dport", "29507", "-j", "DROP")
		ranks := p.gang("wall", "sleep 60", 29507)
		p.prepare(t, ranks)
		if text := p.finds(t, ranks[1], "master-unreachable"); !strings.Contains(text, "wall-1-0:29507 (") {
			t.Errorf("told %q", text)
		}
		p.end(t, ranks)
	})
}

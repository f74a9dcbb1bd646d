package client

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/client/firewall"
	"nomadlike/nomadlike/client/machine"
	"nomadlike/nomadlike/structs"
)

// A node says whether it keeps ports, also when it turns out later that it cannot.
func TestNodeSaysWhetherItGuards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		filter := &firewall.Fake{}
		c, w := newControl(), newFakeRuntime()
		n, stop := c.node(t, tempDir(t), "n1", w.driver(), func(config *Config) {
			config.Filter = func(string) firewall.Filter { return filter }
		})
		settle()
		start := func(name, says, rules string) {
			t.Helper()
			a := gang(name, 1, "true", "n1")[0]
			a.Job.Distributed.Mode = structs.ModePyTorch
			a.RunAs = nil
			a.Members[0].Ports = map[string]int{structs.MasterPortName: 29500}
			a.Alloc.Ports = a.Members[0].Ports
			c.assign(a)
			settle()
			if got := c.last(a.Alloc.ID).Status; got != structs.AllocRunning {
				t.Errorf("%s is %s", name, got)
			}
			if got := n.Node().Attributes["net.rendezvous"]; got != says {
				t.Errorf("with %s the node says %q, want %q", name, got, says)
			}
			if got, _ := filter.Rules(); !strings.HasPrefix(got, rules) || (got == "") != (rules == "") {
				t.Errorf("with %s the rules are %q", name, got)
			}
			w.exit(a.Alloc.ID, 0)
			settle()
		}
		start("one", machine.RendezvousGuarded, "port 29500 here:")
		filter.Fail(errors.New("no such part"))
		start("two", machine.RendezvousOpen, "")
		filter.Fail(nil)
		start("three", machine.RendezvousGuarded, "port 29500 here:")
		stop()
		if there, _ := filter.There(); there {
			t.Error("the agent has left rules behind")
		}
		none, stop := c.node(t, tempDir(t), "n2", newFakeRuntime().driver())
		settle()
		if got := none.Node().Attributes["net.rendezvous"]; got != machine.RendezvousOpen {
			t.Errorf("without a filter the node says %q", got)
		}
		stop()
	})
}

// TestRendezvousIsTheGangsOwn: from when a gang of two nodes is prepared until it
// has ended, only its ranks reach the port at which they meet; also while an agent
// is away, and when somebody has emptied the packet filter.
func TestRendezvousIsTheGangsOwn(t *testing.T) {
	p := newPair(t)
	const port, stranger = 29700, "10.213.77.9"
	tool(t, "ip", "-n", p.names[1], "addr", "add", stranger+"/24", "dev", "eth0") // as if of a third node
	serve := fmt.Sprintf(`\$s = IO::Socket::INET->new(Listen => 9, LocalPort => %d, ReuseAddr => 1); while (\$c = \$s->accept) { print \$c qq(hello\n); close \$c }`, port)
	ask := fmt.Sprintf(`until (\$c = IO::Socket::INET->new(qq(%s:%d))) { sleep 1 } \$| = 1; print <\$c>; sleep 300`, p.addrs[0], port)
	ranks := p.gang("g", fmt.Sprintf(`bash -c 'if [[ $RANK == 0 ]]; then exec perl -MIO::Socket -e "%s"; else exec perl -MIO::Socket -e "%s"; fi'`, serve, ask), port)
	for i := range ranks {
		ranks[i].RunAs = nil // its project's id
		ranks[0].Members[i].Addrs = []string{p.addrs[i]}
	}
	ranks[0].Members[0].Ports = map[string]int{structs.MasterPortName: port}
	ranks[0].Alloc.Ports = ranks[0].Members[0].Ports
	p.prepare(t, ranks)
	connect := func(network int, from string, marked bool) error {
		t.Helper()
		var result error
		inNetwork(t, p.names[network], func() error {
			dialer := net.Dialer{Timeout: 5 * time.Second}
			if from != "" {
				dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
			}
			if marked {
				dialer.Control = firewall.Pass
			}
			conn, err := dialer.Dial("tcp", net.JoinHostPort(p.addrs[0], strconv.Itoa(port)))
			if result = err; err == nil {
				conn.Close()
			}
			return nil
		})
		return result
	}
	wantProtected := func(when string) {
		t.Helper()
		for _, one := range []struct {
			who     string
			network int
			from    string
			marked  bool
		}{{"another user of its node", 0, "", false}, {"another user of its other node", 1, "", false}, {"a third node", 1, stranger, true}} {
			if err := connect(one.network, one.from, one.marked); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("%s, %s: %v", when, one.who, err)
			}
		}
		if err := connect(1, p.addrs[1], true); err != nil {
			t.Errorf("%s, the agent of its other node: %v", when, err)
		}
	}
	p.release(ranks)
	for _, a := range ranks {
		wantStatus(t, p.c, a.Alloc.ID, structs.AllocRunning)
	}
	eventually.Within(t, time.Minute, "its ranks meet", func() bool { return strings.Contains(logText(t, p.dirs[1], ranks[1].Alloc.ID, "stdout"), "hello") })
	wantProtected("while it runs")

	filters := []*firewall.NFTables{}
	for i := range p.names {
		f := firewall.NewNFTables(fmt.Sprintf("n%d", i+1))
		filters = append(filters, f)
		inNetwork(t, p.names[i], func() error { return f.Replace(nil) }) // as somebody else's program does
		inNetwork(t, p.names[i], f.Remove)
	}
	eventually.Within(t, time.Minute, "the rules are set again", func() bool {
		return !slices.ContainsFunc([]int{0, 1}, func(i int) bool {
			there := false
			inNetwork(t, p.names[i], func() (err error) {
				there, err = filters[i].There()
				return err
			})
			return !there
		})
	})
	wantProtected("when the packet filter was emptied")

	streams := func() int {
		p.c.mu.Lock()
		defer p.c.mu.Unlock()
		return len(p.c.mu.streams)
	}
	p.kills[0]()
	eventually.Within(t, time.Minute, "the agent is away", func() bool { return streams() == 1 })
	wantProtected("while an agent is away")
	p.again[0]()
	eventually.Within(t, time.Minute, "the agent is back", func() bool { return streams() == 2 })
	wantProtected("when it is back")

	p.end(t, ranks)
	listenIn(t, p.names[0], fmt.Sprintf(":%d", port)) // somebody else has the port now
	for _, from := range []string{"", stranger} {
		eventually.Within(t, time.Minute, "the port is free again", func() bool { return connect(1, from, false) == nil })
	}
}

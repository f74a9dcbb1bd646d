package firewall

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"
)

// Words of a child that connects: its program, "connect", address, source, mark.
const childWord = "firewall-connects"

func TestMain(m *testing.M) {
	if len(os.Args) == 5 && os.Args[1] == childWord {
		os.Exit(connect(os.Args[2], os.Args[3], os.Args[4] == "marked"))
	}
	os.Exit(m.Run())
}

// Exit codes of the child.
const (
	exitConnected = 10
	exitRefused   = 11
	exitOther     = 12
)

func connect(to, from string, marked bool) int {
	dialer := net.Dialer{Timeout: 5 * time.Second}
	if from != "" {
		dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
	}
	if marked {
		dialer.Control = Pass
	}
	conn, err := dialer.Dial("tcp", to)
	switch {
	case err == nil:
		conn.Close()
		return exitConnected
	case errors.Is(err, syscall.ECONNREFUSED):
		return exitRefused
	}
	fmt.Fprintln(os.Stderr, err)
	return exitOther
}

func containsLine(text, line string) bool {
	for one := range strings.Lines(text) {
		if strings.TrimSuffix(one, "\n") == line {
			return true
		}
	}
	return false
}

// inNetwork runs f on a thread in a network namespace.
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

func tool(t *testing.T, line string) {
	t.Helper()
	words := strings.Fields(line)
	if text, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", line, err, text)
	}
}

// TestNFTables joins two machines and connects as several users, from several
// addresses, with the kernel's own nftables.
func TestNFTables(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to make network namespaces")
	}
	own, other := fmt.Sprintf("nlfw%da", os.Getpid()), fmt.Sprintf("nlfw%db", os.Getpid())
	for _, name := range []string{own, other} {
		tool(t, "ip netns add "+name)
		t.Cleanup(func() { tool(t, "ip netns del "+name) })
		tool(t, "ip -n "+name+" link set lo up")
	}
	tool(t, "ip link add nlfw0 netns "+own+" type veth peer name nlfw0 netns "+other)
	for name, addresses := range map[string][]string{own: {"10.77.0.1/24", "fd77::1/64"}, other: {"10.77.0.2/24", "10.77.0.3/24", "fd77::2/64", "fd77::3/64"}} {
		for _, address := range addresses {
			nodad := ""
			if strings.Contains(address, ":") {
				nodad = " nodad"
			}
			tool(t, "ip -n "+name+" addr add "+address+" dev nlfw0"+nodad)
		}
		tool(t, "ip -n "+name+" link set nlfw0 up")
	}
	const door, service = 29500, 8080
	for _, name := range []string{own, other} {
		for _, port := range []int{door, service} {
			inNetwork(t, name, func() error {
				l, err := net.Listen("tcp", fmt.Sprintf("[::]:%d", port))
				if err == nil {
					t.Cleanup(func() { l.Close() })
				}
				return err
			})
		}
	}
	attempt := func(network string, uid uint32, from, to string, marked bool) string {
		t.Helper()
		mark := ""
		if marked {
			mark = "marked"
		}
		var code int
		inNetwork(t, network, func() error {
			child := exec.Command("/proc/self/exe", childWord, to, from, mark)
			child.Stderr = os.Stderr
			child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
			err := child.Run()
			code = child.ProcessState.ExitCode()
			if code >= exitConnected {
				return nil
			}
			return err
		})
		return map[int]string{exitConnected: "connected", exitRefused: "refused"}[code]
	}
	const alice, bob = 30001, 30002
	type try struct {
		what, network string
		uid           uint32
		from, to      string
		marked        bool
		want          string
	}
	tries := []try{
		{"its own rank", own, alice, "", "10.77.0.1:29500", false, "connected"},
		{"by the loopback address", own, alice, "", "127.0.0.1:29500", false, "connected"},
		{"another user here", own, bob, "", "10.77.0.1:29500", false, "refused"},
		{"another user here, by the loopback address", own, bob, "", "127.0.0.1:29500", false, "refused"},
		{"another user here, by IPv6", own, bob, "", "[::1]:29500", false, "refused"},
		{"another user here, by the other IPv6", own, bob, "", "[fd77::1]:29500", false, "refused"},
		{"root here", own, 0, "", "10.77.0.1:29500", false, "refused"},
		{"the agent", own, 0, "", "10.77.0.1:29500", true, "connected"},
		{"its rank to the door elsewhere", own, alice, "", "10.77.0.2:29500", false, "connected"},
		{"another user to the door elsewhere", own, bob, "", "10.77.0.2:29500", false, "refused"},
		{"another user to the same port of another address", own, bob, "", "10.77.0.3:29500", false, "connected"},
		{"another port here", own, bob, "", "10.77.0.1:8080", false, "connected"},
		{"another port elsewhere", own, bob, "", "10.77.0.2:8080", false, "connected"},
		{"from a node of the gang", other, bob, "10.77.0.2", "10.77.0.1:29500", false, "connected"},
		{"from another node", other, bob, "10.77.0.3", "10.77.0.1:29500", false, "refused"},
		{"from another node's agent", other, 0, "10.77.0.3", "10.77.0.1:29500", true, "refused"},
		{"from another node, another port", other, bob, "10.77.0.3", "10.77.0.1:8080", false, "connected"},
		{"from another node by IPv6", other, bob, "fd77::2", "[fd77::1]:29500", false, "refused"}, // the gang has IPv4
	}
	check := func(tries []try) {
		t.Helper()
		for _, c := range tries {
			if got := attempt(c.network, c.uid, c.from, c.to, c.marked); got != c.want {
				t.Errorf("%s: %s, want %s", c.what, got, c.want)
			}
		}
	}
	filter := NewNFTables("0123456789abcdef")
	replace := func(rules []Rule) {
		t.Helper()
		inNetwork(t, own, func() error { return filter.Replace(rules) })
	}
	there := func() (is bool) {
		t.Helper()
		inNetwork(t, own, func() (err error) {
			is, err = filter.There()
			return err
		})
		return is
	}
	if there() {
		t.Error("something is there before the first rule")
	}
	replace(Rules(map[string]Gang{"a": {
		User: alice, Doors: []Door{{Addr: addr("10.77.0.1"), Port: door, Here: true}, {Addr: addr("10.77.0.2"), Port: door}},
		From: addrs("10.77.0.1", "10.77.0.2"),
	}}))
	check(tries)
	if !there() {
		t.Error("the rules are gone")
	}

	// Several users, IPv6, and a gang of more nodes than one message of the kernel holds.
	from := addrs("fd77::2")
	for i := range 3000 {
		from = append(from, netip.AddrFrom4([4]byte{10, 78, byte(i >> 8), byte(i)}))
	}
	replace(Rules(map[string]Gang{
		"a": {User: alice, Doors: []Door{{Port: door, Here: true}, {Addr: addr("fd77::2"), Port: door}}, From: from},
		"b": {User: bob, Doors: []Door{{Port: door, Here: true}}, From: from},
	}))
	check([]try{
		{"the other user", own, bob, "", "10.77.0.1:29500", false, "connected"},
		{"a third user", own, 30003, "", "10.77.0.1:29500", false, "refused"},
		{"the other user to the door elsewhere", own, bob, "", "[fd77::2]:29500", false, "refused"},
		{"from a node of the gang by IPv6", other, bob, "fd77::2", "[fd77::1]:29500", false, "connected"},
		{"from another node by IPv6", other, bob, "fd77::3", "[fd77::1]:29500", false, "refused"},
		{"from another node", other, bob, "10.77.0.2", "10.77.0.1:29500", false, "refused"},
	})

	replace(Rules(map[string]Gang{"b": {User: bob, Doors: []Door{{Port: door, Here: true}}, From: addrs("10.77.0.3")}}))
	check([]try{
		{"the user who is left", own, bob, "", "10.77.0.1:29500", false, "connected"},
		{"the user who has gone", own, alice, "", "10.77.0.1:29500", false, "refused"},
		{"from the node that has come", other, bob, "10.77.0.3", "10.77.0.1:29500", false, "connected"},
		{"from a node that has gone", other, bob, "fd77::2", "[fd77::1]:29500", false, "refused"},
	})

	replace(Rules(map[string]Gang{"c": {AnyUser: true, Doors: []Door{{Port: door, Here: true}}, From: addrs("10.77.0.2")}}))
	check([]try{
		{"any user of a gang of containers", own, bob, "", "10.77.0.1:29500", false, "connected"},
		{"from another node to a gang of containers", other, bob, "10.77.0.3", "10.77.0.1:29500", false, "refused"},
	})

	filter = NewNFTables("0123456789abcdef") // of the next process
	if !there() {
		t.Error("the next process does not find what is left")
	}
	replace(nil)
	check([]try{
		{"without rules", own, bob, "", "10.77.0.1:29500", false, "connected"},
		{"without rules, from elsewhere", other, bob, "10.77.0.3", "10.77.0.1:29500", false, "connected"},
	})
	inNetwork(t, own, func() error { // as somebody does who loads a firewall of his own
		conn, err := nftables.New()
		if err == nil {
			conn.FlushRuleset()
			err = conn.Flush()
		}
		return err
	})
	if there() {
		t.Error("nobody saw that the table is gone")
	}
	replace(Rules(map[string]Gang{"a": {User: alice, Doors: []Door{{Port: door, Here: true}}}}))
	check([]try{
		{"another user, with the table made anew", own, bob, "", "10.77.0.1:29500", false, "refused"},
		{"its own rank, with the table made anew", own, alice, "", "10.77.0.1:29500", false, "connected"},
		{"from elsewhere, when nothing is known of addresses", other, bob, "10.77.0.3", "10.77.0.1:29500", false, "connected"},
	})
	inNetwork(t, own, filter.Remove)
	if there() {
		t.Error("the table is still there")
	}
}

// BenchmarkReplace has one of 32 gangs of 16 nodes each come and go.
func BenchmarkReplace(b *testing.B) {
	runtime.LockOSThread() // and never unlocked: it is in a network of its own
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		b.Fatal(err)
	}
	filter := NewNFTables("bench")
	gangs := make(map[string]Gang)
	for i := range 32 {
		gang := Gang{User: uint32(20000 + i), Doors: []Door{{Port: uint16(20000 + i), Here: true}}}
		for k := range 16 {
			gang.From = append(gang.From, netip.AddrFrom4([4]byte{10, 0, byte(i), byte(k)}))
		}
		gangs[fmt.Sprint(i)] = gang
	}
	all := Rules(gangs)
	delete(gangs, "7")
	without := Rules(gangs)
	for i := 0; b.Loop(); i++ {
		rules := all
		if i%2 == 1 {
			rules = without
		}
		if err := filter.Replace(rules); err != nil {
			b.Fatal(err)
		}
	}
}

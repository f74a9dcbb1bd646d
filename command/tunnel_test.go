package command

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/client/taskssh"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/taskside"
)

// fakeSide is a task in which one program listens on ::1 alone, and returns what it
// is sent.
func fakeSide(_ context.Context, spec driver.ExecSpec, streams driver.Streams) (driver.ExitResult, error) {
	switch address := spec.Command[2]; address {
	case "[::1]:8080":
		_, _ = streams.Stdout.Write([]byte{taskside.Connected})
		_, err := io.Copy(streams.Stdout, streams.Stdin)
		return driver.ExitResult{}, err
	case "127.0.0.1:13":
		return driver.ExitResult{}, driver.ErrNoSide
	default:
		fmt.Fprintf(streams.Stderr, "dial tcp %s: connect: connection refused", address)
		return driver.ExitResult{Code: 1}, nil
	}
}

// pipedTask is a stream to a task of this process, and who ends it.
type pipedTask struct {
	net.Conn
	said error
}

func (p *pipedTask) Ending() error { return p.said }

// tunnelled is a tunnel to fakeSide, and what it leads through.
type tunnelled struct {
	*tunnel
	authority *auth.CA // that clients trust

	mu    sync.Mutex
	notes []string
	task  *pipedTask // the last stream
	runs  error
	opens int
}

func newTunnelled(t *testing.T, names ...string) *tunnelled {
	t.Helper()
	ca, err := auth.NewCA("test", rand.Reader, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	u := &tunnelled{authority: ca}
	target := &structs.Allocation{ID: "a1", JobID: "j1", JobName: "serve", Rank: 2, Attempt: 3, Ports: map[string]int{"ui": 8080}}
	if names == nil {
		names = target.SSHHosts()
	}
	u.tunnel = newTunnel(nil, target, func(id string, _ ...any) { u.notes = append(u.notes, id) })
	u.tunnel.runs = func(context.Context) error {
		u.mu.Lock()
		defer u.mu.Unlock()
		return u.runs
	}
	serving, stop := context.WithCancel(t.Context())
	var servers sync.WaitGroup
	t.Cleanup(servers.Wait)
	t.Cleanup(stop)
	u.open = func(context.Context) (taskStream, ssh.PublicKey, error) {
		host, err := ca.SSHHost(names, rand.Reader, time.Now())
		if err != nil {
			return nil, nil, err
		}
		signer, err := auth.SSHHostSigner(host)
		if err != nil {
			return nil, nil, err
		}
		line, err := u.authority.SSHAuthority()
		if err != nil {
			return nil, nil, err
		}
		key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
		if err != nil {
			return nil, nil, err
		}
		ours, theirs := socketPair(t)
		servers.Go(func() {
			_ = taskssh.Serve(serving, taskssh.Config{HostKey: signer, Run: fakeSide}, theirs) // it ends when the client does
		})
		u.mu.Lock()
		defer u.mu.Unlock()
		u.opens++
		u.task = &pipedTask{Conn: ours}
		return u.task, key, nil
	}
	return u
}

func socketPair(t *testing.T) (ours, theirs net.Conn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if ours, err = net.Dial("tcp", listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if theirs, err = listener.Accept(); err != nil {
		t.Fatal(err)
	}
	return ours, theirs
}

// started serves ports of the task until the test ends.
func (u *tunnelled) started(t *testing.T, words ...string) (addresses []string, ended chan error, stop func()) {
	t.Helper()
	var pairs []portPair
	for _, word := range words {
		pair, err := parsePortPair(word)
		if err != nil {
			t.Fatal(err)
		}
		pairs = append(pairs, pair)
	}
	told, err := u.listen(&structs.Allocation{Ports: map[string]int{"ui": 8080}}, netip.MustParseAddr("127.0.0.1"), pairs)
	if err != nil {
		t.Fatal(err)
	}
	for _, port := range told.Ports {
		addresses = append(addresses, port.Local)
	}
	if err := u.connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended = make(chan error, 1)
	go func() { ended <- u.serve(ctx) }()
	t.Cleanup(stop)
	return addresses, ended, stop
}

// echoed sends a text, ends its half of the connection, and reads the other to its end.
func echoed(address, text string) (string, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, text); err != nil {
		return "", err
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		return "", err
	}
	back, err := io.ReadAll(conn)
	return string(back), err
}

func TestTunnelCarries(t *testing.T) {
	u := newTunnelled(t)
	at, ended, stop := u.started(t, "0:ui", "0:9", "0:13")
	for range 2 {
		if back, err := echoed(at[0], "ping"); back != "ping" || err != nil {
			t.Errorf("what listens on ::1: %q, %v", back, err)
		}
		for _, none := range at[1:] {
			if back, err := echoed(none, "ping"); err == nil {
				t.Errorf("a port that is none answers %q", back)
			}
		}
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("ended by its caller: %v", err)
	}
	if _, err := net.Dial("tcp", at[0]); err == nil {
		t.Error("the port is open after the end")
	}
	slices.Sort(u.notes)
	if want := []string{"cli.forward.nobody", "cli.forward.unreached"}; !slices.Equal(u.notes, want) {
		t.Errorf("said %v, want %v once each", u.notes, want)
	}
}

// More connections than the task's side takes wait for their turn.
func TestTunnelHoldsConnectionsBack(t *testing.T) {
	u := newTunnelled(t)
	u.places = make(chan struct{}, 1)
	at, _, _ := u.started(t, "0:ui")
	first, err := net.Dial("tcp", at[0])
	if err != nil {
		t.Fatal(err)
	}
	byteBack := make([]byte, 1)
	if _, err := first.Write([]byte("1")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(first, byteBack); err != nil {
		t.Fatal(err)
	}
	second := make(chan error, 1)
	go func() {
		back, err := echoed(at[0], "ping")
		if err == nil && back != "ping" {
			err = fmt.Errorf("got %q", back)
		}
		second <- err
	}()
	first.Close()
	if err := <-second; err != nil {
		t.Error(err)
	}
}

func TestTunnelComesBack(t *testing.T) {
	u := newTunnelled(t)
	at, ended, _ := u.started(t, "0:ui")
	if _, err := echoed(at[0], "ping"); err != nil {
		t.Fatal(err)
	}
	u.task.Conn.Close() // a server restarts
	for {
		if back, err := echoed(at[0], "ping"); err == nil && back == "ping" {
			break
		}
	}
	u.mu.Lock()
	if u.opens != 2 || !slices.Equal(u.notes, []string{"cli.forward.lost", "cli.forward.back"}) {
		t.Errorf("opened %d times, said %v", u.opens, u.notes)
	}
	// The right is taken away: whoever is asked at the next try says so.
	u.runs = structs.NewError(structs.CodeForbidden, "agent.forbidden")
	task := u.task
	u.mu.Unlock()
	task.Conn.Close()
	if err := <-ended; !errors.Is(err, u.runs) {
		t.Errorf("without the right: %v", err)
	}
	if len(u.notes) != 2 {
		t.Errorf("what ends for good is told as broken as well: %v", u.notes)
	}
}

// Why a port cannot be opened here has its own words, cause by cause.
func TestPortsThatCannotBeOpened(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	for address, want := range map[string]string{"127.0.0.1": "cli.forward.in_use", "192.0.2.1": "cli.forward.not_here"} {
		_, err := new(tunnel).listen(&structs.Allocation{JobName: "serve"}, netip.MustParseAddr(address), []portPair{{local: port, task: "8080"}})
		if told, ok := errors.AsType[*structs.Error](err); !ok || told.ID != want {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// What the node says of the task's end is not asked about again.
func TestTunnelEndsWithTask(t *testing.T) {
	u := newTunnelled(t)
	_, ended, _ := u.started(t, "0:ui")
	u.task.said = structs.NewError(structs.CodeConflict, "ssh.task_over", "alloc", "a1")
	u.task.Conn.Close()
	if err := <-ended; !errors.Is(err, u.task.said) || u.opens != 1 {
		t.Errorf("%v after %d connections", err, u.opens)
	}
}

func TestTunnelBelievesTheClusterOnly(t *testing.T) {
	u := newTunnelled(t)
	other, err := auth.NewCA("other", rand.Reader, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	u.authority = other
	if err := u.connect(t.Context()); err == nil {
		t.Error("a key of another cluster is believed")
	}
	for _, name := range []string{"j2.nomadlike", "j1.nomadlike", "rank2.j1.nomadlike", "rank2.attempt2.j1.nomadlike"} {
		if err := newTunnelled(t, name).connect(t.Context()); err == nil {
			t.Errorf("%s is believed to be attempt 3 of rank 2 of j1", name)
		}
	}
}

func TestPortPairs(t *testing.T) {
	alloc := &structs.Allocation{JobName: "serve", Ports: map[string]int{"ui": 20001}}
	for word, want := range map[string]struct {
		local, port int
	}{
		"8080": {localSame, 8080}, "8080:9090": {8080, 9090}, "0:1": {0, 1}, "65535:65535": {65535, 65535},
		"ui": {localSame, 20001}, "80:ui": {80, 20001},
	} {
		pair, err := parsePortPair(word)
		if err != nil {
			t.Errorf("%s: %v", word, err)
			continue
		}
		if port, _, err := pair.portOf(alloc); pair.local != want.local || port != want.port || err != nil {
			t.Errorf("%s: %d, %d, %v", word, pair.local, port, err)
		}
	}
	for _, word := range []string{"", ":", "0", "-1", "65536", "8080:", ":8080", "8080:0", "8080:65536", "ui:8080", "1:2:3", "127.0.0.1:8080", "+1:2", "a b", "8080:../x"} {
		if pair, err := parsePortPair(word); err == nil {
			t.Errorf("%q is %+v", word, pair)
		}
	}
}

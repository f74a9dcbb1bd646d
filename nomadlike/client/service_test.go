package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/internal/messages"
	"nomadlike/nomadlike/client/layout"
	"nomadlike/nomadlike/client/loop"
	"nomadlike/nomadlike/client/service"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// pipe is both ends of an Alloc.Exec stream in one process.
type pipe struct {
	ctx    context.Context // of the answering side
	caller context.Context
	up     chan *structs.ExecUp
	down   chan *structs.ExecDown
	once   sync.Once
	err    error         // of the answering side, once over is closed
	over   chan struct{} // the answering side has returned
}

type answering struct{ *pipe }

func (p answering) Send(d *structs.ExecDown) error {
	copied := *d
	copied.Stdout, copied.Stderr = slices.Clone(d.Stdout), slices.Clone(d.Stderr)
	select {
	case p.down <- &copied:
		return nil
	case <-p.ctx.Done():
		return p.ctx.Err()
	}
}

func (p answering) Recv() (*structs.ExecUp, error) {
	select {
	case up, ok := <-p.up:
		if !ok {
			return nil, io.EOF
		}
		return up, nil
	case <-p.ctx.Done():
		return nil, p.ctx.Err()
	}
}

type calling struct{ *pipe }

func (p calling) Send(up *structs.ExecUp) error {
	select {
	case p.up <- up:
		return nil
	case <-p.over:
		return io.EOF
	case <-p.caller.Done():
		return p.caller.Err()
	}
}

func (p calling) Recv() (*structs.ExecDown, error) {
	select {
	case d := <-p.down:
		return d, nil
	case <-p.over:
		select {
		case d := <-p.down:
			return d, nil
		default:
		}
		if p.err != nil {
			return nil, p.err
		}
		return nil, io.EOF
	case <-p.caller.Done():
		return nil, p.caller.Err()
	}
}

func (p calling) CloseSend() error {
	p.once.Do(func() { close(p.up) })
	return nil
}

// openExec opens an exec stream to a node as a caller.
func openExec(ctx context.Context, n *Client, caller service.Caller) calling {
	served, cancel := context.WithCancel(ctx)
	p := &pipe{ctx: served, caller: ctx, up: make(chan *structs.ExecUp), down: make(chan *structs.ExecDown, 64), over: make(chan struct{})}
	go func() {
		p.err = n.service.Exec(served, caller, answering{p})
		close(p.over)
		cancel() // gRPC ends the stream's context when the handler returns
	}()
	return calling{p}
}

// runExec runs a command to its end and returns what it said.
func runExec(t *testing.T, p calling, start *structs.ExecStart, stdin string) (stdout, stderr string, exit *structs.ExecExit, err error) {
	t.Helper()
	if err := p.Send(&structs.ExecUp{Start: start}); err != nil {
		t.Fatal(err)
	}
	go func() {
		if stdin != "" {
			_ = p.Send(&structs.ExecUp{Stdin: []byte(stdin)})
		}
		_ = p.Send(&structs.ExecUp{CloseStdin: true})
	}()
	for {
		d, err := p.Recv()
		if err != nil {
			return stdout, stderr, nil, err
		}
		stdout += string(d.Stdout)
		stderr += string(d.Stderr)
		if d.Exit != nil {
			return stdout, stderr, d.Exit, nil
		}
	}
}

func wantError(t *testing.T, err error, id string) {
	t.Helper()
	var e *structs.Error
	if !errors.As(err, &e) || e.ID != id {
		t.Errorf("got %v, want %s", err, id)
		return
	}
	for _, language := range []messages.Language{messages.English, messages.Chinese} {
		if !messages.Has(language, id) {
			t.Errorf("%s has no text in %s", id, language)
		}
	}
}

func TestExecAndWhoMay(t *testing.T) {
	dir := tempDir(t)
	c := newControl()
	cleanUp(t, dir)
	n, _ := c.node(t, dir, "n1", map[string]driver.Driver{"exec": realExec(t, dir)})
	pair := gang("pair", 2, "sleep 100", "n1", "n2")
	other := gang("other", 1, "sleep 100", "n1")[0]
	pair[0].Alloc.Released = true
	c.assign(pair[0], other)
	id := pair[0].Alloc.ID
	wantStatus(t, c, id, structs.AllocRunning)
	wantStatus(t, c, other.Alloc.ID, structs.AllocRunning)

	server, peer := service.Caller{Role: service.RoleServer, ID: "s1"}, service.Caller{Role: service.RoleClient, ID: "n2"}
	start := func(change func(*structs.ExecStart)) *structs.ExecStart {
		s := &structs.ExecStart{AllocID: id, Attempt: 2, Command: []string{"sh", "-c", "cat; echo to-err >&2; echo $MARK $NOMADLIKE_RANK; exit 9"}, Env: map[string]string{"MARK": "m"}}
		if change != nil {
			change(s)
		}
		return s
	}
	stdout, stderr, exit, err := runExec(t, openExec(t.Context(), n, server), start(nil), "input ")
	if err != nil || exit.Code != 9 || exit.Err != nil || !strings.HasPrefix(stdout, "input m") || stderr != "to-err\n" {
		t.Fatalf("stdout %q stderr %q exit %+v %v", stdout, stderr, exit, err)
	}
	_, _, exit, err = runExec(t, openExec(t.Context(), n, server), start(func(s *structs.ExecStart) { s.Command = []string{"no-such-command"} }), "")
	if err != nil || exit.Code != 127 || exit.Err == nil {
		t.Fatalf("a command that does not exist: %+v %v", exit, err)
	}
	_, _, exit, err = runExec(t, openExec(t.Context(), n, peer), start(func(s *structs.ExecStart) { s.From = pair[1].Alloc.ID }), "")
	if err != nil || exit.Code != 9 {
		t.Fatalf("a rank of the same attempt: %+v %v", exit, err)
	}
	for _, refused := range []struct {
		name   string
		caller service.Caller
		change func(*structs.ExecStart)
		id     string
	}{
		{"an old attempt", server, func(s *structs.ExecStart) { s.Attempt = 1 }, "client.attempt_old"},
		{"a newer attempt", server, func(s *structs.ExecStart) { s.Attempt = 3 }, "client.attempt_old"},
		{"unknown", server, func(s *structs.ExecStart) { s.AllocID = "ffff" }, "client.alloc_unknown"},
		{"no rank named", peer, nil, "client.exec_denied"},
		{"the rank of another node", service.Caller{Role: service.RoleClient, ID: "n3"}, func(s *structs.ExecStart) { s.From = pair[1].Alloc.ID }, "client.exec_denied"},
		{"a rank of another job", peer, func(s *structs.ExecStart) { s.From = other.Alloc.ID }, "client.exec_denied"},
		{"no role", service.Caller{ID: "n2"}, nil, "client.exec_denied"},
		{"another job's task", peer, func(s *structs.ExecStart) { s.AllocID, s.Attempt, s.From = other.Alloc.ID, 1, pair[1].Alloc.ID }, "client.exec_denied"},
	} {
		t.Run(refused.name, func(t *testing.T) {
			_, _, _, err := runExec(t, openExec(t.Context(), n, refused.caller), start(refused.change), "")
			wantError(t, err, refused.id)
		})
	}
	p := openExec(t.Context(), n, server)
	if err := p.Send(&structs.ExecUp{Stdin: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	_, err = p.Recv()
	wantError(t, err, "client.exec_failed")
}

// TestExecOfAPeerWaitsForTheStart: the barrier opens for one rank a moment
// before it opens for another.
func TestExecOfAPeerWaitsForTheStart(t *testing.T) {
	dir := tempDir(t)
	c := newControl()
	cleanUp(t, dir)
	n, _ := c.node(t, dir, "n1", map[string]driver.Driver{"exec": realExec(t, dir)})
	pair := gang("pair", 1, "sleep 100", "n1", "n2")
	c.assign(pair[0])
	wantStatus(t, c, pair[0].Alloc.ID, structs.AllocPrepared)
	start := &structs.ExecStart{AllocID: pair[0].Alloc.ID, Attempt: 1, Command: []string{"true"}, From: pair[1].Alloc.ID}
	type end struct {
		exit *structs.ExecExit
		err  error
	}
	ended := make(chan end, 2)
	for range 2 {
		go func() {
			_, _, exit, err := runExec(t, openExec(t.Context(), n, service.Caller{Role: service.RoleClient, ID: "n2"}), start, "")
			ended <- end{exit, err}
		}()
	}
	eventually.Within(t, time.Minute, "both wait", func() bool {
		waiting := 0
		err := n.inbox.Ask(t.Context(), func(l *loop.Loop) { waiting = l.Waiting(pair[0].Alloc.ID) })
		return err == nil && waiting == 2
	})
	c.change(pair[0].Alloc.ID, func(a *structs.Allocation) { a.Released = true })
	for range 2 {
		if e := <-ended; e.err != nil || e.exit.Code != 0 {
			t.Errorf("%+v %v", e.exit, e.err)
		}
	}
}

// A new agent has its tasks before a server has said whose they are: whoever
// enters one meanwhile waits for that word.
func TestExecWaitsForTheServersAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, w, dir := newControl(), newFakeRuntime(), tempDir(t)
		_, stop := c.node(t, dir, "n1", w.driver())
		settle()
		a := gang("job", 1, "sleep", "n1")[0]
		c.assign(a)
		settle()
		stop()
		c.silence(true)
		n, stop := c.node(t, dir, "n1", w.driver())
		settle()
		ended := make(chan error, 1)
		go func() {
			_, _, _, err := runExec(t, openExec(t.Context(), n, service.Caller{Role: service.RoleServer, ID: "s1"}), &structs.ExecStart{AllocID: a.Alloc.ID, Attempt: 1, Command: []string{"true"}}, "")
			ended <- err
		}()
		settle()
		select {
		case err := <-ended:
			t.Fatalf("before a server has spoken: %v", err)
		default:
		}
		c.silence(false)
		if err := <-ended; err != nil {
			t.Errorf("after that: %v", err)
		}
		stop()
	})
}

func TestExecEndsWithItsCaller(t *testing.T) {
	dir := tempDir(t)
	c := newControl()
	cleanUp(t, dir)
	n, _ := c.node(t, dir, "n1", map[string]driver.Driver{"exec": realExec(t, dir)})
	a := gang("job", 1, "sleep 100", "n1")[0]
	c.assign(a)
	wantStatus(t, c, a.Alloc.ID, structs.AllocRunning)
	ctx, cancel := context.WithCancel(t.Context())
	p := openExec(ctx, n, service.Caller{Role: service.RoleServer})
	mark := strconv.Itoa(os.Getpid()) + "31338"
	if err := p.Send(&structs.ExecUp{Start: &structs.ExecStart{AllocID: a.Alloc.ID, Attempt: 1, Command: []string{"sh", "-c", "echo ready; sleep " + mark}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Recv(); err != nil {
		t.Fatal(err)
	}
	eventually.Within(t, time.Minute, "the command runs", func() bool { return sleepers(t, mark) > 0 })
	cancel()
	eventually.Within(t, time.Minute, "command of a lost caller ends", func() bool { return sleepers(t, mark) == 0 })
	<-p.over
	// A signal reaches the command.
	p = openExec(t.Context(), n, service.Caller{Role: service.RoleServer})
	script := "trap 'echo got; exit 4' USR1; echo ready; while :; do sleep 0.01; done"
	if err := p.Send(&structs.ExecUp{Start: &structs.ExecStart{AllocID: a.Alloc.ID, Attempt: 1, Command: []string{"sh", "-c", script}}}); err != nil {
		t.Fatal(err)
	}
	if d, err := p.Recv(); err != nil || string(d.Stdout) != "ready\n" {
		t.Fatalf("%+v %v", d, err)
	}
	if err := p.Send(&structs.ExecUp{Signal: "SIGUSR1"}); err != nil {
		t.Fatal(err)
	}
	said := ""
	for {
		d, err := p.Recv()
		if err != nil {
			t.Fatal(err)
		}
		said += string(d.Stdout)
		if d.Exit != nil {
			if d.Exit.Code != 4 || said != "got\n" {
				t.Fatalf("said %q, exit %+v", said, d.Exit)
			}
			break
		}
	}
	<-p.over
}

func TestLogs(t *testing.T) {
	dir := tempDir(t)
	c := newControl()
	cleanUp(t, dir)
	n, _ := c.node(t, dir, "n1", map[string]driver.Driver{"exec": realExec(t, dir)})
	gate := filepath.Join(t.TempDir(), "gate")
	a := gang("talks", 1, fmt.Sprintf("sh -c 'echo one; echo two; while [ ! -e %s ]; do sleep 0.01; done; echo three'", gate), "n1")[0]
	c.assign(a)
	id := a.Alloc.ID
	wantStatus(t, c, id, structs.AllocRunning)
	server := service.Caller{Role: service.RoleServer}
	read := func(request structs.LogRequest) (string, bool, error) {
		var text strings.Builder
		eof := false
		err := n.service.Logs(t.Context(), server, &request, func(chunk *structs.LogChunk) error {
			text.Write(chunk.Data)
			eof = chunk.EOF
			return nil
		})
		return text.String(), eof, err
	}
	eventually.Within(t, time.Minute, "both lines are there", func() bool {
		text, eof, err := read(structs.LogRequest{AllocID: id, Stream: "stdout"})
		return err == nil && text == "one\ntwo\n" && !eof
	})
	if text, _, err := read(structs.LogRequest{AllocID: id, Stream: "stdout", TailLines: 1}); err != nil || text != "two\n" {
		t.Errorf("tail: %q %v", text, err)
	}
	if text, _, err := read(structs.LogRequest{AllocID: id, Stream: "stdout", Offset: 4}); err != nil || text != "two\n" {
		t.Errorf("offset: %q %v", text, err)
	}
	if text, _, err := read(structs.LogRequest{AllocID: id, Stream: "stdout", Offset: -3}); err != nil || text != "wo\n" {
		t.Errorf("negative offset: %q %v", text, err)
	}
	followed := make(chan string, 1)
	go func() {
		text, eof, err := read(structs.LogRequest{AllocID: id, Stream: "stdout", Follow: true})
		followed <- fmt.Sprint(text, eof, err)
	}()
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := <-followed; got != "one\ntwo\nthree\ntrue <nil>" {
		t.Errorf("followed: %q", got)
	}
	wantStatus(t, c, id, structs.AllocComplete)
	if text, eof, err := read(structs.LogRequest{AllocID: id, Stream: "stdout", Follow: true}); err != nil || text != "one\ntwo\nthree\n" || !eof {
		t.Errorf("after the end: %q %v %v", text, eof, err)
	}
	for want, request := range map[string]structs.LogRequest{
		"client.log_unknown": {AllocID: "00000000000000000000000000000000", Stream: "stdout"},
		"client.log_stream":  {AllocID: id, Stream: "../assignment"},
	} {
		_, _, err := read(request)
		wantError(t, err, want)
	}
	for _, id := range []string{"", "..", "../../etc", "a/b", ".hidden", strings.Repeat("x", 1000), id + "/../" + id} {
		_, _, err := read(structs.LogRequest{AllocID: id, Stream: "stdout"})
		wantError(t, err, "client.log_unknown")
	}
	err := n.service.Logs(t.Context(), service.Caller{Role: service.RoleClient, ID: "n2"}, &structs.LogRequest{AllocID: id, Stream: "stdout"}, nil)
	wantError(t, err, "client.log_unknown")
}

// TestTamperedLogsAreNotFollowed puts links and other things where logs are:
// what they lead to is never read.
func TestTamperedLogsAreNotFollowed(t *testing.T) {
	dir := tempDir(t)
	c := newControl()
	cleanUp(t, dir)
	n, _ := c.node(t, dir, "n1", map[string]driver.Driver{"exec": realExec(t, dir)})
	a := gang("hostile", 1, "echo secret-free", "n1")[0]
	c.assign(a)
	wantStatus(t, c, a.Alloc.ID, structs.AllocComplete)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	logs := n.files.Logs(a.Alloc.ID)
	log := filepath.Join(logs, "stdout.0")
	for name, tamper := range map[string]func() error{
		"link":      func() error { return os.Symlink(secret, log) },
		"hard link": func() error { return os.Link(secret, log) },
		"fifo":      func() error { return syscall.Mkfifo(log, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.RemoveAll(log); err != nil {
				t.Fatal(err)
			}
			if err := tamper(); err != nil {
				t.Fatal(err)
			}
			err := n.service.Logs(t.Context(), service.Caller{Role: service.RoleServer}, &structs.LogRequest{AllocID: a.Alloc.ID, Stream: "stdout"}, func(chunk *structs.LogChunk) error {
				if strings.Contains(string(chunk.Data), "secret") {
					t.Error("read what the link leads to")
				}
				return nil
			})
			wantError(t, err, "client.log_read")
		})
	}
}

// mpi makes two nodes that reach each other, with an mpi job over both.
func mpi(t *testing.T, command string) (c *control, dirs []string, ranks []*structs.Assignment) {
	t.Helper()
	c = newControl()
	nodes := map[string]*Client{}
	open := func(ctx context.Context, nodeID, _ string) (service.ExecPeer, error) {
		from := map[string]string{"n1": "n2", "n2": "n1"}[nodeID]
		return openExec(ctx, nodes[nodeID], service.Caller{Role: service.RoleClient, ID: from}), nil
	}
	for _, id := range []string{"n1", "n2"} {
		dir := tempDir(t)
		cleanUp(t, dir)
		dirs = append(dirs, dir)
		nodes[id], _ = c.node(t, dir, id, map[string]driver.Driver{"exec": realExec(t, dir)}, func(config *Config) {
			config.OpenExec = open
			config.Binary = os.Args[0]
		})
	}
	ranks = gang("pi", 1, command, "n1", "n2")
	ranks[0].Job.Distributed.Mode = structs.ModeMPI
	c.assign(ranks...)
	for _, a := range ranks {
		wantStatus(t, c, a.Alloc.ID, structs.AllocPrepared)
	}
	for _, a := range ranks {
		c.change(a.Alloc.ID, func(a *structs.Allocation) { a.Released = true })
	}
	return c, dirs, ranks
}

func TestRemoteShellReachesRanks(t *testing.T) {
	script := `sh -c 'echo from-stdin | .nomadlike/mpi-rsh -x pi-1-1 "cat; echo $NOMADLIKE_RANK_NAMES >&2; exit 6"; echo code $?; .nomadlike/mpi-rsh pi-1-0 "echo local"; .nomadlike/mpi-rsh nobody true; echo code $?; exit 0' # mpirun`
	c, dirs, ranks := mpi(t, script)
	wantStatus(t, c, ranks[0].Alloc.ID, structs.AllocComplete)
	stdout, stderr := logText(t, dirs[0], ranks[0].Alloc.ID, "stdout"), logText(t, dirs[0], ranks[0].Alloc.ID, "stderr")
	if stdout != "from-stdin\ncode 6\nlocal\ncode 255\n" {
		t.Errorf("stdout %q", stdout)
	}
	if !strings.Contains(stderr, "its ranks are pi-1-0, pi-1-1") {
		t.Errorf("stderr %q", stderr)
	}
	c.change(ranks[1].Alloc.ID, func(a *structs.Allocation) { a.Desired = structs.DesiredStop })
	wantStatus(t, c, ranks[1].Alloc.ID, structs.AllocKilled)
	for i, dir := range dirs {
		eventually.Within(t, time.Minute, fmt.Sprintf("the socket of rank %d is gone", i), func() bool {
			_, err := os.Lstat((layout.Layout{Root: dir}).RSHSocket(ranks[i].Alloc.ID))
			return errors.Is(err, os.ErrNotExist)
		})
	}
}

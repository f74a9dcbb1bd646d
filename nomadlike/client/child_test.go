package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	osexec "os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"nomadlike/nomadlike/client/firewall"
	"nomadlike/nomadlike/client/service"
	"nomadlike/nomadlike/client/session"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/exec"
)

// Environment that makes the test binary a whole agent: its data directory,
// and the socket of the test's control.
const (
	childEnv       = "NOMADLIKE_TEST_AGENT_DIR"
	childServerEnv = "NOMADLIKE_TEST_AGENT_SERVER"
	childNodeEnv   = "NOMADLIKE_TEST_AGENT_NODE" // "n1" when not set
)

// childExec is where an agent of another process answers Alloc.Exec, in the
// directory beside its data directory.
func childExec(dir string) string { return filepath.Join(filepath.Dir(dir), "exec.sock") }

// execHello is the first message on such a socket, in place of a certificate.
type execHello struct{ Caller service.Caller }

// runChild is a node with the real exec driver until it is killed.
func runChild(dir, server string) int {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(3) // the test is gone
	}()
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	d, err := exec.New(exec.Config{StateDir: filepath.Join(dir, "exec"), Supervisor: []string{os.Args[0], "task-supervisor"}, Logger: logger})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	id := os.Getenv(childNodeEnv)
	config := Config{
		DataDir: dir, NodeID: "n1", RPCAddr: "n1:1", Drivers: map[string]driver.Driver{"exec": d},
		Servers:     func() []string { return []string{server} },
		OpenSession: dialControl, Logger: logger, Machine: testMachine(), Binary: os.Args[0],
	}
	if id != "" { // in a network of its own
		config.NodeID, config.Machine = id, nil
		config.Filter = func(nodeID string) firewall.Filter { return firewall.NewNFTables(nodeID) }
		config.PatrolEvery, config.LinksEvery = 500*time.Millisecond, 100*time.Millisecond
		config.OpenExec = func(ctx context.Context, _, rpcAddr string) (service.ExecPeer, error) {
			return dialExec(ctx, rpcAddr, service.Caller{Role: service.RoleClient, ID: id})
		}
	}
	n, err := New(config)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if id != "" {
		go serveExec(n, childExec(dir)) // for the life of the process
	}
	if err := n.Run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return 1
}

// jsonStream is a node's stream over a plain connection, for agents in other
// processes than the test's.
type jsonStream[Out, In any] struct {
	conn net.Conn
	mu   *sync.Mutex
	in   *json.Decoder
	out  *json.Encoder
}

func newJSONStream[Out, In any](conn net.Conn) jsonStream[Out, In] {
	return jsonStream[Out, In]{conn: conn, mu: new(sync.Mutex), in: json.NewDecoder(conn), out: json.NewEncoder(conn)}
}

func (s jsonStream[Out, In]) Send(message *Out) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Encode(message)
}

func (s jsonStream[Out, In]) Recv() (*In, error) {
	message := new(In)
	return message, s.in.Decode(message)
}

func (s jsonStream[Out, In]) CloseSend() error { return s.conn.Close() }

func dialControl(ctx context.Context, addr string) (session.Stream, error) {
	conn, err := net.Dial("unix", addr)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { conn.Close() })
	return newJSONStream[structs.SessionUp, structs.SessionDown](conn), nil
}

// serveExec answers Alloc.Exec on a unix socket.
func serveExec(n *Client, path string) {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) { // of an agent that was killed
		panic(err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		panic(err)
	}
	for {
		conn, err := l.Accept()
		if err != nil {
			panic(err)
		}
		go func() {
			defer conn.Close()
			stream := newJSONStream[structs.ExecDown, structs.ExecUp](conn)
			var hello execHello
			if err := stream.in.Decode(&hello); err != nil {
				return
			}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			if err := n.service.Exec(ctx, hello.Caller, stream); err != nil {
				fmt.Fprintln(os.Stderr, "exec:", err)
			}
		}()
	}
}

func dialExec(ctx context.Context, path string, caller service.Caller) (service.ExecPeer, error) {
	conn, err := net.Dial("unix", path)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { conn.Close() })
	stream := newJSONStream[structs.ExecUp, structs.ExecDown](conn)
	return stream, stream.out.Encode(execHello{caller})
}

// listen serves nodes of other processes, and returns the socket's path.
func (c *control) listen(t *testing.T) string {
	t.Helper()
	path := filepath.Join(filepath.Dir(tempDir(t)), "control")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	var conns struct {
		sync.Mutex
		all []net.Conn
	}
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conns.Lock()
			conns.all = append(conns.all, conn)
			conns.Unlock()
			serving.Go(func() {
				defer conn.Close()
				c.serve(newJSONStream[structs.SessionDown, structs.SessionUp](conn))
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		conns.Lock()
		for _, conn := range conns.all {
			conn.Close()
		}
		conns.Unlock()
		serving.Wait()
	})
	return path
}

// agent starts an agent of its own process; kill ends it as `kill -9` does.
func agent(t *testing.T, dir, server string) (kill func()) {
	t.Helper()
	return startAgent(t, osexec.Command(os.Args[0]), childEnv+"="+dir, childServerEnv+"="+server)
}

func startAgent(t *testing.T, cmd *osexec.Cmd, env ...string) (kill func()) {
	t.Helper()
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	if !testing.Verbose() {
		cmd.Stderr = nil
	}
	lifeline, err := cmd.StdinPipe() // ends with this process: the agent sees it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lifeline.Close() })
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	kill = func() {
		once.Do(func() {
			if err := cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
			_ = cmd.Wait() // killed, as it was meant to be
		})
	}
	t.Cleanup(kill)
	return kill
}

package agent

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"nomadlike/agent/config"
	"nomadlike/internal/eventually"
	"nomadlike/internal/messages"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/consensus"
	"nomadlike/nomadlike/gossip"
	"nomadlike/nomadlike/structs"
)

// foundAgain starts a server with settings that would found a cluster.
func foundAgain(t *testing.T, settings config.Settings, look time.Duration) (*Agent, error) {
	t.Helper()
	loopback, zero := "127.0.0.1", 0
	config, err := config.Load(nil, config.Settings{Bind: &loopback, Ports: &config.PortsBlock{HTTP: &zero, Gossip: &zero}}.Over(settings), messages.English)
	if err != nil {
		t.Fatal(err)
	}
	options := testOptions(t)
	options.foundLook = look
	agent, err := Start(t.Context(), config, options)
	if err == nil {
		t.Cleanup(func() { stopAgent(t, agent) })
	}
	return agent, err
}

func wantRefusal(t *testing.T, err error, id string) {
	t.Helper()
	var told *structs.Error
	if !errors.As(err, &told) || told.ID != id {
		t.Fatalf("got %v, want %s", err, id)
	}
	if hint := messages.Text(messages.English, id+".hint", nil); !strings.Contains(hint, "-found") || !strings.Contains(hint, "-join-token-file") {
		t.Errorf("the cure is %q", hint)
	}
}

// The first server of three loses its disk and is started with its old command:
// the others still call it, so it makes no second cluster, unless it is told to.
func TestWipedFounderDoesNotFoundAgain(t *testing.T) {
	c := startCluster(t, 3, 0)
	founder := c.servers[0]
	host, portText, err := net.SplitHostPort(founder.Addr())
	if err != nil || host != "127.0.0.1" {
		t.Fatal(founder.Addr(), err)
	}
	port, err := strconv.Atoi(portText)
	if err != nil {
		t.Fatal(err)
	}
	stopAgent(t, founder)

	empty := t.TempDir()
	settings := serverSettings(empty, "server-0", 3, nil)
	gossipPort := 0
	settings.Ports = &config.PortsBlock{HTTP: &port, Gossip: &gossipPort}
	_, err = foundAgain(t, settings, time.Minute)
	wantRefusal(t, err, "agent.refuse.found_called")
	if _, err := os.Stat(filepath.Join(empty, identityDir)); err == nil {
		t.Error("a refused founder has an identity")
	}

	yes := true
	settings.Found = &yes
	again, err := foundAgain(t, settings, time.Minute)
	if err != nil {
		t.Fatalf("told to found: %v", err)
	}
	if ours := again.identity.credentials.Self.Cluster; ours == c.servers[1].identity.credentials.Self.Cluster {
		t.Error("it is the old cluster")
	}
}

// A first server that is a node too asks the servers that its configuration names.
func TestFounderAsksTheServersOfItsConfiguration(t *testing.T) {
	agent, _ := founder(t)
	settings := serverSettings(t.TempDir(), "server-9", 1, nil)
	settings.Client = &config.ClientBlock{Servers: []string{agent.Addr()}}
	_, err := foundAgain(t, settings, time.Minute)
	wantRefusal(t, err, "agent.refuse.found_answers")
	if !strings.Contains(err.Error(), agent.Addr()) {
		t.Errorf("the answer does not say where: %v", err)
	}

	settings.Client.Servers = []string{"127.0.0.1:1"} // nobody answers and nobody ever did
	if _, err := foundAgain(t, settings, 50*time.Millisecond); err != nil {
		t.Error(err)
	}
}

// A data directory that lost its identity still knows that there was a cluster.
func TestFounderRemembersServers(t *testing.T) {
	dir := t.TempDir()
	data, err := json.Marshal([]gossip.KnownServer{{ID: "s", Addr: "127.0.0.1:1", RPCAddr: "127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, knownFile), data, 0o600); err != nil {
		t.Fatal(err)
	}
	settings := serverSettings(dir, "server-0", 1, nil)
	_, err = foundAgain(t, settings, 50*time.Millisecond)
	wantRefusal(t, err, "agent.refuse.found_known")
	yes := true
	settings.Found = &yes
	if _, err := foundAgain(t, settings, 50*time.Millisecond); err != nil {
		t.Error(err)
	}
}

// What a founder hears: servers and nobody else.
func TestOverhear(t *testing.T) {
	for _, c := range []struct {
		name, protocol string
		back           bool
		want           string
	}{
		{"a server's Raft", auth.ALPNRaft, false, "127.0.0.1"},
		{"a server's Raft, and where it is", auth.ALPNRaft, true, "127.0.0.1:4646"},
		{"a server's call", auth.ALPNRPC, true, "127.0.0.1:4646"},
		{"a node's call", auth.ALPNRPC, false, ""},
		{"a browser", auth.ALPNHTTP, true, ""},
		{"no TLS", "", true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			got := make(chan string)
			go func() {
				got <- overhear(ctx, listener, func(_ context.Context, host string) (string, bool) {
					return net.JoinHostPort(host, "4646"), c.back
				})
			}()
			conn, err := net.Dial("tcp", listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			if c.protocol == "" {
				if _, err := conn.Write([]byte("GET / HTTP/1.0\r\n\r\n")); err != nil {
					t.Fatal(err)
				}
				_, _ = conn.Read(make([]byte, 1)) // until it hangs up
			} else if err := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{c.protocol}}).Handshake(); err == nil {
				t.Error("it answered")
			}
			conn.Close()
			if c.want == "" {
				cancel()
			}
			if from := <-got; from != c.want {
				t.Errorf("heard %q, want %q", from, c.want)
			}
			next, err := net.Dial("tcp", listener.Addr().String()) // the port is as it was
			if err != nil {
				t.Fatal(err)
			}
			next.Close()
			taken, err := listener.Accept()
			if err != nil {
				t.Fatal(err)
			}
			taken.Close()
		})
	}
}

// A founder that was ended between the directory of its log and its own identity
// goes on where it was: nobody knows the cluster that it had begun to make.
func TestFounderGoesOnAfterItsEnd(t *testing.T) {
	dir := t.TempDir()
	begun, err := consensus.EnsureIdentity(filepath.Join(dir, serverDir), "0123456789abcdef0123456789abcdef")
	if err != nil {
		t.Fatal(err)
	}
	agent := startAgent(t, serverSettings(dir, "server-0", 1, nil), testOptions(t))
	if self := agent.identity.credentials.Self; self.Cluster != begun.ClusterID || self.ID != begun.ServerID {
		t.Errorf("it is %+v, and had begun as %+v", self, begun)
	}
	eventually.Within(t, time.Minute, "lead", func() bool { return agent.raft.IsLeader() })
	config := agent.configured
	stopAgent(t, agent)

	// One that has voted is more than begun: its cluster may be known to others.
	if err := os.Rename(filepath.Join(dir, identityDir), filepath.Join(dir, "lost")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, knownFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if again, err := Start(t.Context(), config, testOptions(t)); err == nil {
		stopAgent(t, again)
		t.Error("a server with a log founded a second cluster upon it")
	}
}

// Whoever has joined needs its join token no more, nor the file that held it.
func TestStartWithoutTheTokenFile(t *testing.T) {
	founder, _ := founder(t)
	token := filepath.Join(t.TempDir(), "token")
	line, err := os.ReadFile(filepath.Join(founder.DataDir(), joinClient))
	if err == nil {
		err = os.WriteFile(token, line, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	dir, yes := t.TempDir(), true
	settings := config.Settings{DataDir: &dir, JoinFile: &token, Client: &config.ClientBlock{Enabled: &yes}}
	stopAgent(t, startAgent(t, settings, testOptions(t)))
	if err := os.Remove(token); err != nil {
		t.Fatal(err)
	}
	startAgent(t, settings, testOptions(t))

	empty := t.TempDir()
	settings.DataDir = &empty
	if _, err := config.Load(nil, settings, messages.English); err == nil {
		t.Error("an agent that must join starts without its token")
	}
}

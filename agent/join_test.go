package agent

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"nomadlike/agent/config"
	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/structs"
)

// founder is one server on its own, with an administrator's client.
func founder(t *testing.T) (*Agent, *api.Client) {
	t.Helper()
	c := startCluster(t, 1, 0)
	return c.servers[0], c.api
}

// Of a hundred who come with the setup secret at once, one gets a token.
func TestBootstrapHasOneWinner(t *testing.T) {
	agent := startAgent(t, serverSettings(t.TempDir(), "server-0", 1, nil), testOptions(t))
	client := clientFor(t, "https://"+agent.Addr(), string(agent.CA()), "")
	secret := readJoin(t, agent, setupFile)
	if _, err := client.BootstrapToken(t.Context(), secret+"x"); structs.CodeOf(err) != structs.CodeUnauthorized {
		t.Errorf("wrong secret: %v", err)
	}
	var racing sync.WaitGroup
	won := make(chan string, 100)
	for range 100 {
		racing.Go(func() {
			if token, err := client.BootstrapToken(t.Context(), secret); err == nil {
				won <- token.Secret
			}
		})
	}
	racing.Wait()
	if len(won) != 1 {
		t.Fatalf("%d winners", len(won))
	}
	if _, err := client.WithToken(<-won).SelfToken(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := client.BootstrapToken(t.Context(), secret); structs.CodeOf(err) == "" {
		t.Error("the secret worked again")
	}
	if _, err := os.Stat(filepath.Join(agent.DataDir(), setupFile)); err == nil {
		t.Error("the used secret is still on disk")
	}
}

func TestJoinIsRefused(t *testing.T) {
	agent, admin := founder(t)
	clientToken, err := admin.CreateJoinToken(t.Context(), api.JoinTokenRequest{Role: "client", Uses: -1})
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := auth.ParseJoinToken(clientToken.Join)
	if err != nil {
		t.Fatal(err)
	}
	csr, _, err := auth.NewCSR(auth.RoleClient, strings.Repeat("a", 32), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	good := api.JoinRequest{TokenID: parsed.ID, Secret: parsed.Secret, Role: "client", AgentID: strings.Repeat("a", 32), Name: "gpu-1", CSR: string(csr)}
	joiner := clientFor(t, "https://"+agent.Addr(), string(agent.CA()), "")
	for _, test := range []struct {
		name string
		edit func(*api.JoinRequest)
		code structs.ErrorCode
	}{
		{"a client's token for a server", func(r *api.JoinRequest) { r.Role = "server" }, structs.CodeForbidden},
		{"a wrong secret", func(r *api.JoinRequest) { r.Secret = strings.Repeat("a", len(r.Secret)) }, structs.CodeUnauthorized},
		{"an unknown token", func(r *api.JoinRequest) { r.TokenID = "0000000000000000" }, structs.CodeUnauthorized},
		{"the id of a server", func(r *api.JoinRequest) { r.AgentID = agent.ID() }, structs.CodeConflict},
		{"an id that is a path", func(r *api.JoinRequest) { r.AgentID = "../../../../../../../etc/passwd00" }, structs.CodeInvalid},
		{"no request to sign", func(r *api.JoinRequest) { r.CSR = "" }, structs.CodeInvalid},
		{"a hostile name", func(r *api.JoinRequest) { r.Name = "../x" }, structs.CodeInvalid},
		{"another role", func(r *api.JoinRequest) { r.Role = "root" }, structs.CodeInvalid},
	} {
		request := good
		test.edit(&request)
		if _, err := joiner.Join(t.Context(), request); structs.CodeOf(err) != test.code {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	joined, err := joiner.Join(t.Context(), good)
	if err != nil {
		t.Fatal(err)
	}
	if joined.CAKey != "" || joined.Init != nil {
		t.Error("a client was given the secrets of servers")
	}
	if _, err := admin.DeleteJoinToken(t.Context(), parsed.ID); err != nil {
		t.Fatal(err)
	}
	good.AgentID = strings.Repeat("b", 32)
	if _, err := joiner.Join(t.Context(), good); structs.CodeOf(err) != structs.CodeUnauthorized {
		t.Errorf("a revoked token: %v", err)
	}
}

// A joiner whose answer is lost, after its token's only use was taken, is let in
// when it asks again.
func TestJoinerWhoseAnswerIsLostIsLetIn(t *testing.T) {
	agent, admin := founder(t)
	made, err := admin.CreateJoinToken(t.Context(), api.JoinTokenRequest{Role: "client", Uses: 1})
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := auth.ParseJoinToken(made.Join)
	if err != nil {
		t.Fatal(err)
	}
	usesLeft := func() int {
		return agent.store.Snapshot().JoinToken(parsed.ID).UsesLeft
	}
	line := startDeafLine(t, agent.Addr())
	joined := make(chan error, 1)
	go func() { joined <- joinAtAddress(t, clientSettings(t.TempDir(), "gpu-1", nil), made.Join, line.addr) }()
	eventually.Within(t, 10*time.Second, "use the token", func() bool { return usesLeft() == 0 })
	close(line.cut)
	if err := <-joined; err != nil {
		t.Fatalf("the joiner was refused: %v", err)
	}
	if line.lost.Load() != 1 {
		t.Errorf("%d answers were lost, want 1: the test tests nothing", line.lost.Load())
	}
	if err := joinAtAddress(t, clientSettings(t.TempDir(), "gpu-2", nil), made.Join, agent.Addr()); structs.CodeOf(err) != structs.CodeUnauthorized {
		t.Errorf("another agent with the used token: %v", err)
	}
}

// deafLine passes connections on to a server, but loses the answer to the first
// one on which something is asked.
type deafLine struct {
	addr string
	cut  chan struct{} // closed when the connection whose answer is lost may end
	lost atomic.Int32
}

func startDeafLine(t *testing.T, server string) *deafLine {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	line := &deafLine{addr: listener.Addr().String(), cut: make(chan struct{})}
	var passing sync.WaitGroup
	t.Cleanup(func() {
		_ = listener.Close()
		passing.Wait()
	})
	var deaf atomic.Bool // of the answers to the second connection: the first one asks for the CA
	passing.Go(func() {
		for k := 0; ; k++ {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", server)
			if err != nil {
				t.Error(err)
				return
			}
			passing.Go(func() {
				defer to.Close()
				buffer, asked := make([]byte, 32<<10), 0
				for {
					n, err := from.Read(buffer)
					if err != nil {
						return
					}
					// The handshake's first message is answered; what comes behind has the request.
					if asked++; k == 1 && asked == 2 {
						deaf.Store(true)
					}
					if _, err := to.Write(buffer[:n]); err != nil {
						return
					}
				}
			})
			passing.Go(func() {
				defer from.Close()
				buffer := make([]byte, 32<<10)
				for {
					n, err := to.Read(buffer)
					if k == 1 && deaf.Load() {
						<-line.cut
						line.lost.Add(1)
						return
					}
					if err != nil {
						return
					}
					if _, err := from.Write(buffer[:n]); err != nil {
						return
					}
				}
			})
		}
	})
	return line
}

// What was not answered is asked again; a refusal, and what is wrong on this
// machine, ends the agent.
func TestJoinerWaitsForAnAnswerOnly(t *testing.T) {
	for _, test := range []struct {
		err  error
		want bool
	}{
		{structs.NewError(structs.CodeUnavailable, "server.no_ca"), true},
		{structs.NewError(structs.CodeTimeout, "server.outcome_unknown"), true},
		{fmt.Errorf("ask 10.0.0.1:4646: %w", context.DeadlineExceeded), true},
		{fmt.Errorf("read answer of POST /v1/join: %w", io.ErrUnexpectedEOF), true},
		{fmt.Errorf("read answer of POST /v1/join: %w", &net.OpError{Op: "read", Err: syscall.ECONNRESET}), true},
		{structs.NewError(structs.CodeUnauthorized, "auth.join_used_up", "id", "1").Because(context.DeadlineExceeded), false},
		{&os.PathError{Op: "write", Path: "agent.pem", Err: syscall.ENOSPC}, false},
		{errors.New("read certificate from server: it is of another agent"), false},
	} {
		if got := isUnanswered(test.err); got != test.want {
			t.Errorf("%v: asked again %v, want %v", test.err, got, test.want)
		}
	}
}

// The founder answers again, too, before there is a log: with one use left, and
// also once there is none.
func TestFounderAnswersAgain(t *testing.T) {
	dir := t.TempDir()
	founded, err := foundCluster(config.Config{DataDir: dir, Name: "server-0", Advertise: "127.0.0.1"}, "127.0.0.1:4646", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	printed, err := os.ReadFile(filepath.Join(dir, identityDir, joinServer))
	if err != nil {
		t.Fatal(err)
	}
	token, err := auth.ParseJoinToken(strings.TrimSpace(string(printed)))
	if err != nil {
		t.Fatal(err)
	}
	ask := func(id string, csr []byte, now time.Time) string {
		err := founded.UseJoinToken(&api.JoinRequest{TokenID: token.ID, Secret: token.Secret, AgentID: id, CSR: string(csr)}, auth.RoleServer, now)
		if refused := new(structs.Error); errors.As(err, &refused) {
			return refused.ID
		}
		return ""
	}
	key := func() []byte {
		csr, _, err := auth.NewCSR(auth.RoleServer, "one", rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return csr
	}
	now, first := time.Now(), key()
	for k := range printedServerUses {
		csr := first
		if k > 0 {
			csr = key()
		}
		for range 2 {
			if got := ask("one", csr, now); got != "" {
				t.Fatalf("agent %d: %s", k, got)
			}
		}
	}
	for _, step := range []struct {
		name string
		id   string
		csr  []byte
		at   time.Duration
		want string
	}{
		{"the first one again", "one", first, 9 * time.Minute, ""},
		{"another id", "two", first, 9 * time.Minute, "auth.join_used_up"},
		{"another key", "one", key(), 9 * time.Minute, "auth.join_used_up"},
		{"the first one after ten minutes", "one", first, 10 * time.Minute, "auth.join_used_up"},
	} {
		if got := ask(step.id, step.csr, now.Add(step.at)); got != step.want {
			t.Errorf("%s: %q, want %q", step.name, got, step.want)
		}
	}
}

// A joiner that meets a server of another CA tells it nothing.
func TestJoinerTellsNothingToTheWrongServer(t *testing.T) {
	ca, err := auth.NewCA("0123456789abcdef", rand.Reader, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	issued, err := ca.IssueAgent(auth.Grant{Role: auth.RoleServer, ID: "impostor"}, rand.Reader, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(issued.ChainPEM, issued.KeyPEM)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	heard := make(chan int64, 10)
	go func() {
		for {
			raw, err := listener.Accept()
			if err != nil {
				close(heard)
				return
			}
			conn := tls.Server(raw, &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}})
			n, _ := io.Copy(io.Discard, conn)
			_ = conn.Close()
			heard <- n
		}
	}()
	other, _, err := auth.GenerateJoinToken(strings.Repeat("0", 64), listener.Addr().String(), auth.RoleClient, 1, time.Hour, rand.Reader, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	_, err = joinOnce(t, clientSettings(t.TempDir(), "gpu-1", text(other.String())))
	if structs.CodeOf(err) != structs.CodeUnauthorized {
		t.Errorf("joined: %v", err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	for n := range heard {
		if n != 0 {
			t.Errorf("the impostor heard %d bytes", n)
		}
	}
}

func TestDataDirectoriesAreChecked(t *testing.T) {
	agent, admin := founder(t)
	dir := agent.DataDir()
	if _, err := joinOnce(t, serverSettings(dir, "server-0", 1, nil)); structs.CodeOf(err) != structs.CodeConflict {
		t.Errorf("a directory in use: %v", err)
	}
	token, err := admin.CreateJoinToken(t.Context(), api.JoinTokenRequest{Role: "client"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := joinOnce(t, clientSettings(t.TempDir(), "gpu-1", nil)); structs.CodeOf(err) != structs.CodeInvalid {
		t.Errorf("a client without a token: %v", err)
	}
	stopAgent(t, agent)
	if _, err := joinOnce(t, clientSettings(dir, "server-0", nil)); structs.CodeOf(err) != structs.CodeConflict {
		t.Errorf("a server's directory for a client: %v", err)
	}
	foreign := strings.Replace(token.Join, token.Join[4:12], "00000000", 1)
	if _, err := joinOnce(t, serverSettings(dir, "server-0", 1, &foreign)); structs.CodeOf(err) != structs.CodeConflict {
		t.Errorf("a token of another cluster: %v", err)
	}
	if info, err := os.Stat(filepath.Join(dir, identityDir)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("identity: %v %v", info.Mode(), err)
	}
	// The log is wiped: the old id must not come back.
	if err := os.RemoveAll(filepath.Join(dir, serverDir)); err != nil {
		t.Fatal(err)
	}
	_, err = joinOnce(t, serverSettings(dir, "server-0", 1, nil))
	if structs.CodeOf(err) != structs.CodeConflict {
		t.Errorf("a wiped log: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, identityDir, agentKeyFile), []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := joinOnce(t, serverSettings(dir, "server-0", 1, nil)); structs.CodeOf(err) != structs.CodeInvalid {
		t.Errorf("a damaged identity: %v", err)
	}
}

// A server that starts again on its directory is the same server, with its
// state; certificates are renewed in place.
func TestServerComesBack(t *testing.T) {
	agent, admin := founder(t)
	id, dir := agent.ID(), agent.DataDir()
	made, err := admin.CreateToken(t.Context(), api.TokenRequest{Role: "admin", Name: "kept"})
	if err != nil {
		t.Fatal(err)
	}
	before := agent.ident.Load()
	renewed, err := agent.certificates.renew(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if renewed.Self != before.Self || renewed.Certificate.Leaf.Equal(before.Certificate.Leaf) {
		t.Errorf("renewed %s", renewed.Self)
	}
	stopAgent(t, agent)
	again := startAgent(t, serverSettings(dir, "server-0", 1, nil), testOptions(t))
	if again.ID() != id || !again.ident.Load().Certificate.Leaf.Equal(renewed.Certificate.Leaf) {
		t.Error("another server came back")
	}
	client := clientFor(t, "https://"+again.Addr(), string(again.CA()), made.Secret)
	if token, err := client.SelfToken(t.Context()); err != nil || token.Name != "kept" {
		t.Errorf("token: %+v %v", token, err)
	}
}

// A client's certificate is renewed by a server, for its own identity only.
func TestClientRenewsItsCertificate(t *testing.T) {
	c := startCluster(t, 1, 1)
	agent := c.clients[0]
	before := agent.ident.Load()
	renewed, err := agent.certificates.renew(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if renewed.Self != before.Self || renewed.Certificate.Leaf.Equal(before.Certificate.Leaf) {
		t.Errorf("renewed %s", renewed.Self)
	}
	agent.ident.Store(renewed)
	pool := rpc.NewPool(rpc.Dialer{Identity: agent.ident})
	defer pool.Close()
	conn, err := pool.Conn(rpc.Target{Addr: c.servers[0].Addr(), Expect: auth.Expect{Role: auth.RoleServer}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rpc.Ping(t.Context(), conn); err != nil {
		t.Errorf("the new certificate does not work: %v", err)
	}
	// A client's certificate opens none of the servers' own calls.
	_, err = rpc.Call[structs.ProposeRequest, structs.ProposeReply](t.Context(), conn, structs.MethodLeaderPropose, &structs.ProposeRequest{})
	if structs.CodeOf(err) != structs.CodeForbidden {
		t.Errorf("a client proposed: %v", err)
	}
}

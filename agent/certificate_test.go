package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"nomadlike/agent/config"
	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/structs"
)

// shiftedClock is a wall clock that tests move.
type shiftedClock struct{ by atomic.Int64 }

func (c *shiftedClock) now() time.Time          { return time.Now().Add(time.Duration(c.by.Load())) }
func (c *shiftedClock) forward(d time.Duration) { c.by.Add(int64(d)) }

// lapsing is a server and a node whose certificates are checked by a clock
// that the test moves.
type lapsing struct {
	clock  *shiftedClock
	server *Agent
	api    *api.Client
	join   string
}

func (l *lapsing) options(t testing.TB) Options {
	options := testOptions(t)
	options.now, options.renewLook = l.clock.now, 10*time.Millisecond
	return options
}

func startLapsing(t testing.TB, grace string) *lapsing {
	t.Helper()
	l := &lapsing{clock: &shiftedClock{}}
	settings := serverSettings(t.TempDir(), "server-0", 1, nil)
	if grace != "" {
		settings.Server.LapseGrace = &grace
	}
	l.server = startAgent(t, settings, l.options(t))
	l.join = readJoin(t, l.server, joinClient)
	anonymous := l.client(t, "")
	var token *api.NewToken
	eventually.Within(t, time.Minute, "make the first token", func() bool {
		var err error
		token, err = anonymous.BootstrapToken(t.Context(), readJoin(t, l.server, setupFile))
		return err == nil
	})
	l.api = l.client(t, token.Secret)
	return l
}

// client checks certificates by the test's clock.
func (l *lapsing) client(t testing.TB, token string) *api.Client {
	t.Helper()
	client, err := api.New(api.Config{Address: l.server.Addr(), Token: token, HTTPClient: &http.Client{Transport: &http.Transport{
		TLSClientConfig: auth.LapsedTLS(func() *auth.Trust { return l.server.ident.Load().Trust }, l.clock.now), DisableKeepAlives: true,
	}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func (l *lapsing) nodeReady(t testing.TB, id string) {
	t.Helper()
	eventually.Within(t, time.Minute, "see the node ready", func() bool {
		node, _, err := l.api.Node(t.Context(), id, nil)
		return err == nil && node.Status == structs.NodeReady
	})
}

// A node whose certificate expired while it was away comes back by the proof
// of its key, and its rank is the same attempt as before.
func TestNodeWithAnExpiredCertificateComesBack(t *testing.T) {
	l := startLapsing(t, "")
	dir := t.TempDir()
	node := startAgent(t, clientSettings(dir, "gpu-1", &l.join), l.options(t))
	l.nodeReady(t, node.ID())
	job := runJob(t, l.api, hello("sleep 600"), structs.JobRunning)
	stopAgent(t, node)
	l.clock.forward(auth.AgentTTL + time.Hour)
	eventually.Within(t, time.Minute, "see the server renew its own", func() bool { _, over := l.server.certificates.expired(); return !over })
	again := startAgent(t, clientSettings(dir, "gpu-1", nil), l.options(t))
	if !again.certificates.certified(t.Context()) || again.ID() != node.ID() {
		t.Errorf("node %s was %s, health %+v", again.ID(), node.ID(), again.health().Client)
	}
	eventually.Within(t, time.Minute, "be well", func() bool { return again.health().Healthy })
	l.nodeReady(t, node.ID())
	// Operators hear of the new ends, not of those that are over.
	ends := map[string]structs.UnixNano{l.server.ID(): unixSeconds(l.server.certificates.end().Unix()), again.ID(): unixSeconds(again.certificates.end().Unix())}
	eventually.Within(t, time.Minute, "hear when the new certificates end", func() bool {
		list, err := l.api.Members(t.Context())
		if err != nil {
			return false
		}
		heard := map[string]structs.UnixNano{}
		for _, member := range list.Members {
			heard[member.ID] = member.CertificateEndsAt
		}
		return maps.Equal(heard, ends)
	})
	awaitJob(t, l.api, job.Job.ID, structs.JobRunning)
	if alloc := allocOf(t, l.api, job.Job.ID); alloc.Attempt != 1 || alloc.Status != structs.AllocRunning {
		t.Errorf("attempt %d is %s", alloc.Attempt, alloc.Status)
	}
	if _, err := l.api.StopJob(t.Context(), job.Job.ID, api.JobStopRequest{}); err != nil {
		t.Fatal(err)
	}
	awaitJob(t, l.api, job.Job.ID, structs.JobStopped)
}

// Past the grace nothing but a fresh join token brings a node back, as what it
// was; until then it says what is wrong, with the cure, and is not ready.
func TestNodePastTheGraceNeedsAToken(t *testing.T) {
	l := startLapsing(t, "1h")
	dir := t.TempDir()
	node := startAgent(t, clientSettings(dir, "gpu-1", &l.join), l.options(t))
	l.nodeReady(t, node.ID())
	stopAgent(t, node)
	l.clock.forward(auth.AgentTTL + 2*time.Hour)
	eventually.Within(t, time.Minute, "see the server renew its own", func() bool { _, over := l.server.certificates.expired(); return !over })
	settings := clientSettings(dir, "gpu-1", nil)
	addresses := []string{l.server.Addr()}
	settings.Client.Servers = addresses
	late := startAgent(t, settings, l.options(t))
	var refused error
	eventually.Within(t, time.Minute, "be refused for the grace", func() bool {
		_, refused = late.certificates.renew(t.Context())
		return structs.CodeOf(refused) == structs.CodeForbidden
	})
	var told *structs.Error
	if !errors.As(refused, &told) || told.ID != "agent.renew_grace" {
		t.Errorf("refused with %v", refused)
	}
	health := late.health()
	if health.Healthy || !strings.Contains(health.Client.Message, "expired") || !strings.Contains(health.Client.Message, "join token") {
		t.Errorf("health %+v", health.Client)
	}
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if late.certificates.certified(short) {
		t.Error("the agent calls itself ready")
	}
	stopAgent(t, late)
	fresh, err := l.api.CreateJoinToken(t.Context(), api.JoinTokenRequest{Role: "client"})
	if err != nil {
		t.Fatal(err)
	}
	again := startAgent(t, clientSettings(dir, "gpu-1", &fresh.Join), l.options(t))
	l.nodeReady(t, node.ID())
	if again.ID() != node.ID() {
		t.Errorf("came back as %s, was %s", again.ID(), node.ID())
	}
}

// The door renews for nobody who does not hold the key, and a join token does
// not buy the identity of somebody else.
func TestLapsedRenewalNeedsTheKey(t *testing.T) {
	l := startLapsing(t, "")
	victim := startAgent(t, clientSettings(t.TempDir(), "gpu-1", &l.join), l.options(t))
	l.nodeReady(t, victim.ID())
	held := victim.ident.Load()
	csr, _, err := auth.NewCSR(auth.RoleClient, victim.ID(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	thief := startAgent(t, clientSettings(t.TempDir(), "gpu-2", &l.join), l.options(t))
	stolen, err := thief.ident.Load().ProveKey(csr)
	if err != nil {
		t.Fatal(err)
	}
	good, err := held.ProveKey(csr)
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := auth.NewCSR(auth.RoleClient, victim.ID(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ask := l.client(t, "")
	chain := string(held.ChainPEM())
	serverProof, err := l.server.ident.Load().ProveKey(csr)
	if err != nil {
		t.Fatal(err)
	}
	for name, request := range map[string]api.RenewRequest{
		"another's key":       {Certificate: chain, CSR: string(csr), Proof: stolen},
		"no proof":            {Certificate: chain, CSR: string(csr)},
		"another request":     {Certificate: chain, CSR: string(other), Proof: good},
		"a server's identity": {Certificate: string(l.server.ident.Load().ChainPEM()), CSR: string(csr), Proof: serverProof},
		"a CA's certificate":  {Certificate: string(l.server.CA()), CSR: string(csr), Proof: good},
	} {
		if _, err := ask.RenewLapsed(t.Context(), request); structs.CodeOf(err) != structs.CodeUnauthorized {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ask.RenewLapsed(t.Context(), api.RenewRequest{Certificate: chain, CSR: string(csr), Proof: good}); err != nil {
		t.Errorf("the holder of the key: %v", err)
	}
	parsed, err := auth.ParseJoinToken(l.join)
	if err != nil {
		t.Fatal(err)
	}
	_, err = ask.Join(t.Context(), api.JoinRequest{
		TokenID: parsed.ID, Secret: parsed.Secret, Role: "client", AgentID: victim.ID(), Name: "gpu-1", CSR: string(csr), Certificate: chain, Proof: stolen,
	})
	if structs.CodeOf(err) != structs.CodeConflict {
		t.Errorf("a join as somebody else: %v", err)
	}
}

// Servers and nodes that were all down for longer than certificates live find
// together again.
func TestClusterComesBackPastItsCertificates(t *testing.T) {
	l := startLapsing(t, "")
	nodeDir := t.TempDir()
	node := startAgent(t, clientSettings(nodeDir, "gpu-1", &l.join), l.options(t))
	l.nodeReady(t, node.ID())
	settings := serverSettings(l.server.DataDir(), "server-0", 1, nil)
	settings.Ports = &config.PortsBlock{HTTP: portOf(t, l.server.Addr()), Gossip: portOf(t, l.server.gossip.Addr())}
	stopAgent(t, node)
	stopAgent(t, l.server)
	l.clock.forward(4 * auth.AgentTTL)
	again := startAgent(t, clientSettings(nodeDir, "gpu-1", nil), l.options(t)) // before there is a server
	if !strings.Contains(again.health().Client.Message, "expired") {
		t.Errorf("health %+v", again.health().Client)
	}
	l.server = startAgent(t, settings, l.options(t))
	l.nodeReady(t, node.ID())
}

// Certificates that were signed while a clock was a year ahead have not begun
// when it is right again: peers refuse them, and they are renewed at once.
func TestCertificatesOfAClockThatWentBack(t *testing.T) {
	l := startLapsing(t, "10000h")
	node := startAgent(t, clientSettings(t.TempDir(), "gpu-1", &l.join), l.options(t))
	l.nodeReady(t, node.ID())
	renewed := func(a *Agent, what string) {
		t.Helper()
		eventually.Within(t, time.Minute, what, func() bool {
			held, now := a.ident.Load(), l.clock.now()
			return !held.Early(now) && !held.Over(now)
		})
	}
	const year = 366 * 24 * time.Hour
	l.clock.forward(year)
	renewed(l.server, "see the server's certificate of the wrong time")
	renewed(node, "see the node's certificate of the wrong time")
	l.clock.forward(-year)
	if !node.ident.Load().Early(l.clock.now()) {
		t.Fatal("the node's certificate has begun: this shows nothing")
	}
	renewed(l.server, "see the server's certificate of the right time")
	renewed(node, "see the node's certificate of the right time")
	l.nodeReady(t, node.ID())
}

// Renewals exchange the identity directory: what is used up or removed in the
// meantime must not come back with the copy that they began with.
func TestRenewalBringsNoSecretBack(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	id, err := foundCluster(config.Config{DataDir: dir, Name: "server-0", Advertise: "127.0.0.1"}, "127.0.0.1:4646", now)
	if err != nil {
		t.Fatal(err)
	}
	line, err := os.ReadFile(filepath.Join(dir, identityDir, joinClient))
	if err != nil {
		t.Fatal(err)
	}
	token, err := auth.ParseJoinToken(strings.TrimSpace(string(line)))
	if err != nil {
		t.Fatal(err)
	}
	self := id.credentials.Self
	csr, key, err := auth.NewCSR(self.Role, self.ID, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	chain, err := id.sign(csr, self, now, "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(dir, identityDir, "used-secret")
	for range 20 {
		if err := os.WriteFile(secret, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		var both sync.WaitGroup
		both.Go(func() {
			if _, err := id.renewed(chain, key, nil); err != nil {
				t.Error(err)
			}
		})
		both.Go(func() {
			csr, _, err := auth.NewCSR(auth.RoleClient, "another", rand.Reader)
			if err != nil {
				t.Error(err)
				return
			}
			if err := id.UseJoinToken(&api.JoinRequest{TokenID: token.ID, Secret: token.Secret, CSR: string(csr)}, auth.RoleClient, time.Now()); err != nil {
				t.Error(err)
			}
			if err := id.forget("used-secret"); err != nil {
				t.Error(err)
			}
		})
		both.Wait()
		if _, err := os.Stat(secret); err == nil {
			t.Fatal("a removed secret came back")
		}
		kept, err := loadIdentity(dir)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := kept.printedJoin(joinClient).UsesLeft, id.printedJoin(joinClient).UsesLeft; got != want {
			t.Fatalf("%d uses of the token are left on disk, %d in memory", got, want)
		}
	}
}

package agent

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/structs"
)

// caRotated waits until every agent has a certificate of another CA than not and
// trusts that one alone.
func caRotated(t testing.TB, client *api.Client, not string) *api.Keys {
	t.Helper()
	var keys *api.Keys
	defer func() {
		if t.Failed() {
			t.Logf("CA: %+v", keys)
		}
	}()
	eventually.Within(t, time.Minute, "see the CA rotated everywhere", func() bool {
		now, err := client.Keys(t.Context(), structs.KeyCA)
		if err != nil {
			return false
		}
		keys = now
		return keys.Settled && keys.Current != not
	})
	return keys
}

// of reports whether everything that an agent holds is of one CA.
func holdsCA(t testing.TB, agent *Agent, fingerprint string) {
	t.Helper()
	if names := agent.certificates.ownCAs(); !slices.Equal(names, []string{fingerprint}) {
		t.Errorf("%s holds %v", agent.config.Name, names)
	}
	stored, err := loadIdentity(agent.DataDir())
	if err != nil {
		t.Errorf("%s: %v", agent.config.Name, err)
		return
	}
	trusted := stored.trust().Certificates()
	if len(trusted) != 1 || auth.Fingerprint(trusted[0]) != fingerprint || stored.trust().Issuer(stored.credentials.Certificate.Leaf) == nil {
		t.Errorf("%s stored %d CAs", agent.config.Name, len(trusted))
	}
	if agent.config.Server.Enabled && (stored.ca().Fingerprint() != fingerprint || stored.held.Load().stored.Offered != nil) {
		t.Errorf("%s stored another key", agent.config.Name)
	}
}

// dialsAs reports whether an agent lets somebody in who shows a certificate that
// a CA signs for it.
func dialsAs(t testing.TB, ca *auth.CA, role auth.Role, id string, agent *Agent) error {
	t.Helper()
	return forged(t, ca, role, id, agent, func(ctx context.Context, conn *rpc.Conn) error {
		_, err := rpc.Call[structs.TrustNews, structs.TrustAck](ctx, conn, structs.MethodAgentTrust, &structs.TrustNews{})
		return err
	})
}

// renewsAs reports whether such a certificate buys another one.
func renewsAs(t testing.TB, ca *auth.CA, role auth.Role, id string, agent *Agent) error {
	t.Helper()
	csr, _, err := auth.NewCSR(role, id, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return forged(t, ca, role, id, agent, func(ctx context.Context, conn *rpc.Conn) error {
		_, err := rpc.Call[structs.RenewRequest, structs.RenewReply](ctx, conn, structs.MethodServerRenew, &structs.RenewRequest{CSR: csr})
		return err
	})
}

func forged(t testing.TB, ca *auth.CA, role auth.Role, id string, agent *Agent, call func(context.Context, *rpc.Conn) error) error {
	t.Helper()
	issued, err := ca.IssueAgent(auth.Grant{Role: role, ID: id}, rand.Reader, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	credentials, err := auth.ParseCredentials(issued.ChainPEM, issued.KeyPEM, agent.CA())
	if err != nil {
		t.Fatal(err)
	}
	pool := rpc.NewPool(rpc.Dialer{Identity: rpc.NewIdentity(credentials)})
	defer pool.Close()
	conn, err := pool.Conn(rpc.Target{Addr: agent.Addr(), Expect: auth.Expect{ID: agent.ID()}})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	return call(ctx, conn)
}

// The CA is replaced on every agent while a job runs through it. The one of before
// is worth nothing afterwards: neither to whoever holds its key, nor to a removed
// node. Who joins, or signs in, with what pins it follows to the new one.
func TestCAIsRotated(t *testing.T) {
	c := startCluster(t, 3, 3)
	length := strconv.Itoa(310000 + os.Getpid())
	job := runJob(t, c.api, hello("sleep "+length), structs.JobRunning)
	alloc := allocOf(t, c.api, job.Job.ID)
	victim := c.clients[0]
	if alloc.NodeID == victim.ID() {
		victim = c.clients[1]
	}
	stolen, oldPEM := c.servers[0].identity.ca(), c.servers[0].CA()
	before, err := c.api.Keys(t.Context(), structs.KeyCA)
	if err != nil || !before.Settled || before.Current != stolen.Fingerprint() || len(before.Agents) != 6 || len(before.Past) != 0 {
		t.Fatalf("CA before %+v %v", before, err)
	}
	earlier, err := c.api.CreateJoinToken(t.Context(), api.JoinTokenRequest{Role: "client"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.api.RemoveNode(t.Context(), victim.config.Name); err != nil {
		t.Fatal(err)
	}
	<-victim.Failed()
	if err := dialsAs(t, stolen, auth.RoleServer, strings.Repeat("d", 32), c.clients[2]); err != nil {
		t.Errorf("control: before, whoever has the CA's key passes for a server: %v", err)
	}

	// It buys no certificate, which would be of the new CA in a moment: neither of
	// a server nor of a node that nobody let in.
	for _, role := range []auth.Role{auth.RoleServer, auth.RoleClient} {
		if err := renewsAs(t, stolen, role, strings.Repeat("d", 32), c.servers[0]); err == nil {
			t.Errorf("a forged %s gets a certificate", role)
		}
	}
	if err := renewsAs(t, stolen, auth.RoleClient, c.clients[2].ID(), c.servers[0]); err != nil {
		t.Errorf("control: a node renews its certificate: %v", err)
	}

	begun, err := c.api.RotateKeys(t.Context(), structs.KeyCA, false)
	if err != nil || begun.Rotation == nil {
		t.Fatalf("rotate %+v %v", begun, err)
	}
	again, err := c.api.RotateKeys(t.Context(), structs.KeyCA, false) // goes on with the first
	if err != nil || again.Rotation != nil && again.Rotation.To != begun.Rotation.To || again.Rotation == nil && again.Current != begun.Rotation.To {
		t.Fatalf("rotate again %+v %v", again, err)
	}
	after := caRotated(t, c.api, before.Current)
	if after.Current != begun.Rotation.To || len(after.Agents) != 5 || len(after.Past) != 1 || after.Past[0].Fingerprint != before.Current {
		t.Errorf("CA after %+v", after)
	}
	for _, agent := range c.all() {
		if agent == victim {
			continue
		}
		holdsCA(t, agent, after.Current)
		if dialsAs(t, stolen, auth.RoleServer, strings.Repeat("d", 32), agent) == nil {
			t.Errorf("%s believes the old CA's key", agent.config.Name)
		}
	}
	if now := allocOf(t, c.api, job.Job.ID); now.ID != alloc.ID || now.Status != structs.AllocRunning || runningSleeps(t, length) != 1 {
		t.Errorf("the job did not run through it: %+v", now)
	}
	key, err := c.servers[0].identity.ca().KeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	var backup bytes.Buffer
	if _, err := c.api.SaveSnapshot(t.Context(), &backup); err != nil {
		t.Fatal(err)
	}
	if secret := bytes.Split(key, []byte("\n"))[1]; bytes.Contains(backup.Bytes(), secret) {
		t.Error("the CA's key is in a snapshot")
	}

	// A person who remembers the old CA is let in, and told the new one.
	var learned []byte
	person, err := api.New(api.Config{Address: "https://" + c.servers[1].Addr(), CAPEM: oldPEM, Token: c.token, LearnCA: func(pem []byte) { learned = pem }})
	if err != nil {
		t.Fatal(err)
	}
	defer person.Close()
	if _, err := person.SelfToken(t.Context()); err != nil || !bytes.Equal(learned, c.servers[0].CA()) {
		t.Errorf("who remembers the old CA: %v, learned %d bytes", err, len(learned))
	}
	// Nobody else leads there: the old key cannot show the way to itself.
	issued, err := stolen.IssueAgent(auth.Grant{Role: auth.RoleServer, ID: strings.Repeat("d", 32)}, rand.Reader, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(issued.ChainPEM, issued.KeyPEM)
	if err != nil {
		t.Fatal(err)
	}
	impostor := startImpostor(t, pair)
	current, err := api.New(api.Config{Address: "https://" + impostor.addr, CAPEM: learned, RetryFor: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer current.Close()
	if _, err := current.SelfToken(t.Context()); err == nil || impostor.told.Load() != 0 {
		t.Errorf("an impostor with the old key was told %d bytes: %v", impostor.told.Load(), err)
	}

	// Join tokens of before and of today both let nodes in.
	today, err := c.api.CreateJoinToken(t.Context(), api.JoinTokenRequest{Role: "client"})
	if err != nil {
		t.Fatal(err)
	}
	for name, token := range map[string]string{"early": earlier.Join, "late": today.Join} {
		settings := clientSettings(t.TempDir(), name, &token)
		joiner := startAgent(t, settings, testOptions(t))
		holdsCA(t, joiner, after.Current)
		if name == "late" {
			continue
		}
		// Its configuration still has the token that pins the CA of before.
		stopAgent(t, joiner)
		startAgent(t, settings, testOptions(t))
	}
	if _, err := c.api.StopJob(t.Context(), job.Job.ID, api.JobStopRequest{}); err != nil {
		t.Fatal(err)
	}
	awaitJob(t, c.api, job.Job.ID, structs.JobStopped)
}

// With -revoke nothing leads from the CA of before to the new one: neither a join
// token, nor what a person remembers, nor the certificate of a node that was away.
func TestRevokedCALeadsNowhere(t *testing.T) {
	c := startCluster(t, 1, 2)
	stolen, oldPEM := c.servers[0].identity.ca(), c.servers[0].CA()
	earlier, err := c.api.CreateJoinToken(t.Context(), api.JoinTokenRequest{Role: "client"})
	if err != nil {
		t.Fatal(err)
	}
	away := c.clients[1]
	stopAgent(t, away)
	eventually.Within(t, time.Minute, "miss the node", func() bool {
		node, _, err := c.api.Node(t.Context(), away.ID(), nil)
		return err == nil && node.Status != structs.NodeReady
	})
	if _, err := c.api.RotateKeys(t.Context(), structs.KeyCA, true); err != nil {
		t.Fatal(err)
	}
	admin := func() *api.Client { // signs in anew
		client := clientFor(t, "https://"+c.servers[0].Addr(), string(c.servers[0].CA()), c.token)
		t.Cleanup(client.Close)
		return client
	}
	var after *api.Keys
	eventually.Within(t, time.Minute, "see the CA rotated", func() bool {
		after, err = admin().Keys(t.Context(), structs.KeyCA)
		return err == nil && after.Settled && after.Current != stolen.Fingerprint()
	})
	if len(after.Past) != 0 {
		t.Errorf("the CA of before is followed: %+v", after.Past)
	}
	holdsCA(t, c.servers[0], after.Current)
	holdsCA(t, c.clients[0], after.Current)

	person, err := api.New(api.Config{Address: "https://" + c.servers[0].Addr(), CAPEM: oldPEM, Token: c.token, RetryFor: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer person.Close()
	if _, err := person.SelfToken(t.Context()); structs.CodeOf(err) != structs.CodeUnauthorized {
		t.Errorf("who remembers the revoked CA: %v", err)
	}
	if _, err := joinOnce(t, clientSettings(t.TempDir(), "early", &earlier.Join)); structs.CodeOf(err) != structs.CodeUnauthorized {
		t.Errorf("a join token that pins the revoked CA: %v", err)
	}
	// The certificate of the node that was away renews nothing.
	held := away.ident.Load()
	csr, _, err := auth.NewCSR(held.Self.Role, held.Self.ID, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	proof, err := held.ProveKey(csr)
	if err != nil {
		t.Fatal(err)
	}
	_, err = admin().RenewLapsed(t.Context(), api.RenewRequest{Certificate: string(held.ChainPEM()), CSR: string(csr), Proof: proof})
	if structs.CodeOf(err) != structs.CodeUnauthorized {
		t.Errorf("a certificate of the revoked CA was renewed: %v", err)
	}
}

// A node that was away while the CA was replaced comes back by itself with what it
// had. A rotation does not begin while a server is away, which could not; a leader
// that ends in the middle is followed by one that goes on, once it is back.
func TestCAReachesWhoWasAway(t *testing.T) {
	settings, servers, node, client, admin, nodeReady := startFixed(t)
	old := servers[0].identity.ca().Fingerprint()
	stopAgent(t, client)
	eventually.Within(t, time.Minute, "miss the node", func() bool { return !nodeReady() })

	// A server is away: nothing begins, and the refusal names it.
	away := slices.IndexFunc(servers, func(a *Agent) bool { return !a.raft.IsLeader() })
	stopAgent(t, servers[away])
	eventually.Within(t, time.Minute, "be refused because of the server", func() bool {
		_, err := admin.RotateKeys(t.Context(), structs.KeyCA, false)
		var told *structs.Error
		return errors.As(err, &told) && told.ID == "agent.rotation_server_away" && told.Params["server"] != ""
	})
	settings[away].JoinToken = nil
	servers[away] = startAgent(t, settings[away], testOptions(t))

	var begun *api.Keys
	eventually.Within(t, time.Minute, "begin", func() bool {
		var err error
		begun, err = admin.RotateKeys(t.Context(), structs.KeyCA, false)
		return err == nil && begun.Rotation != nil
	})
	leader := slices.IndexFunc(servers, func(a *Agent) bool { return a.raft.IsLeader() })
	if leader >= 0 { // it may be between two
		stopAgent(t, servers[leader])
		settings[leader].JoinToken = nil
		servers[leader] = startAgent(t, settings[leader], testOptions(t))
	}
	after := caRotated(t, admin, old)
	if after.Current != begun.Rotation.To {
		t.Errorf("rotated to %s, begun with %s", after.Current, begun.Rotation.To)
	}
	for _, server := range servers {
		holdsCA(t, server, after.Current)
	}

	// The node comes back with what it had, its join token in its configuration.
	if stored, err := loadIdentity(client.DataDir()); err != nil || auth.Fingerprint(stored.trust().Certificates()[0]) != old {
		t.Fatalf("the node knows the new CA already: %v", err)
	}
	client = startAgent(t, node, testOptions(t))
	eventually.Within(t, time.Minute, "see the node ready again", nodeReady)
	holdsCA(t, client, after.Current)
	// And once more, after a second rotation of which it missed nothing.
	if _, err := admin.RotateKeys(t.Context(), structs.KeyCA, false); err != nil {
		t.Fatal(err)
	}
	twice := caRotated(t, admin, after.Current)
	holdsCA(t, client, twice.Current)
	if len(twice.Past) != 2 {
		t.Errorf("followed are %+v", twice.Past)
	}
	// What pins the very first still leads to the third.
	if pem, err := api.FetchCA(t.Context(), servers[0].Addr(), old); err != nil || !bytes.Equal(pem, servers[0].CA()) {
		t.Errorf("from the first CA: %v", err)
	}
	if _, err := os.Stat(filepath.Join(servers[0].DataDir(), identityDir, caStateFile)); err != nil {
		t.Error(err)
	}
}

// What would shut an agent out, or comes late, is not taken.
func TestCANewsAreChecked(t *testing.T) {
	c := startCluster(t, 1, 1)
	node := c.clients[0]
	certificate := func(cluster string) structs.CACertificate {
		ca, err := auth.NewCA(cluster, rand.Reader, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return caCertificate(ca)
	}
	ours := node.identity.trust().Cluster
	own := caCertificate(c.servers[0].identity.ca())
	for name, news := range map[string]caNews{
		"a CA that did not sign its certificate": {trusted: []structs.CACertificate{certificate(ours)}, index: 1 << 40},
		"a CA of another cluster":                {trusted: []structs.CACertificate{own, certificate("0ther")}, index: 1 << 40},
		"no certificate":                         {trusted: []structs.CACertificate{{Fingerprint: "x", PEM: "x"}}, index: 1 << 40},
	} {
		if err := node.certificates.takeCA(news); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	next := certificate(ours)
	if err := node.certificates.takeCA(caNews{trusted: []structs.CACertificate{own, next}, index: 1 << 40}); err != nil {
		t.Fatal(err)
	}
	if err := node.certificates.takeCA(caNews{trusted: []structs.CACertificate{own}, index: 1<<40 - 1}); err != nil || len(node.certificates.ownCAs()) != 2 {
		t.Errorf("late news: %v, trusts %v", err, node.certificates.ownCAs())
	}
	if err := node.certificates.takeCA(caNews{trusted: []structs.CACertificate{own}, index: 1<<40 + 1}); err != nil || len(node.certificates.ownCAs()) != 1 {
		t.Errorf("news: %v, trusts %v", err, node.certificates.ownCAs())
	}
	// Nor does a server use a CA whose key it does not hold.
	if err := c.servers[0].certificates.takeCA(caNews{trusted: []structs.CACertificate{next, own}, index: 1 << 40}); err == nil {
		t.Error("a server signs with a key that it does not have")
	}
}

package auth

import (
	"crypto/rand"
	"crypto/x509"
	"errors"
	"slices"
	"testing"
	"time"
)

// rotation is a CA that took the place of another, and so on.
type rotation struct {
	cas     []*CA
	crosses []*x509.Certificate // of cas[i+1], by cas[i]
}

func rotations(t *testing.T, cluster string, count int, end time.Time) rotation {
	t.Helper()
	r := rotation{cas: []*CA{newTestCA(t, cluster)}}
	for len(r.cas) < count {
		next := newTestCA(t, cluster)
		cross, err := r.cas[len(r.cas)-1].Cross(next.Certificate, end, rand.Reader, testNow)
		if err != nil {
			t.Fatal(err)
		}
		r.cas, r.crosses = append(r.cas, next), append(r.crosses, cross)
	}
	return r
}

func chainOf(t *testing.T, ca *CA, role Role, more ...*x509.Certificate) []*x509.Certificate {
	t.Helper()
	issued, err := ca.IssueAgent(Grant{Role: role, ID: serverID}, rand.Reader, testNow)
	if err != nil {
		t.Fatal(err)
	}
	certs, err := ParseCertificates(issued.ChainPEM)
	if err != nil {
		t.Fatal(err)
	}
	return append(certs, more...)
}

func trustOf(t *testing.T, cas ...*CA) *Trust {
	t.Helper()
	var text []byte
	for _, ca := range cas {
		text = append(text, ca.CertificatePEM()...)
	}
	trust, err := NewTrust("", text)
	if err != nil {
		t.Fatal(err)
	}
	return trust
}

// Whoever trusts a CA follows to the one that took its place, and from there on,
// by certificates that say so and are good now. Nothing else leads anywhere.
func TestCAsAreFollowed(t *testing.T) {
	end := testNow.Add(30 * 24 * time.Hour)
	r := rotations(t, testCluster, 3, end)
	other := rotations(t, "0ther", 2, end)
	again := newTestCA(t, testCluster) // of the same name, and nobody's
	forged, err := again.Cross(r.cas[1].Certificate, end, rand.Reader, testNow)
	if err != nil {
		t.Fatal(err)
	}
	old := trustOf(t, r.cas[0])
	for _, test := range []struct {
		name  string
		trust *Trust
		chain []*x509.Certificate
		at    time.Time
		good  bool
	}{
		{"the same CA", old, chainOf(t, r.cas[0], RoleServer), testNow, true},
		{"the next CA", old, chainOf(t, r.cas[1], RoleServer, r.crosses[0]), testNow, true},
		{"the next CA in any order", old, chainOf(t, r.cas[2], RoleServer, r.crosses[1], r.crosses[0]), testNow, true},
		{"the one after the next", old, chainOf(t, r.cas[2], RoleServer, r.crosses...), testNow, true},
		{"a gap between them", old, chainOf(t, r.cas[2], RoleServer, r.crosses[1]), testNow, false},
		{"nothing that says so", old, chainOf(t, r.cas[1], RoleServer), testNow, false},
		{"of the wrong one", old, chainOf(t, r.cas[2], RoleServer, r.crosses[0]), testNow, false},
		{"backwards", trustOf(t, r.cas[1]), chainOf(t, r.cas[0], RoleServer, r.crosses[0]), testNow, false},
		{"by a stranger of the same name", old, chainOf(t, r.cas[1], RoleServer, forged), testNow, false},
		{"by the stranger itself", old, chainOf(t, again, RoleServer, forged, again.Certificate), testNow, false},
		{"of another cluster", old, chainOf(t, other.cas[1], RoleServer, other.crosses[0], other.cas[0].Certificate), testNow, false},
		{"after its end", old, chainOf(t, r.cas[1], RoleServer, r.crosses[0]), end.Add(time.Second), false},
		{"too far behind in the chain", old, append(chainOf(t, r.cas[1], RoleServer), append(slices.Repeat([]*x509.Certificate{again.Certificate}, CrossMax), r.crosses[0])...), testNow, false},
	} {
		_, err := test.trust.Verify(test.chain, x509.ExtKeyUsageServerAuth, Expect{Role: RoleServer}, test.at)
		if (err == nil) != test.good {
			t.Errorf("%s: %v", test.name, err)
		}
		if err != nil && !errors.Is(err, ErrUntrusted) && !errors.Is(err, ErrWrongCluster) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	if !old.HasFollowed() || trustOf(t, r.cas[0]).HasFollowed() {
		t.Error("following is not told")
	}
	client := chainOf(t, r.cas[1], RoleClient, r.crosses[0])
	if _, err := old.Verify(client, x509.ExtKeyUsageServerAuth, Expect{Role: RoleServer}, testNow); !errors.Is(err, ErrWrongRole) {
		t.Errorf("a node of the next CA passes for a server: %v", err)
	}
	if _, err := r.cas[0].Cross(other.cas[0].Certificate, end, rand.Reader, testNow); !errors.Is(err, ErrWrongCluster) {
		t.Errorf("the CA of another cluster is certified: %v", err)
	}
	// A certificate that says "in my place" is no agent's.
	if _, err := old.Verify([]*x509.Certificate{r.crosses[0]}, x509.ExtKeyUsageServerAuth, Expect{}, testNow); !errors.Is(err, ErrUntrusted) {
		t.Errorf("a CA passes for an agent: %v", err)
	}
}

// A joiner that pins the CA of before gets in, and is told the one of today.
func TestPinnedCAIsFollowed(t *testing.T) {
	r := rotations(t, testCluster, 2, testNow.Add(time.Hour))
	chain := chainOf(t, r.cas[1], RoleServer, r.crosses[0], r.cas[0].Certificate)
	for _, ca := range r.cas {
		shown, peer, err := verifyPinned(chain, ca.Fingerprint(), testNow)
		if err != nil || Fingerprint(shown) != r.cas[1].Fingerprint() || peer.Role != RoleServer {
			t.Errorf("pinned %s: %v %v", ca.Fingerprint()[:8], peer, err)
		}
	}
	if _, _, err := verifyPinned(chain, r.cas[0].Fingerprint(), testNow.Add(2*time.Hour)); !errors.Is(err, ErrUntrusted) {
		t.Errorf("pinned after its end: %v", err)
	}
	if _, _, err := verifyPinned(chain[:2], r.cas[0].Fingerprint(), testNow); !errors.Is(err, ErrWrongCA) {
		t.Errorf("pinned what is not shown: %v", err)
	}
	hidden := append([]*x509.Certificate{chain[0]}, chain[2:]...)
	if _, _, err := verifyPinned(hidden, r.cas[0].Fingerprint(), testNow); !errors.Is(err, ErrUntrusted) {
		t.Errorf("the new CA is not shown: %v", err)
	}
}

package auth

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// Role is what an agent is in its cluster. The role in an agent's
// certificate decides which RPCs it may call.
type Role string

// The roles of agents.
const (
	RoleServer Role = "server"
	RoleClient Role = "client"
)

// Valid reports whether r is one of the roles above.
func (r Role) Valid() bool { return r == RoleServer || r == RoleClient }

// identityScheme is the scheme of identity URIs, and caPath the path of the
// URI that a CA certificate carries to name its cluster.
const (
	identityScheme = "nomadlike"
	caPath         = "/ca"
	idLengthMax    = 64 // bytes of a cluster or agent id
)

// Identity names an agent of a cluster, as its certificate proves it.
type Identity struct {
	Cluster string // the cluster's id
	Role    Role   // server or client
	ID      string // the agent's id, unique in the cluster
}

// String is the identity's URI, nomadlike://<cluster>/<role>/<id>.
func (i Identity) String() string {
	return identityScheme + "://" + i.Cluster + "/" + string(i.Role) + "/" + i.ID
}

// Validate refuses identities that could not stand in a certificate.
func (i Identity) Validate() error {
	switch {
	case !validID(i.Cluster):
		return fmt.Errorf("check identity: %q is no cluster id", i.Cluster)
	case !i.Role.Valid():
		return fmt.Errorf("check identity: %q is no role", i.Role)
	case !validID(i.ID):
		return fmt.Errorf("check identity: %q is no agent id", i.ID)
	}
	return nil
}

// validID accepts lower-case letters, digits and inner '-': ids that mean
// the same as URI host, file name and log word, without any escaping.
func validID(id string) bool {
	if id == "" || len(id) > idLengthMax || id[0] == '-' || id[len(id)-1] == '-' {
		return false
	}
	for i := 0; i < len(id); i++ {
		c := id[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// Refusals of a peer's certificate. Each is returned (wrapped) by the
// handshakes of tls.go, so errors.Is finds the reason at the caller.
var (
	// ErrNoIdentity is returned when a certificate carries no identity of
	// ours, or more than one, or one that is not in its only spelling.
	ErrNoIdentity = errors.New("certificate carries no agent identity")
	// ErrUntrusted is returned when a certificate does not chain to a CA of
	// the cluster, is expired, not yet valid, or made for another use.
	ErrUntrusted = errors.New("certificate is not trusted")
	// ErrWrongCluster is returned when the peer belongs to another cluster.
	ErrWrongCluster = errors.New("peer is in another cluster")
	// ErrWrongRole is returned when the peer's role may not be here.
	ErrWrongRole = errors.New("peer has the wrong role")
	// ErrWrongPeer is returned when another agent answers than was called.
	ErrWrongPeer = errors.New("peer is another agent")
	// ErrWrongCA is returned when a pinned CA is not in the peer's chain.
	ErrWrongCA = errors.New("peer does not have the pinned CA")
)

// ParseIdentity reads the identity in an agent's certificate. It does not
// check signatures: only call it on a certificate that was verified, or use
// Trust.Verify. There must be exactly one URI, in its canonical spelling.
func ParseIdentity(cert *x509.Certificate) (Identity, error) {
	if len(cert.URIs) != 1 {
		return Identity{}, fmt.Errorf("parse identity: %w: %d URIs", ErrNoIdentity, len(cert.URIs))
	}
	return parseIdentityURI(cert.URIs[0])
}

func parseIdentityURI(uri *url.URL) (Identity, error) {
	role, id, found := strings.Cut(strings.TrimPrefix(uri.Path, "/"), "/")
	identity := Identity{Cluster: uri.Host, Role: Role(role), ID: id}
	// Comparing with the canonical text refuses user info, ports, escapes,
	// queries, fragments and other schemes without naming each of them.
	if !found || uri.String() != identity.String() || identity.Validate() != nil {
		return Identity{}, fmt.Errorf("parse identity %q: %w", uri.String(), ErrNoIdentity)
	}
	return identity, nil
}

// ClusterOf reads the cluster's id from its CA certificate, or "" when the
// certificate does not name one (an external CA).
func ClusterOf(ca *x509.Certificate) string {
	if len(ca.URIs) != 1 {
		return ""
	}
	uri := ca.URIs[0]
	if !validID(uri.Host) || uri.String() != identityScheme+"://"+uri.Host+caPath {
		return ""
	}
	return uri.Host
}

func clusterURI(cluster string) *url.URL {
	return &url.URL{Scheme: identityScheme, Host: cluster, Path: caPath}
}

func (i Identity) uri() *url.URL {
	return &url.URL{Scheme: identityScheme, Host: i.Cluster, Path: "/" + string(i.Role) + "/" + i.ID}
}

package directory

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-ldap/ldap/v3"

	"nomadlike/internal/eventually"
)

const (
	suffix   = "dc=corp,dc=example"
	rootDN   = "cn=root," + suffix
	rootWord = "the root's word"
	searcher = "cn=nomadlike,ou=services," + suffix
)

// entries are whom and what the directory of the tests knows. Passwords are NAME's word.
const entries = `
dn: dc=corp,dc=example
objectClass: domain
dc: corp

dn: ou=people,dc=corp,dc=example
objectClass: organizationalUnit
ou: people

dn: ou=groups,dc=corp,dc=example
objectClass: organizationalUnit
ou: groups

dn: ou=services,dc=corp,dc=example
objectClass: organizationalUnit
ou: services

dn: cn=nomadlike,ou=services,dc=corp,dc=example
objectClass: organizationalRole
objectClass: simpleSecurityObject
cn: nomadlike
userPassword: searcher's word

dn: uid=ann,ou=people,dc=corp,dc=example
objectClass: inetOrgPerson
uid: Ann
cn: Ann Lee
sn: Lee
mail: ann@corp.example
userPassword: ann's word

dn: uid=bob,ou=people,dc=corp,dc=example
objectClass: inetOrgPerson
uid: bob
cn: Bob
sn: Bob
userPassword: bob's word

dn: cn=twin1,ou=people,dc=corp,dc=example
objectClass: inetOrgPerson
uid: twin
cn: twin1
sn: Twin
userPassword: twin's word

dn: cn=twin2,ou=people,dc=corp,dc=example
objectClass: inetOrgPerson
uid: twin
cn: twin2
sn: Twin
userPassword: twin's word

dn: ou=elsewhere,ou=people,dc=corp,dc=example
objectClass: referral
objectClass: extensibleObject
ou: elsewhere
ref: ldap://127.0.0.1:1/ou=elsewhere,ou=people,dc=corp,dc=example

dn: cn=ml,ou=groups,dc=corp,dc=example
objectClass: groupOfNames
cn: ml
member: uid=ann,ou=people,dc=corp,dc=example

dn: cn=research,ou=groups,dc=corp,dc=example
objectClass: groupOfNames
cn: research
member: cn=ml,ou=groups,dc=corp,dc=example
member: cn=everything,ou=groups,dc=corp,dc=example

dn: cn=everything,ou=groups,dc=corp,dc=example
objectClass: groupOfNames
cn: everything
member: cn=research,ou=groups,dc=corp,dc=example

dn: cn=posix,ou=groups,dc=corp,dc=example
objectClass: posixGroup
cn: posix
gidNumber: 1000
memberUid: ann
`

// slapd is OpenLDAP's server, run by a test on loopback.
type slapd struct {
	t          *testing.T
	dir        string
	plain, tls string // addresses of servers
}

// start runs a slapd with the entries above.
func start(t *testing.T) *slapd {
	t.Helper()
	program, err := exec.LookPath("/usr/sbin/slapd")
	if err != nil {
		t.Fatalf("%v: install the package slapd", err)
	}
	s := &slapd{t: t, dir: t.TempDir()}
	s.certify()
	s.write("slapd.conf", fmt.Sprintf(`include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/nis.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
moduleload memberof
pidfile %[1]s/pid
TLSCertificateFile %[1]s/cert.pem
TLSCertificateKeyFile %[1]s/key.pem
database mdb
suffix %[2]q
rootdn %[3]q
rootpw %[4]q
directory %[1]s/data
maxsize 16777216
overlay memberof
access to attrs=userPassword by anonymous auth by * none
access to * by dn.exact=%[5]q read by self read by anonymous auth by * none
`, s.dir, suffix, rootDN, rootWord, searcher), 0o600)
	if err := os.Mkdir(filepath.Join(s.dir, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.plain, s.tls = "ldap://127.0.0.1:"+freePort(t), "ldaps://127.0.0.1:"+freePort(t)
	var out bytes.Buffer
	run := exec.Command(program, "-f", filepath.Join(s.dir, "slapd.conf"), "-h", s.plain+" "+s.tls, "-d", "0") //nolint:gosec // a test's own
	run.Stdout, run.Stderr = &out, &out
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = run.Process.Signal(syscall.SIGTERM)
		_ = run.Wait()
		if t.Failed() {
			t.Logf("slapd: %s", out.String())
		}
	})
	eventually.Within(t, 30*time.Second, "slapd answers", func() bool {
		c, err := ldap.DialURL(s.plain)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	for _, text := range strings.Split(strings.TrimSpace(entries), "\n\n") { // by the protocol, so that memberOf is kept
		lines := strings.Split(text, "\n")
		dn := strings.TrimPrefix(lines[0], "dn: ")
		add := ldap.NewAddRequest(dn, nil)
		values := make(map[string][]string)
		var names []string
		for _, line := range lines[1:] {
			name, value, _ := strings.Cut(line, ": ")
			if values[name] == nil {
				names = append(names, name)
			}
			values[name] = append(values[name], value)
		}
		for _, name := range names {
			add.Attribute(name, values[name])
		}
		if strings.Contains(text, "referral") {
			add.Controls = []ldap.Control{ldap.NewControlManageDsaIT(true)}
		}
		s.admin(func(c *ldap.Conn) error { return c.Add(add) })
	}
	return s
}

// admin changes the directory as its root.
func (s *slapd) admin(do func(*ldap.Conn) error) {
	s.t.Helper()
	c, err := ldap.DialURL(s.plain)
	if err == nil {
		defer c.Close()
		if err = c.Bind(rootDN, rootWord); err == nil {
			err = do(c)
		}
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// member has somebody belong to a group, or not.
func (s *slapd) member(group, dn string, belongs bool) {
	s.t.Helper()
	s.admin(func(c *ldap.Conn) error {
		change := ldap.NewModifyRequest("cn="+group+",ou=groups,"+suffix, nil)
		if belongs {
			change.Add("member", []string{dn})
		} else {
			change.Delete("member", []string{dn})
		}
		return c.Modify(change)
	})
}

func (s *slapd) write(name, text string, mode os.FileMode) string {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// certify makes the server's certificate, which is its own CA, and another's CA.
func (s *slapd) certify() {
	s.t.Helper()
	for _, name := range []string{"other", "cert"} {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			s.t.Fatal(err)
		}
		template := &x509.Certificate{
			SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		}
		der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
		if err != nil {
			s.t.Fatal(err)
		}
		private, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			s.t.Fatal(err)
		}
		s.write(name+".pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), 0o600)
		s.write("key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})), 0o600)
	}
}

// config is how a cluster would be told of the directory.
func (s *slapd) config(change ...func(*Config)) Config {
	s.t.Helper()
	c := Config{
		Name: "company", Servers: []string{s.tls}, StartTLS: true, CAFile: filepath.Join(s.dir, "cert.pem"), Timeout: 20 * time.Second,
		BindDN: searcher, BindPasswordFile: s.write("password", "searcher's word\n", 0o600),
		Users:  Users{Base: "ou=people," + suffix, Filter: "(&(objectClass=person)(uid={name}))", Subject: "entryUUID", Name: "uid", DisplayName: "cn", Email: "mail"},
		Groups: Groups{Filter: "(|(member={dn})(memberUid={name}))", Attribute: "memberOf", Nested: true},
	}
	for _, one := range change {
		one(&c)
	}
	return c
}

func (s *slapd) directory(change ...func(*Config)) *Directory {
	s.t.Helper()
	return New(s.config(change...), slog.New(slog.DiscardHandler))
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

package directories

import (
	"bytes"
	"fmt"
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

// What slapd knows.
const (
	Suffix   = "dc=corp,dc=example"
	Searcher = "cn=nomadlike,ou=services," + Suffix // whose password is SearcherWord

	SearcherWord = "searcher's word"

	slapdProgram = "/usr/sbin/slapd"

	rootDN   = "cn=root," + Suffix
	rootWord = "the root's word"
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

// Slapd is OpenLDAP's server, run by a test on loopback. It knows ann, bob and twins in
// ou=people, whose passwords are NAME's word, and groups in ou=groups: ann is in ml, which
// is in research, which is in a circle with everything.
type Slapd struct {
	certified
	Plain, TLS string // addresses of servers

	run *exec.Cmd
	out bytes.Buffer
}

// StartSlapd runs a slapd until the test ends.
func StartSlapd(t testing.TB) *Slapd {
	t.Helper()
	if _, err := exec.LookPath(slapdProgram); err != nil {
		t.Fatalf("%v: install the package slapd", err)
	}
	s := &Slapd{certified: certify(t, net.IPv4(127, 0, 0, 1))}
	s.Write("slapd.conf", fmt.Sprintf(`include /etc/ldap/schema/core.schema
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
`, s.Dir, Suffix, rootDN, rootWord, Searcher), 0o600)
	if err := os.Mkdir(filepath.Join(s.Dir, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.Plain, s.TLS = "ldap://127.0.0.1:"+FreePort(t), "ldaps://127.0.0.1:"+FreePort(t)
	t.Cleanup(func() {
		s.Stop()
		if t.Failed() {
			t.Logf("slapd: %s", s.out.String())
		}
	})
	s.Start()
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
		s.Admin(func(c *ldap.Conn) error { return c.Add(add) })
	}
	return s
}

// Start runs the server again after Stop, at the same addresses.
func (s *Slapd) Start() {
	s.t.Helper()
	s.run = exec.Command(slapdProgram, "-f", filepath.Join(s.Dir, "slapd.conf"), "-h", s.Plain+" "+s.TLS, "-d", "0") // a test's own
	s.run.Stdout, s.run.Stderr = &s.out, &s.out
	if err := s.run.Start(); err != nil {
		s.t.Fatal(err)
	}
	eventually.Within(s.t, 30*time.Second, "slapd answers", func() bool {
		c, err := ldap.DialURL(s.Plain)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
}

// Stop ends the server.
func (s *Slapd) Stop() {
	if s.run == nil || s.run.ProcessState != nil {
		return
	}
	_ = s.run.Process.Signal(syscall.SIGTERM)
	_ = s.run.Wait()
}

// Admin changes the directory as its root.
func (s *Slapd) Admin(do func(*ldap.Conn) error) {
	s.t.Helper()
	c, err := ldap.DialURL(s.Plain)
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

// Member has somebody belong to a group, or not.
func (s *Slapd) Member(group, dn string, belongs bool) {
	s.t.Helper()
	s.Admin(func(c *ldap.Conn) error {
		change := ldap.NewModifyRequest("cn="+group+",ou=groups,"+Suffix, nil)
		if belongs {
			change.Add("member", []string{dn})
		} else {
			change.Delete("member", []string{dn})
		}
		return c.Modify(change)
	})
}

// FreePort is a port of loopback that nobody listens at.
func FreePort(t testing.TB) string {
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

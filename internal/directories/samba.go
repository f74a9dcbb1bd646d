package directories

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/go-ldap/ldap/v3"

	"nomadlike/internal/eventually"
)

// Domain is what Samba is the controller of.
const Domain = "DC=corp,DC=example"

const (
	administrator = "CN=Administrator,CN=Users," + Domain
	adminWord     = "Administrator's 1st word"
)

// Values of attributes (MS-ADTS, sections 2.2.12 and 2.2.16).
const (
	securityGroup     = "-2147483646" // global
	distributionGroup = "2"
	normalAccount     = 0x200
	keepsPassword     = 0x10000 // for good
)

// Samba is the domain controller of Samba, run by a test on loopback. It knows ann, bob and
// nomadlike, which searches, in the unit people: passwords are Word of the name. Groups are in
// the unit groups: ann is in ml and in friends, which is for mail alone; ml is in research, which is
// in a circle with everything; staff is the primary group of bob, and in research.
type Samba struct {
	certified
	TLS, Plain string // addresses of servers
}

// StartSamba founds a domain and runs its controller until the test ends.
func StartSamba(t testing.TB) *Samba {
	t.Helper()
	for _, program := range []string{"samba", "samba-tool"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%v: install the packages samba-ad-dc and samba-ad-provision", err)
		}
	}
	at := net.IPv4(127, 1+byte(rand.IntN(250)), byte(rand.IntN(256)), 1+byte(rand.IntN(250)))
	s := &Samba{certified: certify(t, at), TLS: "ldaps://" + at.String(), Plain: "ldap://" + at.String()}
	dc := filepath.Join(s.Dir, "dc")
	found := exec.CommandContext(t.Context(), "samba-tool", "domain", "provision", "--realm=CORP.EXAMPLE", "--domain=CORP", "--server-role=dc", "--dns-backend=NONE", // a test's own
		"--adminpass="+adminWord, "--targetdir="+dc, "--host-name=dc1", "--host-ip="+at.String(), "--option=server services=ldap",
		"--option=interfaces="+at.String()+"/8", "--option=bind interfaces only=yes", "--option=log file="+filepath.Join(s.Dir, "log"), "--option=pid directory="+s.Dir,
		"--option=tls certfile="+filepath.Join(s.Dir, "cert.pem"), "--option=tls keyfile="+filepath.Join(s.Dir, "key.pem"), "--option=tls cafile="+filepath.Join(s.Dir, "cert.pem"))
	if out, err := found.CombinedOutput(); err != nil {
		t.Fatalf("found a domain, which root may: %v\n%s", err, out)
	}
	var out bytes.Buffer
	run := exec.Command("samba", "--foreground", "--no-process-group", "--model=single", "--configfile="+filepath.Join(dc, "etc", "smb.conf")) // a test's own
	run.Stdout, run.Stderr = &out, &out
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = run.Process.Signal(syscall.SIGTERM)
		_ = run.Wait()
		if t.Failed() {
			t.Logf("samba: %s", out.String())
		}
	})
	eventually.Within(t, time.Minute, "the domain controller answers", func() bool {
		c, err := ldap.DialURL(s.TLS, ldap.DialWithTLSConfig(s.trust()))
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	s.settle()
	return s
}

// settle makes whom and what the domain knows.
func (s *Samba) settle() {
	s.t.Helper()
	for _, unit := range []string{"people", "groups"} {
		s.add("OU="+unit+","+Domain, map[string][]string{"objectClass": {"organizationalUnit"}})
	}
	s.Person("nomadlike", nil)
	s.Person("ann", map[string][]string{"displayName": {"Ann Lee"}, "mail": {"ann@corp.example"}})
	s.Person("bob", nil)
	for _, name := range []string{"staff", "ml", "research", "everything", "friends"} {
		kind := securityGroup
		if name == "friends" {
			kind = distributionGroup
		}
		s.add(Entry("groups", name), map[string][]string{"objectClass": {"group"}, "sAMAccountName": {name}, "groupType": {kind}})
	}
	for _, one := range [][2]string{
		{Entry("people", "ann"), "ml"},
		{Entry("people", "ann"), "friends"},
		{Entry("groups", "ml"), "research"},
		{Entry("groups", "research"), "everything"},
		{Entry("groups", "everything"), "research"}, // a circle
		{Entry("people", "bob"), "staff"},
		{Entry("groups", "staff"), "research"},
	} {
		s.Change(Entry("groups", one[1]), "member", one[0], false)
	}
	s.Change(Entry("people", "bob"), "primaryGroupID", s.relative(Entry("groups", "staff")), true)
}

// Entry is the name of an entry of a unit.
func Entry(of, name string) string { return "CN=" + name + ",OU=" + of + "," + Domain }

// Admin changes the domain as its administrator.
func (s *Samba) Admin(do func(*ldap.Conn) error) {
	s.t.Helper()
	c, err := ldap.DialURL(s.TLS, ldap.DialWithTLSConfig(s.trust()))
	if err == nil {
		defer c.Close()
		if err = c.Bind(administrator, adminWord); err == nil {
			err = do(c)
		}
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *Samba) add(dn string, attributes map[string][]string) {
	s.t.Helper()
	add := ldap.NewAddRequest(dn, nil)
	for name, values := range attributes {
		add.Attribute(name, values)
	}
	s.Admin(func(c *ldap.Conn) error { return c.Add(add) })
}

// Person adds an account that may sign in, with further attributes.
func (s *Samba) Person(name string, more map[string][]string) {
	s.t.Helper()
	attributes := map[string][]string{
		"objectClass": {"user"}, "sAMAccountName": {name}, "userPrincipalName": {name + "@corp.example"},
		"unicodePwd": {windowsPassword(Word(name))}, "userAccountControl": {strconv.Itoa(normalAccount | keepsPassword)},
	}
	for key, values := range more {
		attributes[key] = values
	}
	s.add(Entry("people", name), attributes)
}

// Change replaces an attribute of an entry, or adds to it.
func (s *Samba) Change(dn, attribute, value string, replace bool) {
	s.t.Helper()
	change := ldap.NewModifyRequest(dn, nil)
	if replace {
		change.Replace(attribute, []string{value})
	} else {
		change.Add(attribute, []string{value})
	}
	s.Admin(func(c *ldap.Conn) error { return c.Modify(change) })
}

// relative is the last part of the identifier of an entry.
func (s *Samba) relative(dn string) string {
	id := s.ID(dn)
	return strconv.FormatUint(uint64(binary.LittleEndian.Uint32(id[len(id)-4:])), 10)
}

// ID is the identifier of an entry, in binary.
func (s *Samba) ID(dn string) (id []byte) {
	s.t.Helper()
	s.Admin(func(c *ldap.Conn) error {
		read, err := c.Search(ldap.NewSearchRequest(dn, ldap.ScopeBaseObject, ldap.NeverDerefAliases, 1, 0, false, "(objectClass=*)", []string{"objectSid"}, nil))
		if err == nil {
			id = read.Entries[0].GetRawAttributeValue("objectSid")
		}
		return err
	})
	return id
}

// Word is the password of an account.
func Word(name string) string { return name + "'s 1st word" }

// windowsPassword spells a password as unicodePwd takes it.
func windowsPassword(password string) string {
	var text strings.Builder
	for _, unit := range utf16.Encode([]rune(`"` + password + `"`)) {
		text.Write(binary.LittleEndian.AppendUint16(nil, unit))
	}
	return text.String()
}

// Aged has an account's password be older than the domain lets one be. No directory lets
// anybody write when a password was chosen, so it is written into the database.
func (s *Samba) Aged(name string) {
	s.t.Helper()
	const program = `
import ldb, sys
db = ldb.Ldb(sys.argv[1])
db.modify(ldb.Message.from_dict(db, {"dn": sys.argv[2], "pwdLastSet": "116444736000000000"}, ldb.FLAG_MOD_REPLACE))
`
	write := exec.CommandContext(s.t.Context(), "/usr/bin/python3", "-c", program, filepath.Join(s.Dir, "dc", "private", "sam.ldb.d", strings.ToUpper(Domain)+".ldb"), Entry("people", name)) // a test's own
	if out, err := write.CombinedOutput(); err != nil {
		s.t.Fatalf("%v\n%s", err, out)
	}
}

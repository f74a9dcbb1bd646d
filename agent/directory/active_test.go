package directory

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-ldap/ldap/v3"

	"nomadlike/internal/directories"
)

// domain is Samba's domain controller, and how a cluster would be told of it.
type domain struct{ *directories.Samba }

func startDomain(t *testing.T) domain {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a domain controller listens at ports of root")
	}
	return domain{directories.StartSamba(t)}
}

// directory is as the configuration has it where nothing but the kind is said.
func (s domain) directory(change ...func(*Config)) *Directory {
	c := Config{
		Name: "company", Servers: []string{s.TLS}, StartTLS: true, CAFile: s.CA(), Timeout: 20 * time.Second, Active: true,
		BindDN: directories.Entry("people", "nomadlike"), BindPasswordFile: s.Write("password", directories.Word("nomadlike"), 0o600),
		Users: Users{
			Base: directories.Domain, Filter: "(&(objectCategory=person)(objectClass=user)(|(sAMAccountName={name})(userPrincipalName={name})))",
			Subject: "objectGUID", Name: "sAMAccountName", DisplayName: "displayName", Email: "mail",
		},
		Groups: Groups{Filter: "(member={dn})", Attribute: TokenGroups, Nested: true},
	}
	for _, one := range change {
		one(&c)
	}
	return New(c, slog.New(slog.DiscardHandler))
}

func TestActiveDirectory(t *testing.T) {
	s := startDomain(t)
	t.Run("groups", func(t *testing.T) { activeGroups(t, s) })
	t.Run("names", func(t *testing.T) { activeNames(t, s) })
	t.Run("accounts that are kept out", func(t *testing.T) { activeRefusals(t, s) })
}

// activeGroups: whichever way groups are read, the primary one and groups of groups count.
func activeGroups(t *testing.T, s domain) {
	in := func(name string) string { return directories.Entry("groups", name) }
	users, builtin := "CN=Domain Users,CN=Users,"+directories.Domain, "CN=Users,CN=Builtin,"+directories.Domain
	walked := func(c *Config) { c.Groups.Attribute = "memberOf" }
	searched := func(c *Config) { c.Groups.Base = directories.Domain }
	flat := func(c *Config) { c.Groups.Nested = false }
	chain := func(c *Config) { c.Groups.Filter = "(member:1.2.840.113556.1.4.1941:={dn})" }
	for _, c := range []struct {
		what, name string
		change     []func(*Config)
		want       []string
	}{
		{"tokenGroups", "ann", nil, []string{in("ml"), in("research"), in("everything"), users, builtin}},
		{"tokenGroups", "bob", nil, []string{in("staff"), in("research"), in("everything"), users, builtin}},
		{"memberOf", "ann", []func(*Config){walked}, []string{in("ml"), in("research"), in("everything"), in("friends"), users, builtin}},
		{"memberOf", "bob", []func(*Config){walked}, []string{in("staff"), in("research"), in("everything"), users, builtin}},
		{"memberOf, one level", "ann", []func(*Config){walked, flat}, []string{in("ml"), in("friends"), users}},
		{"a search", "ann", []func(*Config){searched}, []string{in("ml"), in("research"), in("everything"), in("friends"), users, builtin}},
		{"a search in the chain", "ann", []func(*Config){searched, chain, flat}, []string{in("ml"), in("research"), in("everything"), in("friends"), users, builtin}},
		{"a search in the chain", "bob", []func(*Config){searched, chain, flat}, []string{in("staff"), in("research"), in("everything"), users, builtin}},
	} {
		who, err := s.directory(c.change...).Ask(t.Context(), c.name, directories.Word(c.name), anybody)
		if err != nil {
			t.Fatalf("%s of %s: %v, by %v", c.what, c.name, err, errors.Unwrap(err))
		}
		var named, ids []string
		for _, group := range who.Groups {
			if strings.HasPrefix(group, "S-1-") {
				ids = append(ids, group)
			} else {
				named = append(named, group)
			}
		}
		slices.Sort(named)
		slices.Sort(c.want)
		if !slices.Equal(named, c.want) {
			t.Errorf("%s of %s: %q, want %q", c.what, c.name, named, c.want)
		}
		primary := sid(s.ID(users)).String()
		if c.name == "bob" {
			primary = sid(s.ID(in("staff"))).String()
		}
		if !slices.Contains(ids, primary) {
			t.Errorf("%s of %s: the primary group %s is not among %q", c.what, c.name, primary, ids)
		}
		if research := sid(s.ID(in("research"))).String(); c.what == "tokenGroups" && (!slices.Contains(ids, research) || len(ids) != len(named)) {
			t.Errorf("%s of %s: %s is not among %q, or others are", c.what, c.name, research, ids)
		}
	}
}

// activeNames: people are found by the name of before Windows 2000, with the domain or
// without, and by the one that looks like an address.
func activeNames(t *testing.T, s domain) {
	subjects := make(map[string]bool)
	for _, name := range []string{"ann", "ANN", `CORP\ann`, "ann@corp.example", "Ann@CORP.example"} {
		who := asked(t, s.directory(), name, directories.Word("ann"))
		subjects[who.Subject] = true
		if len(who.Subject) != 36 || who.Name != "ann" || who.DisplayName != "Ann Lee" || who.Email != "ann@corp.example" {
			t.Errorf("%q is %+v", name, who)
		}
	}
	if len(subjects) != 1 {
		t.Errorf("one person is %v", subjects)
	}
	for _, c := range [][2]string{
		{"ann", "a guess"},
		{"nobody", "a guess"},
		{"*", directories.Word("ann")},
		{"a*", directories.Word("ann")},
		{`CORP\`, "x"},
		{`CORP\*`, directories.Word("ann")},
		{"ann)(cn=*", directories.Word("ann")},
		{"ann@other.example", directories.Word("ann")},
		{"ann", ""},
		{`\ann`, "a guess"},
		{"DC1$", "a guess"},
	} {
		if _, err := s.directory().Ask(t.Context(), c[0], c[1], anybody); idOf(err) != "auth.directory_wrong" {
			t.Errorf("%q with %q: %v, by %v", c[0], c[1], err, errors.Unwrap(err))
		}
	}
}

// activeRefusals: whoever knows the password is told why the directory keeps the account
// out; whoever guesses is not, but that it is locked.
func activeRefusals(t *testing.T, s domain) {
	set := func(name, attribute, value string) {
		s.Change(directories.Entry("people", name), attribute, value, true)
	}
	for name, c := range map[string]struct {
		attribute, value, want string
	}{
		"disabled": {control, "66050", "auth.directory_disabled"},                           // 0x10200 and ACCOUNTDISABLE
		"expired":  {expires, "116444736000000000", "auth.directory_expired"},               // 1970
		"chooses":  {control, "512", "auth.directory_password_reset"},                       // and pwdLastSet below
		"stale":    {control, "512", "auth.directory_password_expired"},                     // and Aged below
		"night":    {"logonHours", strings.Repeat("\x00", 21), "auth.directory_restricted"}, // never
	} {
		s.Person(name, nil)
		set(name, c.attribute, c.value)
		if name == "chooses" {
			set(name, "pwdLastSet", "0")
		}
	}
	s.Aged("stale")
	s.Change(directories.Domain, "lockoutThreshold", "3", true)
	s.Person("locked", nil)
	d := s.directory()
	guess := func(name, password string) string {
		_, err := d.Ask(t.Context(), name, password, anybody)
		return idOf(err)
	}
	for name, want := range map[string]string{
		"disabled": "auth.directory_disabled", "expired": "auth.directory_expired", "chooses": "auth.directory_password_reset", "stale": "auth.directory_password_expired",
		"night": "auth.directory_restricted", "locked": "",
	} {
		if got := guess(name, directories.Word(name)); got != want {
			t.Errorf("%s, with the password: %q, want %q", name, got, want)
		}
		if got := guess(name, "a guess"); got != "auth.directory_wrong" {
			t.Errorf("%s, by a guess: %q", name, got)
		}
	}
	for range 3 {
		guess("locked", "a guess")
	}
	for _, password := range []string{directories.Word("locked"), "a guess"} {
		if got := guess("locked", password); got != "auth.directory_locked" {
			t.Errorf("locked: %q", got)
		}
	}
}

// What Active Directory itself writes, by its documentation, and what it is not.
func TestBindRefusals(t *testing.T) {
	said := func(data string) string {
		return "80090308: LdapErr: DSID-0C09044E, comment: AcceptSecurityContext error, data " + data + ", v2580\x00"
	}
	for data, want := range map[string]bar{
		"525": notBarred, "52e": notBarred, "530": restricted, "531": restricted, "532": passwordExpired, "533": disabled,
		"701": expired, "773": passwordReset, "775": locked, "7751": notBarred, "": notBarred, "57": notBarred,
	} {
		if got := bindRefusal(&ldap.Error{ResultCode: ldap.LDAPResultInvalidCredentials, Err: errors.New(said(data))}); got != want {
			t.Errorf("data %s is %q, want %q", data, got, want)
		}
	}
	for _, other := range []*ldap.Error{
		{ResultCode: ldap.LDAPResultInvalidCredentials, Err: errors.New("data 533")}, {ResultCode: ldap.LDAPResultBusy, Err: errors.New(said("533"))}, {ResultCode: ldap.LDAPResultInvalidCredentials},
	} {
		if got := bindRefusal(other); got != notBarred {
			t.Errorf("%v is %q", other, got)
		}
	}
}

// A directory that lets an account bind which it should keep out is not believed.
func TestBarredBy(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	ticks := func(at time.Time) string { return fmt.Sprint((at.Unix() + 11_644_473_600) * 10_000_000) }
	for _, c := range []struct {
		want       bar
		attributes map[string]string
	}{
		{"", nil},
		{"", map[string]string{control: "512", computed: "0", expires: "0"}},
		{"", map[string]string{control: "66048", expires: "9223372036854775807"}},
		{"", map[string]string{expires: ticks(now.Add(time.Second))}},
		{"", map[string]string{control: "what is no number", expires: "-1"}},
		{expired, map[string]string{expires: ticks(now)}},
		{expired, map[string]string{expires: "1"}},
		{disabled, map[string]string{control: "514", computed: "16"}},
		{locked, map[string]string{control: "512", computed: "16"}},
		{passwordExpired, map[string]string{control: "512", computed: "8388608"}},
	} {
		entry := &ldap.Entry{}
		for name, value := range c.attributes {
			entry.Attributes = append(entry.Attributes, ldap.NewEntryAttribute(name, []string{value}))
		}
		if got := barredBy(entry, now); got != c.want {
			t.Errorf("%v: %q, want %q", c.attributes, got, c.want)
		}
	}
}

func TestSIDs(t *testing.T) {
	own := sid{1, 5, 0, 0, 0, 0, 0, 5, 21, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0x80, 255, 255, 255, 255, 0x50, 4, 0, 0}
	if got, want := own.String(), "S-1-5-21-67305985-2147483648-4294967295-1104"; !own.valid() || got != want {
		t.Errorf("it is %s, want %s", got, want)
	}
	if got, want := own.sibling(513).String(), "S-1-5-21-67305985-2147483648-4294967295-513"; got != want || own.String() == want {
		t.Errorf("its sibling is %s, want %s", got, want)
	}
	if got, want := (sid{1, 1, 0, 0, 0, 0, 0, 5, 11, 0, 0, 0}).filter(), `(objectSid=\01\01\00\00\00\00\00\05\0b\00\00\00)`; got != want {
		t.Errorf("it is searched by %s", got)
	}
	for _, raw := range []sid{nil, {1}, own[:8], own[:27], append(slices.Clone(own), 0), append(sid{2}, own[1:]...), {1, 0, 0, 0, 0, 0, 0, 5}, append(sid{1, 16, 0, 0, 0, 0, 0, 5}, make(sid, 64)...)} {
		if raw.valid() {
			t.Errorf("%v is taken for an identifier", []byte(raw))
		}
	}
}

func TestDomainOf(t *testing.T) {
	for dn, want := range map[string]string{
		"CN=Ann Lee,OU=people,DC=eu,DC=corp,DC=example": "DC=eu,DC=corp,DC=example", `CN=Lee\, Ann,OU=DC\=x,DC=corp`: "DC=corp", "cn=ann,o=lab": "", "no name": "", "": "",
	} {
		if got := domainOf(dn); !strings.EqualFold(got, want) {
			t.Errorf("%s is in %q, want %q", dn, got, want)
		}
	}
}

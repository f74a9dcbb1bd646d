package directory

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-ldap/ldap/v3"

	"nomadlike/internal/directories"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/structs"
)

func anybody(string) error { return nil }

// idOf is the id of a refusal, "" for none.
func idOf(err error) string {
	var told *structs.Error
	if errors.As(err, &told) {
		return told.ID
	}
	if err != nil {
		return "an error: " + err.Error()
	}
	return ""
}

func asked(t *testing.T, d *Directory, name, password string) *auth.External {
	t.Helper()
	who, err := d.Ask(t.Context(), name, password, anybody)
	if err != nil {
		t.Fatalf("%s: %v, by %v", name, err, errors.Unwrap(err))
	}
	slices.Sort(who.Groups)
	return who
}

func group(name string) string { return "cn=" + name + ",ou=groups," + directories.Suffix }

// searchGroups has groups searched instead of read from people's entries.
func searchGroups(c *Config) { c.Groups.Base = "ou=groups," + directories.Suffix }

func oneLevel(c *Config) { c.Groups.Nested = false }

func TestSlapdAnswers(t *testing.T) {
	s := startSlapd(t)
	nested := []string{group("everything"), group("ml"), group("research")}
	for what, c := range map[string]struct {
		change []func(*Config)
		groups []string
	}{
		"ldaps, groups of entries":        {nil, nested},
		"groups of entries, one level":    {[]func(*Config){oneLevel}, []string{group("ml")}},
		"groups by search, with a circle": {[]func(*Config){searchGroups}, append([]string{group("posix")}, nested...)},
		"groups by search, one level":     {[]func(*Config){searchGroups, oneLevel}, []string{group("ml"), group("posix")}},
		"StartTLS":                        {[]func(*Config){func(c *Config) { c.Servers = []string{s.Plain} }}, nested},
		"no TLS, where that is said":      {[]func(*Config){func(c *Config) { c.Servers, c.StartTLS, c.Insecure = []string{s.Plain}, false, true }}, nested},
		"the second server": {[]func(*Config){func(c *Config) {
			c.Servers = []string{"ldaps://127.0.0.1:" + directories.FreePort(t), s.TLS}
		}}, nested},
		"as themselves": {[]func(*Config){oneLevel, func(c *Config) {
			c.BindDN, c.BindPasswordFile, c.Users.Base, c.UserDN = "", "", "", "uid={name},ou=people,"+directories.Suffix
		}}, []string{group("ml")}},
	} {
		who := asked(t, s.directory(c.change...), "ann", "ann's word")
		slices.Sort(c.groups)
		if len(who.Subject) != 36 || who.Name != "Ann" || who.DisplayName != "Ann Lee" || who.Email != "ann@corp.example" || !slices.Equal(who.Groups, c.groups) {
			t.Errorf("%s: ann is %+v, want groups %v", what, who, c.groups)
		}
	}
	// Another name keeps the subject; another person with the name has another.
	d := s.directory()
	before := asked(t, d, "bob", "bob's word").Subject
	s.Admin(func(c *ldap.Conn) error {
		return c.ModifyDN(ldap.NewModifyDNRequest("uid=bob,ou=people,"+directories.Suffix, "uid=rob", true, ""))
	})
	if after := asked(t, d, "rob", "bob's word"); after.Subject != before || after.Name != "rob" {
		t.Errorf("renamed, bob is %+v, before %s", after, before)
	}
	s.Member("ml", "uid=rob,ou=people,"+directories.Suffix, true)
	if who := asked(t, d, "rob", "bob's word"); len(who.Groups) != 3 {
		t.Errorf("in ml, bob has %v", who.Groups)
	}
	s.Member("ml", "uid=rob,ou=people,"+directories.Suffix, false)
	if who := asked(t, d, "rob", "bob's word"); len(who.Groups) != 0 {
		t.Errorf("out of ml, bob has %v", who.Groups)
	}
}

// Whatever is wrong with name or password reads the same.
func TestSlapdRefuses(t *testing.T) {
	s := startSlapd(t)
	themselves := func(c *Config) {
		c.BindDN, c.BindPasswordFile, c.Users.Base, c.UserDN = "", "", "", "uid={name},ou=people,"+directories.Suffix
	}
	for _, c := range []struct{ name, password string }{
		{"ann", "bob's word"},
		{"ann", ""},
		{"", "ann's word"},
		{"nobody", "ann's word"},
		{"twin", "twin's word"},
		{"*", "ann's word"},
		{"an*", "ann's word"},
		{"ann)(uid=*", "ann's word"},
		{"*)(|(uid=ann", "ann's word"},
		{"ann)(!(x=y", "ann's word"},
		{"x)(cn=nomadlike", "searcher's word"},
		{"ann,ou=people", "ann's word"},
		{"ann\x00", "ann's word"},
		{`\61nn`, "ann's word"},
		{"ann+cn=x", "ann's word"},
		{"elsewhere", "ann's word"},
		{"nomadlike", "searcher's word"},
		{"ann", strings.Repeat("x", 4096)},
	} {
		for what, d := range map[string]*Directory{"searched": s.directory(), "as themselves": s.directory(themselves)} {
			if what == "as themselves" && c.name == "twin" {
				continue
			}
			if _, err := d.Ask(t.Context(), c.name, c.password, anybody); idOf(err) != "auth.directory_wrong" {
				t.Errorf("%q with %.20q, %s: %v by %v", c.name, c.password, what, err, errors.Unwrap(err))
			}
		}
	}
	// Before the password is tried, the caller hears who is meant, and may end it.
	stop := errors.New("that is enough")
	heard := ""
	_, err := s.directory().Ask(t.Context(), "ann", "a guess", func(subject string) error {
		heard = subject
		return structs.NewError(structs.CodeUnauthorized, "auth.sign_in_wait").Because(stop)
	})
	if !errors.Is(err, stop) || heard == "" {
		t.Errorf("after %q was heard: %v", heard, err)
	}
}

// What is wrong with the directory is no word about anybody.
func TestDirectoriesThatCannotBeAsked(t *testing.T) {
	s := startSlapd(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for what, change := range map[string]func(*Config){
		"another CA":              func(c *Config) { c.CAFile = s.Dir + "/other.pem" },
		"another CA, by StartTLS": func(c *Config) { c.CAFile, c.Servers = s.Dir+"/other.pem", []string{s.Plain} },
		"a CA of nothing":         func(c *Config) { c.CAFile = s.Dir + "/slapd.conf" },
		"another name":            func(c *Config) { c.Servers = []string{strings.Replace(s.TLS, "127.0.0.1", "localhost", 1)} },
		"no TLS":                  func(c *Config) { c.Servers, c.StartTLS = []string{s.Plain}, false },
		"nobody there":            func(c *Config) { c.Servers = []string{"ldaps://127.0.0.1:" + directories.FreePort(t)} },
		"nobody answers": func(c *Config) {
			c.Servers, c.Timeout = []string{"ldaps://" + silent.Addr().String()}, 300*time.Millisecond
		},
		"nobody answers, StartTLS": func(c *Config) {
			c.Servers, c.Timeout = []string{"ldap://" + silent.Addr().String()}, 300*time.Millisecond
		},
		"a wrong word":             func(c *Config) { c.BindPasswordFile = s.Write("wrong", "guess", 0o600) },
		"a word that others read":  func(c *Config) { c.BindPasswordFile = s.Write("open", "searcher's word", 0o644) },
		"an empty word":            func(c *Config) { c.BindPasswordFile = s.Write("empty", "\n", 0o600) },
		"no subject":               func(c *Config) { c.Users.Subject = "employeeNumber" },
		"a base of another server": func(c *Config) { c.Users.Base = "ou=elsewhere,ou=people," + directories.Suffix },
		"no such base":             func(c *Config) { c.Users.Base = "ou=nowhere," + directories.Suffix },
	} {
		began := time.Now()
		_, err := s.directory(change).Ask(t.Context(), "ann", "ann's word", anybody)
		if idOf(err) != "auth.directory_away" {
			t.Errorf("%s: %v", what, err)
		}
		if cause := fmt.Sprint(errors.Unwrap(err)); strings.Contains(cause, "'s word") {
			t.Errorf("%s: the log tells a password: %s", what, cause)
		}
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("%s took %s", what, took)
		}
	}
}

func TestSubjectOf(t *testing.T) {
	guid := []byte{0x33, 0x22, 0x11, 0x00, 0x55, 0x44, 0x77, 0x66, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}
	for want, raw := range map[string][]byte{
		"00112233-4455-6677-8899-aabbccddeeff": guid, "exactly 16 bytes": []byte("exactly 16 bytes"), "": nil, "0f": []byte("0f"),
	} {
		if got := subjectOf(raw); got != want {
			t.Errorf("%q is %q, want %q", raw, got, want)
		}
	}
}

func TestFold(t *testing.T) {
	same := []string{"cn=ML Team,ou=Groups,dc=x", "CN=ml team, OU=groups, DC=X"}
	if Fold(same[0]) != Fold(same[1]) {
		t.Errorf("%s and %s are two", Fold(same[0]), Fold(same[1]))
	}
	for _, other := range []string{"cn=ML,ou=Groups,dc=x", "cn=ML Team,ou=Groups", `cn=ML Team\,ou\=Groups,dc=x`, "ML Team"} {
		if Fold(other) == Fold(same[0]) {
			t.Errorf("%s is taken for %s", other, same[0])
		}
	}
}

package directory

import (
	"log/slog"
	"testing"
	"time"

	"nomadlike/internal/directories"
)

// slapd is OpenLDAP's server, and how a cluster would be told of it.
type slapd struct{ *directories.Slapd }

func startSlapd(t *testing.T) slapd {
	t.Helper()
	return slapd{directories.StartSlapd(t)}
}

func (s slapd) config(change ...func(*Config)) Config {
	c := Config{
		Name: "company", Servers: []string{s.TLS}, StartTLS: true, CAFile: s.CA(), Timeout: 20 * time.Second,
		BindDN: directories.Searcher, BindPasswordFile: s.Write("password", directories.SearcherWord+"\n", 0o600),
		Users:  Users{Base: "ou=people," + directories.Suffix, Filter: "(&(objectClass=person)(uid={name}))", Subject: "entryUUID", Name: "uid", DisplayName: "cn", Email: "mail"},
		Groups: Groups{Filter: "(|(member={dn})(memberUid={name}))", Attribute: "memberOf", Nested: true},
	}
	for _, one := range change {
		one(&c)
	}
	return c
}

func (s slapd) directory(change ...func(*Config)) *Directory {
	return New(s.config(change...), slog.New(slog.DiscardHandler))
}

package auth

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nomadlike/nomadlike/structs"
)

var testNow = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestTokenText(t *testing.T) {
	text, err := GenerateToken(TokenUser, bytes.NewReader(make([]byte, secretBytes)))
	if err != nil {
		t.Fatal(err)
	}
	// The form is public: scanners of leaked secrets look for it.
	const want = "nl_user_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaas3dpm2q"
	if text != want {
		t.Errorf("token is %s, want %s", text, want)
	}
}

func TestParseToken(t *testing.T) {
	for _, kind := range []TokenKind{TokenManagement, TokenUser, TokenSetup} {
		text, err := GenerateToken(kind, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseToken(text)
		if err != nil || got != kind {
			t.Fatalf("parse %s: %s, %v", text, got, err)
		}
		// Any one changed character is noticed, without asking a server.
		for i := range text {
			changed := []byte(text)
			changed[i] ^= 1
			if _, err := ParseToken(string(changed)); err == nil {
				t.Fatalf("accepted %q for %q", changed, text)
			} else if strings.Contains(err.Error(), string(changed)) {
				t.Fatal("the error repeats the secret")
			}
		}
	}
	for _, text := range []string{"", "nl_", "nl_user_", "nl__", "Bearer x", strings.Repeat("a", 1<<16)} {
		if _, err := ParseToken(text); err == nil {
			t.Errorf("accepted %.20q", text)
		}
	}
	if _, err := GenerateToken("root", rand.Reader); err == nil {
		t.Error("made a token of an unknown kind")
	}
	if _, err := GenerateToken(TokenUser, bytes.NewReader(nil)); err == nil {
		t.Error("made a token without randomness")
	}
}

func TestTokenMatches(t *testing.T) {
	text, err := GenerateToken(TokenUser, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	hash := HashToken(text)
	if !TokenMatches(hash, text) {
		t.Error("the token does not match its own hash")
	}
	for name, bad := range map[string][]byte{"nil": nil, "empty": {}, "short": hash[:31], "another": HashToken("x")} {
		if TokenMatches(bad, text) {
			t.Errorf("matches a hash that is %s", name)
		}
	}
	if TokenMatches(nil, "") {
		t.Error("nothing matches nothing")
	}
}

func TestTokenPrincipal(t *testing.T) {
	cases := []struct {
		name  string
		token structs.Token
		want  Principal
		id    string
	}{
		{
			"user",
			structs.Token{ID: "t", User: "li", Role: "user", Project: "vision"},
			Principal{Kind: KindUser, ID: "li", Role: RoleUser, Project: "vision"},
			"",
		},
		{
			"admin without a name",
			structs.Token{ID: "t", Role: "admin"},
			Principal{Kind: KindUser, ID: "t", Role: RoleAdmin},
			"",
		},
		{
			"not yet expired",
			structs.Token{ID: "t", Role: "admin", ExpiresAt: structs.At(testNow) + 1},
			Principal{Kind: KindUser, ID: "t", Role: RoleAdmin},
			"",
		},
		{"just expired", structs.Token{ID: "t", Role: "admin", ExpiresAt: structs.At(testNow)}, Principal{}, "auth.token_expired"},
		{"no role", structs.Token{ID: "t", User: "li"}, Principal{}, "auth.token_invalid"},
		{"unknown role", structs.Token{ID: "t", Role: "root"}, Principal{}, "auth.token_invalid"},
		{"user of no project", structs.Token{ID: "t", Role: "user"}, Principal{}, "auth.token_invalid"},
		{"admin of a project", structs.Token{ID: "t", Role: "admin", Project: "vision"}, Principal{}, "auth.token_invalid"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := TokenPrincipal(&c.token, testNow)
			var id string
			if err != nil {
				id = err.ID
			}
			if diff := cmp.Diff(c.want, got); diff != "" || id != c.id {
				t.Errorf("error %q, want %q; principal (-want +got):\n%s", id, c.id, diff)
			}
		})
	}
}

func newJoinToken(t *testing.T, role Role, uses int) (JoinToken, *structs.JoinToken) {
	t.Helper()
	token, stored, err := GenerateJoinToken(strings.Repeat("ab", 32), "[::1]:4646", role, uses, time.Hour, rand.Reader, testNow)
	if err != nil {
		t.Fatal(err)
	}
	return token, stored
}

func TestJoinTokenRoundTrip(t *testing.T) {
	token, stored := newJoinToken(t, RoleClient, 1)
	got, err := ParseJoinToken(token.String())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(token, got); diff != "" {
		t.Fatal(diff)
	}
	if bytes.Contains(stored.Hash, []byte(token.Secret)) || len(stored.Hash) != 32 {
		t.Error("the record must hold the hash alone")
	}
	token.Addr = ""
	if got, err := ParseJoinToken(token.String()); err != nil || got != token {
		t.Errorf("without address: %v, %v", got, err)
	}
}

func TestJoinTokenKeepsItsSecret(t *testing.T) {
	token, _ := newJoinToken(t, RoleClient, 1)
	config := struct{ Join JoinToken }{token}
	encoded, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	var logged bytes.Buffer
	for _, handler := range []slog.Handler{slog.NewTextHandler(&logged, nil), slog.NewJSONHandler(&logged, nil)} {
		slog.New(handler).Info("start", "token", token, "config", config)
	}
	outputs := []string{
		string(encoded), logged.String(), fmt.Sprint(token), fmt.Sprintf("%+v %#v %s %q %x", config, config, token, token, token),
		fmt.Errorf("join: %v", token).Error(),
	}
	for _, output := range outputs {
		if strings.Contains(output, token.Secret) || strings.Contains(output, fmt.Sprintf("%x", token.Secret)) {
			t.Errorf("the secret is in %s", output)
		}
		if !strings.Contains(output, token.ID) {
			t.Errorf("the id is not in %s", output)
		}
	}
	if _, err := ParseJoinToken(fmt.Sprint(token)); err == nil {
		t.Error("a hidden token parses")
	}
	if got := fmt.Sprint(JoinToken{}); got != "" {
		t.Errorf("no token shows as %q", got)
	}
}

func TestParseJoinTokenRefuses(t *testing.T) {
	token, _ := newJoinToken(t, RoleClient, 1)
	good := token.String()
	head, _, _ := strings.Cut(good, "@")
	cases := map[string]string{
		"empty":              "",
		"other version":      "nl2" + good[3:],
		"upper-case":         strings.ToUpper(good),
		"short fingerprint":  strings.Replace(good, "ab.", ".", 1),
		"missing part":       strings.Replace(good, ".", "", 1),
		"extra part":         "nl1.x" + good[3:],
		"short secret":       head[:len(head)-1],
		"empty address":      head + "@",
		"address w/o port":   head + "@host",
		"port 0":             head + "@host:0",
		"port too high":      head + "@host:65536",
		"url":                head + "@https://host:1",
		"two addresses":      good + "@host:1",
		"address with space": head + "@ho st:1",
		"newline":            good + "\n",
	}
	for name, text := range cases {
		if got, err := ParseJoinToken(text); err == nil {
			t.Errorf("%s: accepted as %+v", name, got)
		} else if text != "" && strings.Contains(err.Error(), token.Secret) {
			t.Errorf("%s: the error repeats the secret", name)
		}
	}
}

func TestGenerateJoinTokenRefuses(t *testing.T) {
	fingerprint := strings.Repeat("ab", 32)
	cases := map[string]struct {
		fingerprint, addr string
		role              Role
		uses              int
		ttl               time.Duration
	}{
		"no role":         {fingerprint, "h:1", "", 1, time.Hour},
		"no uses":         {fingerprint, "h:1", RoleClient, 0, time.Hour},
		"negative uses":   {fingerprint, "h:1", RoleClient, -2, time.Hour},
		"no life":         {fingerprint, "h:1", RoleClient, 1, 0},
		"bad fingerprint": {"ab", "h:1", RoleClient, 1, time.Hour},
		"bad address":     {fingerprint, "h", RoleClient, 1, time.Hour},
	}
	for name, c := range cases {
		if _, _, err := GenerateJoinToken(c.fingerprint, c.addr, c.role, c.uses, c.ttl, rand.Reader, testNow); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestCheckJoin(t *testing.T) {
	token, fresh := newJoinToken(t, RoleClient, 1)
	with := func(change func(*structs.JoinToken)) *structs.JoinToken {
		stored := *fresh
		change(&stored)
		return &stored
	}
	cases := []struct {
		name   string
		stored *structs.JoinToken
		secret string
		role   Role
		now    time.Time
		want   string
	}{
		{"fresh", fresh, token.Secret, RoleClient, testNow, ""},
		{"last moment", fresh, token.Secret, RoleClient, testNow.Add(time.Hour - 1), ""},
		{"unlimited", with(func(s *structs.JoinToken) { s.UsesLeft = JoinUsesUnlimited }), token.Secret, RoleClient, testNow, ""},
		{"expired", fresh, token.Secret, RoleClient, testNow.Add(time.Hour), "auth.join_expired"},
		{"without expiry", with(func(s *structs.JoinToken) { s.ExpiresAt = 0 }), token.Secret, RoleClient, testNow, "auth.join_expired"},
		{"used up", with(func(s *structs.JoinToken) { s.UsesLeft = 0 }), token.Secret, RoleClient, testNow, "auth.join_used_up"},
		{"broken count", with(func(s *structs.JoinToken) { s.UsesLeft = -7 }), token.Secret, RoleClient, testNow, "auth.join_used_up"},
		{"node token for a server", fresh, token.Secret, RoleServer, testNow, "auth.join_role"},
		{"no role", with(func(s *structs.JoinToken) { s.Role = "" }), token.Secret, "", testNow, "auth.join_role"},
		{"unknown", nil, token.Secret, RoleClient, testNow, "auth.join_unknown"},
		{"wrong secret", fresh, "x", RoleClient, testNow, "auth.join_unknown"},
		{"wrong secret, expired", fresh, "x", RoleClient, testNow.Add(time.Hour), "auth.join_unknown"},
		{"no secret, no hash", with(func(s *structs.JoinToken) { s.Hash = nil }), "", RoleClient, testNow, "auth.join_unknown"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var got string
			if err := CheckJoin(c.stored, c.secret, c.role, c.now); err != nil {
				got = err.ID
			}
			if got != c.want {
				t.Errorf("answer %q, want %q", got, c.want)
			}
		})
	}
}

func FuzzParseToken(f *testing.F) {
	text, err := GenerateToken(TokenManagement, bytes.NewReader(bytes.Repeat([]byte{7}, secretBytes)))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add("nl_user_" + strings.Repeat("a", 59))
	f.Fuzz(func(t *testing.T, text string) {
		kind, err := ParseToken(text)
		if err == nil && !strings.HasPrefix(text, "nl_"+string(kind)+"_") {
			t.Fatalf("%q parsed as %s", text, kind)
		}
	})
}

func FuzzParseJoinToken(f *testing.F) {
	f.Add("nl1." + strings.Repeat("ab", 32) + ".0123456789abcdef." + strings.Repeat("a", 52) + "@[::1]:4646")
	f.Add("nl1....@:1")
	f.Fuzz(func(t *testing.T, text string) {
		token, err := ParseJoinToken(text)
		if err == nil && token.String() != text {
			t.Fatalf("%q reads as %q", text, token.String())
		}
	})
}

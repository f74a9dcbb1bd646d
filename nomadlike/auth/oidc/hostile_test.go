package oidc

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"nomadlike/nomadlike/auth"
)

// liar is a provider that says over real sockets what a test wants it to say.
type liar struct {
	*httptest.Server
	mu       sync.Mutex
	keys     map[string]*rsa.PrivateKey // that it publishes, by their id
	metadata map[string]any             // beside what every provider announces
	token    func(claims map[string]any) string
	claims   map[string]any // beside the ordinary ones; nil takes one away
	userinfo any
	fetched  int // how often its keys were
	nonce    string
}

const liarSecret = "the-client-secret"

func newLiar(t *testing.T) (*liar, Config) {
	t.Helper()
	l := &liar{keys: map[string]*rsa.PrivateKey{"first": newKey(t)}, claims: map[string]any{}, metadata: map[string]any{}}
	l.token = func(claims map[string]any) string { return l.sign(t, claims, "first", l.keys["first"], jose.RS256) }
	l.Server = httptest.NewTLSServer(http.HandlerFunc(l.serve))
	t.Cleanup(l.Close)
	return l, Config{
		Name: "platform", Issuer: l.URL, ClientID: "cluster", ClientSecret: liarSecret, NameClaim: "preferred_username",
		Transport: l.Client().Transport, Now: time.Now, Rand: rand.Text,
	}
}

func newKey(t *testing.T) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (l *liar) sign(t *testing.T, claims map[string]any, id string, key any, algorithm jose.SignatureAlgorithm) string {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: jose.JSONWebKey{Key: key, KeyID: id}}, nil)
	if err != nil {
		t.Error(err)
		return ""
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Error(err)
		return ""
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		t.Error(err)
		return ""
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		t.Error(err)
	}
	return text
}

func (l *liar) serve(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var body any
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		said := map[string]any{
			"issuer": l.URL, "authorization_endpoint": l.URL + "/auth", "token_endpoint": l.URL + "/token", "jwks_uri": l.URL + "/keys",
			"userinfo_endpoint": l.URL + "/userinfo", "id_token_signing_alg_values_supported": []string{"RS256", "HS256", "none"},
		}
		maps.Copy(said, l.metadata)
		body = said
	case "/keys":
		l.fetched++
		var set jose.JSONWebKeySet
		for id, key := range l.keys {
			set.Keys = append(set.Keys, jose.JSONWebKey{Key: key.Public(), KeyID: id, Use: "sig"})
		}
		body = set
	case "/token":
		now := time.Now().Unix()
		claims := map[string]any{
			"iss": l.URL, "aud": "cluster", "sub": "1234", "iat": now, "exp": now + 300, "nonce": l.nonce,
			"preferred_username": "ada", "name": "Ada", "groups": []string{"vision"},
		}
		for name, value := range l.claims {
			claims[name] = value
			if value == nil {
				delete(claims, name)
			}
		}
		body = map[string]any{"access_token": "access", "token_type": "Bearer", "id_token": l.token(claims)}
	case "/userinfo":
		body = l.userinfo
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}

// finish signs in at the liar.
func (l *liar) finish(t *testing.T, p *Provider) (*auth.External, error) {
	t.Helper()
	_, pending, err := p.Begin(t.Context(), "https://cluster.test/sign-in/platform")
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	l.nonce = pending.Nonce
	l.mu.Unlock()
	return p.Finish(t.Context(), pending, &Answer{Code: "code", State: pending.State})
}

func TestTokensThatDoNotHold(t *testing.T) {
	now := time.Now().Unix()
	stranger := newKey(t)
	unsigned := func(claims map[string]any) string {
		payload, _ := json.Marshal(claims)
		return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + base64.RawURLEncoding.EncodeToString(payload) + "."
	}
	for name, try := range map[string]struct {
		claims map[string]any
		token  func(*liar) func(map[string]any) string
		want   string
	}{
		"as it should be":                      {},
		"of another issuer":                    {claims: map[string]any{"iss": "https://evil.test"}, want: "oidc.wrong_issuer"},
		"for another client":                   {claims: map[string]any{"aud": "another"}, want: "oidc.wrong_audience"},
		"for several clients, nobody's":        {claims: map[string]any{"aud": []string{"cluster", "another"}}, want: "oidc.wrong_audience"},
		"for several clients, another's":       {claims: map[string]any{"aud": []string{"cluster", "another"}, "azp": "another"}, want: "oidc.wrong_audience"},
		"for several clients, ours":            {claims: map[string]any{"aud": []string{"cluster", "another"}, "azp": "cluster"}},
		"of another sign-in":                   {claims: map[string]any{"nonce": "another"}, want: "oidc.wrong_nonce"},
		"without a nonce":                      {claims: map[string]any{"nonce": nil}, want: "oidc.wrong_nonce"},
		"over, by more than clocks may differ": {claims: map[string]any{"iat": now - 300, "exp": now - 90}, want: "oidc.wrong_time"},
		"over, as clocks may differ":           {claims: map[string]any{"iat": now - 300, "exp": now - 30}},
		"of tomorrow":                          {claims: map[string]any{"iat": now + 90, "exp": now + 300}, want: "oidc.wrong_time"},
		"of a clock ahead":                     {claims: map[string]any{"iat": now + 30, "exp": now + 300}},
		"of yesterday":                         {claims: map[string]any{"iat": now - 86400}, want: "oidc.wrong_time"},
		"not good yet":                         {claims: map[string]any{"nbf": now + 90}, want: "oidc.wrong_time"},
		"without an end":                       {claims: map[string]any{"exp": nil}, want: "oidc.wrong_time"},
		"of nobody":                            {claims: map[string]any{"sub": nil}, want: "oidc.wrong_subject"},
		"of a name with a line end":            {claims: map[string]any{"sub": "a\nb"}, want: "oidc.wrong_subject"},
		"with the hash of another token":       {claims: map[string]any{"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"}, want: "oidc.wrong_token"},
		"unsigned": {
			token: func(*liar) func(map[string]any) string { return unsigned }, want: "oidc.wrong_signature",
		},
		"signed with the client's secret": {
			token: func(l *liar) func(map[string]any) string {
				return func(c map[string]any) string {
					return l.sign(t, c, "first", []byte(liarSecret+strings.Repeat("x", 32)), jose.HS256)
				}
			}, want: "oidc.wrong_signature",
		},
		"signed by a stranger": {
			token: func(l *liar) func(map[string]any) string {
				return func(c map[string]any) string { return l.sign(t, c, "first", stranger, jose.RS256) }
			}, want: "oidc.wrong_signature",
		},
		"signed by another algorithm than announced": {
			token: func(l *liar) func(map[string]any) string {
				return func(c map[string]any) string { return l.sign(t, c, "first", l.keys["first"], jose.RS512) }
			}, want: "oidc.wrong_signature",
		},
		"no token": {
			token: func(*liar) func(map[string]any) string { return func(map[string]any) string { return "" } }, want: "oidc.wrong_token",
		},
		"an endless token": {
			token: func(*liar) func(map[string]any) string {
				return func(map[string]any) string { return strings.Repeat("x", idTokenMax+1) }
			}, want: "oidc.wrong_token",
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, config := newLiar(t)
			maps.Copy(l.claims, try.claims)
			if try.token != nil {
				l.token = try.token(l)
			}
			who, err := l.finish(t, New(config))
			if failed(err) != try.want || (try.want == "") != (who != nil && who.Name == "ada") {
				t.Errorf("%v, %v; want %q", who, err, try.want)
			}
		})
	}
}

func TestWhatAProviderAnnounces(t *testing.T) {
	for name, metadata := range map[string]map[string]any{
		"another issuer":                 {"issuer": "https://evil.test"},
		"a token endpoint without TLS":   {"token_endpoint": "http://provider.test/token"},
		"keys without TLS":               {"jwks_uri": "http://provider.test/keys"},
		"a page that is a script":        {"authorization_endpoint": "javascript:alert(1)"},
		"algorithms without public keys": {"id_token_signing_alg_values_supported": []string{"HS256", "none"}},
		"more than anybody reads":        {"noise": strings.Repeat("x", answerMax)},
	} {
		l, config := newLiar(t)
		maps.Copy(l.metadata, metadata)
		if _, _, err := New(config).Begin(t.Context(), "https://cluster.test/sign-in/platform"); failed(err) != "oidc.unreachable" {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Whoever announces that it says who it is must say so (RFC 9207).
	l, config := newLiar(t)
	l.metadata["authorization_response_iss_parameter_supported"] = true
	if _, err := l.finish(t, New(config)); failed(err) != "oidc.wrong_issuer" {
		t.Errorf("an answer that hides its issuer: %v", err)
	}
}

// Keys are rotated: an unknown one has them fetched again, and many unknown ones do not
// have them fetched again and again.
func TestKeysAreRotated(t *testing.T) {
	l, config := newLiar(t)
	now := time.Now()
	config.Now = func() time.Time { return now }
	p := New(config)
	if _, err := l.finish(t, p); err != nil {
		t.Fatal(err)
	}
	old, second := l.keys["first"], newKey(t)
	l.keys = map[string]*rsa.PrivateKey{"second": second}
	l.token = func(c map[string]any) string { return l.sign(t, c, "second", second, jose.RS256) }
	now = now.Add(keysEvery)
	if _, err := l.finish(t, p); err != nil || l.fetched != 2 {
		t.Fatalf("with a new key: %v, keys fetched %d times", err, l.fetched)
	}
	l.token = func(c map[string]any) string { return l.sign(t, c, "first", old, jose.RS256) }
	for range 5 {
		if _, err := l.finish(t, p); failed(err) != "oidc.wrong_signature" {
			t.Errorf("with the key before: %v", err)
		}
	}
	if l.fetched != 2 {
		t.Errorf("keys were fetched %d times for a key that is unknown", l.fetched)
	}
}

func TestClaims(t *testing.T) {
	for name, try := range map[string]struct {
		change   func(*Config)
		claims   map[string]any
		userinfo any
		want     auth.External
		refused  string
	}{
		"the rest from userinfo": {
			claims: map[string]any{"preferred_username": nil, "name": nil, "groups": nil}, userinfo: map[string]any{"sub": "1234", "preferred_username": "eve", "name": "Eve", "groups": "one", "nonce": "x"},
			want: auth.External{Name: "eve", DisplayName: "Eve", Groups: []string{"one"}},
		},
		"userinfo of another": {
			claims: map[string]any{"name": nil}, userinfo: map[string]any{"sub": "5678", "name": "Eve"}, refused: "oidc.wrong_subject",
		},
		"userinfo changes nothing that is signed": {
			claims: map[string]any{"name": nil}, userinfo: map[string]any{"sub": "1234", "preferred_username": "root", "groups": []string{"admins"}},
			want: auth.External{Name: "ada", Groups: []string{"vision"}},
		},
		"an address that is verified": {
			claims: map[string]any{"email": "ada@example.com", "email_verified": "true"}, want: auth.External{Name: "ada", DisplayName: "Ada", Email: "ada@example.com", Groups: []string{"vision"}},
		},
		"an address that is not": {
			claims: map[string]any{"email": "root@example.com"}, want: auth.External{Name: "ada", DisplayName: "Ada", Groups: []string{"vision"}},
		},
		"named by an address that is not verified": {
			change: func(c *Config) { c.NameClaim = "email" }, claims: map[string]any{"email": "root@example.com", "email_verified": false}, refused: "oidc.no_name",
		},
		"without a name": {
			claims: map[string]any{"preferred_username": 7}, refused: "oidc.no_name",
		},
		"groups within objects": {
			change: func(c *Config) { c.GroupsClaim = "realm_access.roles" }, claims: map[string]any{"realm_access": map[string]any{"roles": []any{"b", "a", 3, "b", "c\n"}}},
			want: auth.External{Name: "ada", DisplayName: "Ada", Groups: []string{"a", "b"}},
		},
		"a name with control characters is not shown": {
			claims: map[string]any{"name": "Ada\x1b[31m"}, want: auth.External{Name: "ada", Groups: []string{"vision"}},
		},
	} {
		l, config := newLiar(t)
		maps.Copy(l.claims, try.claims)
		l.userinfo = try.userinfo
		if try.userinfo == nil {
			l.userinfo = map[string]any{"sub": "1234"}
		}
		if try.change != nil {
			try.change(&config)
		}
		who, err := l.finish(t, New(config))
		if failed(err) != try.refused {
			t.Errorf("%s: %v; want %q", name, err, try.refused)
			continue
		}
		if try.want.Name != "" {
			try.want.Subject = "1234"
			if who == nil || fmt.Sprint(*who) != fmt.Sprint(try.want) {
				t.Errorf("%s: %+v; want %+v", name, who, try.want)
			}
		}
	}
}

// Redirects carry a code or a secret to nobody.
func TestNoRedirects(t *testing.T) {
	asked := 0
	elsewhere := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	t.Cleanup(elsewhere.Close)
	sends := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	t.Cleanup(sends.Close)
	_, config := newLiar(t)
	config.Issuer, config.Transport = sends.URL, sends.Client().Transport
	if _, _, err := New(config).Begin(t.Context(), "https://cluster.test/sign-in/platform"); failed(err) != "oidc.unreachable" || asked != 0 {
		t.Errorf("a provider that sends elsewhere: %v, asked %d times", err, asked)
	}
}

// A pending sign-in is opened by the desk that sealed it, in time, and is spent once.
func TestDesk(t *testing.T) {
	now := time.Now()
	clock := func() time.Time { return now }
	desk := NewDesk(clock)
	pending := &Pending{ID: "one", Provider: "platform", Expires: now.Add(PendingFor), State: "s", Nonce: "n", Verifier: "v"}
	text := desk.Seal(pending)
	if strings.Contains(text, "platform") || len(text) > pendingMax {
		t.Errorf("sealed: %q", text)
	}
	opened, err := desk.Open(text)
	if err != nil || opened.State != "s" || opened.Verifier != "v" {
		t.Fatalf("opened: %+v, %v", opened, err)
	}
	middle := len(text) / 2
	forged := text[:middle] + map[bool]string{true: "B", false: "A"}[text[middle] == 'A'] + text[middle+1:]
	for name, bad := range map[string]string{"forged": forged, "endless": strings.Repeat("A", pendingMax+1), "none": "", "no base64": "§"} {
		if _, err := desk.Open(bad); failed(err) != "oidc.begin_again" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := NewDesk(clock).Open(text); failed(err) != "oidc.begin_again" {
		t.Errorf("at another desk: %v", err)
	}
	var wait sync.WaitGroup
	took := make(chan error, 32)
	for range cap(took) {
		wait.Go(func() { took <- desk.Spend(opened) })
	}
	wait.Wait()
	close(took)
	first := 0
	for err := range took {
		if err == nil {
			first++
		}
	}
	if first != 1 {
		t.Errorf("%d of many at once spent it", first)
	}
	if _, err := desk.Open(text); failed(err) != "oidc.begin_again" {
		t.Errorf("opened after it was spent: %v", err)
	}
	later := desk.Seal(&Pending{ID: "two", Expires: now.Add(PendingFor)})
	now = now.Add(PendingFor)
	if _, err := desk.Open(later); failed(err) != "oidc.begin_again" {
		t.Errorf("opened after its time: %v", err)
	}
}

// A provider is asked about a device no more often than it wants.
func TestDeskAsksInTurn(t *testing.T) {
	now := time.Now()
	desk := NewDesk(func() time.Time { return now })
	pending := &Pending{ID: "one", Expires: now.Add(PendingFor), DeviceCode: "d", Every: 5 * time.Second}
	said := fmt.Sprint(desk.Ask(pending), desk.Ask(pending))
	now = now.Add(5 * time.Second)
	said += fmt.Sprint(" ", desk.Ask(pending))
	desk.Slow(pending)
	now = now.Add(9 * time.Second)
	said += fmt.Sprint(" ", desk.Ask(pending))
	now = now.Add(time.Second)
	said += fmt.Sprint(" ", desk.Ask(pending))
	if want := "true false true false true"; said != want {
		t.Errorf("asked: %s; want %s", said, want)
	}
}

func TestAddresses(t *testing.T) {
	for address, want := range map[string]bool{
		"http://127.0.0.1:43210/signed-in": true, "http://[::1]:43210/signed-in": true,
		"http://localhost:43210/signed-in": false, "http://127.0.0.1/signed-in": false, "http://127.0.0.1:0/signed-in": false, "https://127.0.0.1:1/signed-in": false,
		"http://127.0.0.2:1/signed-in": false, "http://127.0.0.1:1/other": false, "http://127.0.0.1:1/signed-in?x": false, "http://a@127.0.0.1:1/signed-in": false,
		"http://127.0.0.1:1@evil.test/signed-in": false, "http://127.0.0.1.evil.test:1/signed-in": false, "http://127.0.0.1:01/signed-in": false, "": false,
		"http://127.0.0.1:1/signed-in#": false, "http://127.0.0.1:1/signed-in?": false, "http://127.0.0.1:1/%73igned-in": false,
	} {
		if Loopback(address) != want {
			t.Errorf("loopback %q: %v", address, !want)
		}
	}
	if got := PageAddress("cluster.test:4600", "platform"); got != "https://cluster.test:4600/sign-in/platform" {
		t.Errorf("page: %s", got)
	}
}

func TestSignOutAddress(t *testing.T) {
	l, config := newLiar(t)
	l.metadata["end_session_endpoint"] = l.URL + "/end?a=b"
	if got := New(config).SignOutAddress(t.Context(), "https://cluster.test/"); got != "" {
		t.Errorf("nobody asked for it: %s", got)
	}
	config.EndSession = true
	l.metadata["end_session_endpoint"] = l.URL + "/end?a=b&post_logout_redirect_uri=https://evil.test/"
	if got, want := New(config).SignOutAddress(t.Context(), ""), l.URL+"/end?a=b&client_id=cluster"; got != want {
		t.Errorf("nobody comes back: got %s, want %s", got, want)
	}
	if got, want := New(config).SignOutAddress(t.Context(), HomeAddress("cluster.test")), l.URL+"/end?a=b&client_id=cluster&post_logout_redirect_uri=https%3A%2F%2Fcluster.test%2F"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, away := range []string{"http://provider.test/end", "javascript:alert(1)", "//evil.test/end", "https://", ""} {
		l.metadata["end_session_endpoint"] = away
		if got := New(config).SignOutAddress(t.Context(), HomeAddress("cluster.test")); got != "" {
			t.Errorf("announced as %q, it is %s", away, got)
		}
	}
}

// What a provider says is repeated to nobody: not in what people read, and of its
// answers not in the log.
func TestFailuresTellNoSecrets(t *testing.T) {
	l, config := newLiar(t)
	config.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
		answer, err := l.Client().Transport.RoundTrip(r)
		if err == nil && r.URL.Path == "/token" {
			answer.StatusCode = http.StatusInternalServerError
		}
		return answer, err
	})
	_, err := l.finish(t, New(config))
	if failed(err) != "oidc.unreachable" || strings.Contains(err.Error(), "eyJ") || strings.Contains(fmt.Sprintf("%v %+v %#v", config, config, config), liarSecret) {
		t.Errorf("%v; %v", err, config)
	}
	if told := New(config).refused("<script>"); told.Params["reason"] != "?" {
		t.Errorf("repeated: %v", told.Params)
	}
}

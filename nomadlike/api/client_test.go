package api

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"

	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/structs"
)

// roundTrip answers requests in place of a network.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answer(status int, header http.Header, body any) *http.Response {
	data, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(string(data))), ContentLength: int64(len(data))}
}

func fakeClient(t *testing.T, f roundTrip) *Client {
	t.Helper()
	client, err := New(Config{Token: "nl_test", Language: "zh", HTTPClient: &http.Client{Transport: f}})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestRequestCarriesQueryTokenAndLanguage(t *testing.T) {
	client := fakeClient(t, func(r *http.Request) (*http.Response, error) {
		got := []string{r.Method, r.URL.String(), r.Header.Get("Authorization"), r.Header.Get("Accept-Language"), r.Header.Get(HeaderRequestedBy)}
		want := []string{"GET", "https://127.0.0.1:4646/v1/jobs/a%2Fb?index=7&stale=true&wait=3s", "Bearer nl_test", "zh", "api"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		return answer(200, http.Header{HeaderIndex: {"9"}}, JobDetail{Job: &structs.Job{ID: "1"}}), nil
	})
	job, meta, err := client.Job(t.Context(), "a/b", &Query{Index: 7, Wait: 3 * time.Second, Stale: true})
	if err != nil || job.Job.ID != "1" || meta.Index != 9 {
		t.Fatalf("got %+v %+v %v", job, meta, err)
	}
}

func TestErrorsAreDecoded(t *testing.T) {
	client := fakeClient(t, func(*http.Request) (*http.Response, error) {
		return answer(409, nil, structs.NewError(structs.CodeConflict, "job.ended", "job", "x")), nil
	})
	_, err := client.StopJob(t.Context(), "x", JobStopRequest{})
	var decoded *structs.Error
	if !errors.As(err, &decoded) || decoded.ID != "job.ended" || decoded.Params["job"] != "x" {
		t.Fatalf("got %v", err)
	}
	client = fakeClient(t, func(*http.Request) (*http.Response, error) {
		return answer(404, nil, "not us"), nil
	})
	if _, err = client.StopJob(t.Context(), "x", JobStopRequest{}); !errors.As(err, &decoded) || decoded.ID != "api.foreign_answer" {
		t.Fatalf("got %v", err)
	}
}

// An agent that answers "unavailable" has done nothing: everything may be
// repeated then. After a broken connection nobody knows: only what does no
// harm twice is repeated, and a submission keeps its key.
func TestRetries(t *testing.T) {
	unavailable := structs.NewError(structs.CodeUnavailable, "server.no_leader")
	for _, test := range []struct {
		name  string
		do    func(context.Context, *Client) error
		tries int
	}{
		{"read", func(ctx context.Context, c *Client) error { _, _, err := c.Nodes(ctx, nil); return err }, 4},
		{"submit", func(ctx context.Context, c *Client) error { _, err := c.SubmitJob(ctx, JobRequest{}, ""); return err }, 4},
		{"stop", func(ctx context.Context, c *Client) error {
			_, err := c.StopJob(ctx, "x", JobStopRequest{})
			return err
		}, 1},
		{"token", func(ctx context.Context, c *Client) error { _, err := c.CreateToken(ctx, TokenRequest{}); return err }, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, broken := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					tries, keys, want := 0, map[string]bool{}, 4
					if broken {
						want = test.tries
					}
					client := fakeClient(t, func(r *http.Request) (*http.Response, error) {
						tries++
						keys[r.Header.Get(HeaderIdempotencyKey)] = true
						switch {
						case tries < 4 && broken:
							return nil, io.ErrUnexpectedEOF
						case tries < 4:
							return answer(503, nil, unavailable), nil
						}
						return answer(200, nil, map[string]any{}), nil
					})
					err := test.do(t.Context(), client)
					if tries != want || len(keys) != 1 || (want == 4) != (err == nil) {
						t.Errorf("broken %t: %d tries, %d keys, error %v", broken, tries, len(keys), err)
					}
				})
			}
		})
	}
}

func TestRetriesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fakeClient(t, func(*http.Request) (*http.Response, error) {
			return answer(503, nil, structs.NewError(structs.CodeUnavailable, "server.no_leader")), nil
		})
		begin := time.Now()
		_, _, err := client.Nodes(t.Context(), nil)
		if structs.CodeOf(err) != structs.CodeUnavailable || time.Since(begin) > retryForDefault {
			t.Errorf("%v after %s", err, time.Since(begin))
		}
	})
}

func TestAddresses(t *testing.T) {
	for _, test := range []struct{ address, want string }{
		{"", "https://127.0.0.1:4646"},
		{"gpu-01", "https://gpu-01:4646"},
		{"https://[::1]:99/", "https://[::1]:99"},
		{"http://gpu-01", "api.not_https"},
		{"https://gpu-01/x", "api.bad_address"},
		{"https://u:p@gpu-01", "api.bad_address"},
		{"a, b:1", "https://a:4646"},
	} {
		client, err := New(Config{Address: test.address, HTTPClient: http.DefaultClient})
		var failure *structs.Error
		got := ""
		if errors.As(err, &failure) {
			got = failure.ID
		} else if client != nil {
			got = client.Address()
		}
		if got != test.want {
			t.Errorf("%q: got %s, want %s", test.address, got, test.want)
		}
	}
}

// Only a server of the cluster sees a byte of a request: no other CA's, no
// node's, and nobody who shows the CA itself.
func TestTrust(t *testing.T) {
	ca, err := auth.NewCA("c0ffee", rand.Reader, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	twin, err := auth.NewCA("c0ffee", rand.Reader, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(Config{Address: "gpu-01"}); structs.CodeOf(err) != structs.CodeInvalid {
		t.Errorf("without CA: %v", err)
	}
	pinned := Config{CAFingerprint: strings.ToUpper(ca.Fingerprint())}
	known := Config{CAPEM: ca.CertificatePEM()}
	for _, test := range []struct {
		name   string
		role   auth.Role
		signer *auth.CA
		config Config
		want   string
	}{
		{"a server", auth.RoleServer, ca, known, ""},
		{"a server, pinned", auth.RoleServer, ca, pinned, ""},
		{"a node", auth.RoleClient, ca, known, "api.not_a_server"},
		{"a node, pinned", auth.RoleClient, ca, pinned, "api.not_a_server"},
		{"another CA", auth.RoleServer, twin, known, "api.untrusted_server"},
		{"another CA, pinned", auth.RoleServer, twin, pinned, "api.untrusted_server"},
		{"another fingerprint", auth.RoleServer, ca, Config{CAFingerprint: strings.Repeat("0", 64)}, "api.untrusted_server"},
	} {
		t.Run(test.name, func(t *testing.T) {
			issued, err := test.signer.IssueAgent(auth.Grant{Role: test.role, ID: "a1"}, rand.Reader, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			pair, err := tls.X509KeyPair(issued.ChainPEM, issued.KeyPEM)
			if err != nil {
				t.Fatal(err)
			}
			var asked atomic.Int32
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				asked.Add(1)
				_, _ = io.WriteString(w, "{}")
			}))
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
			server.StartTLS()
			defer server.Close()
			config := test.config
			config.Address, config.Token = server.URL, "secret"
			client, err := New(config)
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			_, err = client.Health(t.Context())
			var failure *structs.Error
			if errors.As(err, &failure) && failure.ID != test.want || err == nil && test.want != "" || err != nil && test.want == "" {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if served := asked.Load() > 0; served != (test.want == "") {
				t.Errorf("%d requests reached it", asked.Load())
			}
		})
	}
}

func TestEventStream(t *testing.T) {
	// The lines of an agent that knows no cursors: it repeats what was seen.
	body := `{"index":4}
{"index":5,"event":{"index":5,"seq":0,"time":null,"topic":"job","id":"job.submitted"}}
{"index":5,"event":{"index":5,"seq":1,"time":null,"topic":"job","id":"job.queued"}}
{"index":5,"cursor":"6.0"}
{"index":6,"error":{"code":"unauthorized","id":"agent.token_revoked"}}
`
	client := fakeClient(t, func(r *http.Request) (*http.Response, error) {
		if got := r.URL.RawQuery; got != "cursor=5.1&index=4&topic=job%2Cnode" {
			t.Errorf("query %s", got)
		}
		return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(body))}, nil
	})
	stream, err := client.Events(t.Context(), EventFilter{After: structs.Cursor{Index: 5, Place: 1}, Topics: []string{"job", "node"}})
	if err != nil {
		t.Fatal(err)
	}
	event, err := stream.Next()
	if err != nil || event.ID != "job.queued" || stream.Cursor() != (structs.Cursor{Index: 5, Place: 2}) {
		t.Errorf("%+v %v", event, err)
	}
	if _, err = stream.Next(); structs.CodeOf(err) != structs.CodeUnauthorized || stream.Cursor() != structs.CursorAfter(5) {
		t.Errorf("end: %v at %s", err, stream.Cursor())
	}
}

func TestLogsTellWhyTheyBrokeOff(t *testing.T) {
	trailer, err := json.Marshal(structs.NewError(structs.CodeUnavailable, "client.away"))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", TrailerError)
		_, _ = io.WriteString(w, "half a line")
		w.Header().Set(TrailerError, string(trailer))
	}))
	defer server.Close()
	client := fakeClient(t, func(r *http.Request) (*http.Response, error) {
		return http.Get(server.URL + r.URL.Path)
	})
	reader, err := client.Logs(t.Context(), "a", LogOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	text, err := io.ReadAll(reader)
	if string(text) != "half a line" || structs.CodeOf(err) != structs.CodeUnavailable {
		t.Errorf("%q %v", text, err)
	}
}

func TestExec(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		ctx := r.Context()
		var seen []string
		for range 4 {
			kind, data, err := ws.Read(ctx)
			if err != nil {
				t.Error(err)
				return
			}
			seen = append(seen, kind.String()+" "+string(data))
		}
		want := []string{
			`MessageText {"start":{"alloc_id":"a1","attempt":2,"command":["sh"]}}`,
			`MessageBinary hello`,
			`MessageText {"signal":"SIGINT"}`,
			`MessageText {"close_stdin":true}`,
		}
		if diff := cmp.Diff(want, seen); diff != "" {
			t.Error(diff)
		}
		_ = ws.Write(ctx, websocket.MessageBinary, append([]byte{ExecStdout}, "out"...))
		_ = ws.Write(ctx, websocket.MessageBinary, append([]byte{ExecStderr}, "err"...))
		_ = ws.Write(ctx, websocket.MessageText, []byte(`{"exit":{"code":3}}`))
		_ = ws.Close(websocket.StatusNormalClosure, "")
	}))
	defer server.Close()
	client := fakeClient(t, func(r *http.Request) (*http.Response, error) {
		r.URL.Scheme, r.URL.Host = "http", strings.TrimPrefix(server.URL, "http://")
		return http.DefaultTransport.RoundTrip(r)
	})
	ctx := t.Context()
	conn, err := client.Exec(ctx, "a1", structs.ExecStart{Attempt: 2, Command: []string{"sh"}})
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(conn.SendStdin(ctx, []byte("hello")), conn.Signal(ctx, "SIGINT"), conn.CloseStdin(ctx))
	if err != nil {
		t.Fatal(err)
	}
	var got []structs.ExecDown
	for {
		down, err := conn.Recv(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, *down)
	}
	want := []structs.ExecDown{{Stdout: []byte("out")}, {Stderr: []byte("err")}, {Exit: &structs.ExecExit{Code: 3}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestContextIsPrivateAndReplaced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "config")
	if got, err := LoadContext(dir); err != nil || got != (Context{}) {
		t.Errorf("missing file: %+v %v", got, err)
	}
	want := Context{Address: "https://127.0.0.1:4646", Cluster: "c1", CA: "pem", Token: "nl_x"}
	for range 2 {
		if err := SaveContext(dir, want); err != nil {
			t.Fatal(err)
		}
	}
	got, err := LoadContext(dir)
	if err != nil || got != want {
		t.Errorf("got %+v %v", got, err)
	}
	info, err := os.Stat(filepath.Join(dir, ContextFile))
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v %v", info.Mode(), err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left over: %v %v", entries, err)
	}
}

// Every route has what the router, the document and the policy need.
func TestRoutesAreWhole(t *testing.T) {
	names, patterns := map[string]bool{}, map[string]bool{}
	for _, route := range Routes() {
		if names[route.Name] || patterns[route.Method+route.Pattern] {
			t.Errorf("%s: double", route.Name)
		}
		names[route.Name], patterns[route.Method+route.Pattern] = true, true
		if route.Verb == "" || route.Summary == "" {
			t.Errorf("%s: verb or summary is missing", route.Name)
		}
		if route.Kind == "" || route.From == "" {
			t.Errorf("%s: the object is missing", route.Name)
		}
		if route.Mutates() && route.Blocking {
			t.Errorf("%s: a change cannot block", route.Name)
		}
		if tus := strings.HasPrefix(route.Name, "data.tus_"); route.Response == nil && route.Stream == StreamNone && !tus { // that answers in headers
			t.Errorf("%s: no answer", route.Name)
		}
	}
}

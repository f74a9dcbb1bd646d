package front

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/audit"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/structs"
)

// notebook keeps audit records in memory.
type notebook struct {
	mu struct {
		sync.Mutex
		records []audit.Record
	}
}

func (n *notebook) Append(r audit.Record) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.records = append(n.mu.records, r)
	return nil
}

// take returns what was recorded since it was called before.
func (n *notebook) take() []audit.Record {
	n.mu.Lock()
	defer n.mu.Unlock()
	records := n.mu.records
	n.mu.records = nil
	return records
}

// lines are records as "user action kind/id outcome status reason count".
func (n *notebook) lines() []string {
	var lines []string
	for _, r := range n.take() {
		line := fmt.Sprintf("%s %s %s/%s %s %d %s", r.Actor.User, r.Action, r.Object.Kind, r.Object.ID, r.Outcome, r.Status, r.Reason)
		if r.Count > 0 {
			line += fmt.Sprintf(" ×%d", r.Count)
		}
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines
}

// users know a token for each role, by its name.
type users struct{}

func (users) Again(_ context.Context, caller Caller) (Caller, error) { return caller, nil }

func (users) Authenticate(_ context.Context, secret, _ string, _ bool) (Caller, error) {
	who := auth.Principal{Kind: auth.KindUser, ID: secret, Role: auth.UserRole(secret)}
	switch {
	case secret == "guest":
		who = auth.Principal{Kind: auth.KindGuest, ID: "j1", Project: "one"}
	case !who.Role.Valid():
		return Caller{}, structs.NewError(structs.CodeUnauthorized, "auth.token_invalid")
	case secret == "user" || secret == "viewer" || secret == "project-admin":
		who.Project = "one"
	}
	return Caller{Principal: who, Token: &structs.Token{ID: "t-" + secret, User: secret, Role: secret}}, nil
}

// auditedFront answers every route; job j1 in project one is user's, j2 in
// project two eve's.
func auditedFront(now func() time.Time, edit func(map[string]Handler)) (*Front, *notebook) {
	book := new(notebook)
	f := New(Config{
		Log: slog.New(slog.DiscardHandler), Now: now, Limits: Limits{Streams: 128, RequestsPerSec: 1e6, SubmitsPerSec: 1e6, TokenFailures: 1e6},
		Rest: NoPages(), Callers: users{}, Audit: book,
	})
	handlers := map[string]Handler{}
	for _, route := range api.Routes() {
		handlers[route.Name] = func(r *Request) error { return r.Reply(map[string]any{"route": r.Route.Name}) }
	}
	handlers["session.create"] = func(r *Request) error {
		_, err := f.signIn(r, &api.SessionRequest{Token: "user"})
		return reply[api.Session](r, &api.Session{}, err)
	}
	if edit != nil {
		edit(handlers)
	}
	table := tableOf(handlers)
	f.entries = table.entries
	for _, route := range api.Routes() {
		one := f.entries[route.Name]
		open := one.open
		one.open = func() call {
			c := open()
			c.find = findOf
			return c
		}
		f.mux.Handle(route.Method+" "+route.Pattern, f.serve(route, one))
	}
	return f, book
}

func findOf(r *Request) (auth.Object, error) {
	object := auth.Object{Kind: auth.ObjectKind(r.Route.Kind), ID: r.ID}
	if r.Route.From == api.FromCaller {
		object.Owner = r.Caller.Principal.ID
	}
	if r.Route.Kind != api.ObjectJob {
		return object, nil
	}
	object.Project, object.Owner = "one", "user"
	switch r.ID {
	case "j2":
		object.Project, object.Owner = "two", "eve"
	case "gone":
		return auth.Object{}, auth.NotFound(auth.ObjectJob, r.ID)
	case "":
		object.Owner = r.Caller.Principal.ID
	}
	if r.Route.From == api.FromAllocation {
		r.RestsOn(structs.RestJob, "j-of-"+r.ID, 1)
	}
	return object, nil
}

// as asks with a token; "": without one.
func as(f *Front, token, method, path string) *httptest.ResponseRecorder {
	header := http.Header{"Authorization": {"Bearer " + token}, "X-Request-Id": {"forged"}, api.HeaderRequestedBy: {"1"}, "Content-Type": {"application/json"}}
	if token == "" {
		header["Authorization"] = nil
	}
	return ask{method: method, path: path, body: "{}", header: header}.of(f)
}

// What is recorded, of one request at a time.
func TestWhatIsRecorded(t *testing.T) {
	for _, test := range []struct {
		name, token, method, path string
		want                      []string
	}{
		{"a change", "user", "POST", "/v1/jobs/j1/stop", []string{"user jobs.stop job/j1 allowed 200"}},
		{"a change in another project", "user", "POST", "/v1/jobs/j2/stop", []string{"user jobs.stop job/j2 refused 404 auth.forbidden.project"}},
		{"a read in another project", "user", "GET", "/v1/jobs/j2", []string{"user jobs.read job/j2 refused 404 auth.forbidden.project"}},
		{"a change that the role may not make", "viewer", "POST", "/v1/nodes/n1/drain", []string{"viewer nodes.drain node/n1 refused 403 auth.forbidden.role"}},
		{"a change of what is not there", "user", "POST", "/v1/jobs/gone/stop", []string{"user jobs.stop job/gone failed 404 auth.not_found"}},
		{"a read of what is not there", "user", "GET", "/v1/jobs/gone", nil},
		{"a read", "user", "GET", "/v1/jobs/j1", nil},
		{"a list", "user", "GET", "/v1/jobs", nil},
		{"a question", "user", "POST", "/v1/jobs/validate", nil},
		{"what a job would do to the queue", "user", "POST", "/v1/queue/what-if", nil},
		{"one's own log", "user", "GET", "/v1/allocations/a1/logs", nil},
		{"another's log, as its project's administrator", "project-admin", "GET", "/v1/allocations/a1/logs", []string{"project-admin allocations.logs job/j-of-a1 allowed 200"}},
		{"another's files, as an administrator", "admin", "GET", "/v1/jobs/j2/files", []string{"admin jobs.files job/j2 allowed 200"}},
		{"the whole state", "admin", "GET", "/v1/operator/snapshot", []string{"admin operator.snapshot_save cluster/ allowed 200"}},
		{"no token", "", "GET", "/v1/jobs", []string{"jobs.list job/ refused 401 auth.login_required"}},
		{"a wrong token", "wrong", "POST", "/v1/jobs/j1/stop", []string{"jobs.stop job/j1 refused 401 auth.token_invalid"}},
		{"a sign-in", "", "POST", "/v1/session", []string{"user session.create cluster/ allowed 200"}},
		{"the health, by anybody", "", "GET", "/v1/agent/health", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			f, book := auditedFront(time.Now, nil)
			if test.token != "" && test.token != "wrong" {
				as(f, test.token, "GET", "/v1/tokens/self") // the use of the token has a record of its own
			}
			book.take()
			answer := as(f, test.token, test.method, test.path)
			id := answer.Header()["X-Request-Id"]
			if len(id) != 1 || len(id[0]) != 24 {
				t.Fatalf("the answer has the id %q", id)
			}
			for _, r := range book.mu.records {
				if r.Request != id[0] || r.Address != "192.0.2.1" || r.Time == 0 || test.token != "" && test.token != "wrong" && r.Actor.TokenID != "t-"+test.token {
					t.Errorf("%+v", r)
				}
			}
			if got := book.lines(); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// Every route that is not a GET is a question or leaves a record: a new one
// cannot be forgotten.
func TestEveryChangeIsRecorded(t *testing.T) {
	f, book := auditedFront(time.Now, nil)
	changes := 0
	for _, route := range api.Routes() {
		if !route.Mutates() {
			if route.Question {
				t.Errorf("%s is a question by its method already", route.Name)
			}
			continue
		}
		answer := as(f, "admin", route.Method, strings.ReplaceAll(route.Pattern, "{id}", "x1"))
		found := slices.ContainsFunc(book.take(), func(r audit.Record) bool { return r.Action == route.Name && r.Outcome == audit.Allowed })
		if answer.Code == http.StatusOK && found == route.Question || answer.Code != http.StatusOK && route.From != api.FromToken {
			t.Errorf("%s: status %d, recorded %t, a question %t", route.Name, answer.Code, found, route.Question)
		}
		if !route.Question {
			changes++
		}
	}
	if changes < 30 {
		t.Errorf("only %d changes", changes)
	}
}

// The record is there before a byte of the answer is.
func TestRecordedBeforeAnswered(t *testing.T) {
	f, book := auditedFront(time.Now, nil)
	as(f, "user", "GET", "/v1/tokens/self")
	book.take()
	request := httptest.NewRequest("POST", "https://127.0.0.1/v1/jobs/j1/stop", strings.NewReader("{}"))
	request.Header.Set("Authorization", "Bearer user")
	request.Header.Set("Content-Type", "application/json")
	w := &witness{ResponseRecorder: httptest.NewRecorder(), book: book}
	f.ServeHTTP(w, request)
	if w.Code != http.StatusOK || w.before != 1 {
		t.Errorf("status %d, with %d records before it", w.Code, w.before)
	}
}

// witness counts the records that were there at the first byte.
type witness struct {
	*httptest.ResponseRecorder
	book   *notebook
	before int
}

func (w *witness) Write(p []byte) (int, error) {
	w.before = len(w.book.mu.records)
	return w.ResponseRecorder.Write(p)
}

// What a job or a token is called that was made, and what a leader answered in
// our place, is in the record.
func TestWhatHandlersTell(t *testing.T) {
	f, book := auditedFront(time.Now, func(handlers map[string]Handler) {
		handlers["jobs.submit"] = func(r *Request) error {
			r.Made("j9")
			r.SetIndex(17)
			return r.Reply(struct{}{})
		}
		handlers["operator.keys_rotate"] = func(r *Request) error { // as ReverseProxy does
			r.Writer.Header().Add("X-Request-Id", "of-the-leader")
			r.Writer.WriteHeader(http.StatusForbidden)
			return nil
		}
	})
	as(f, "admin", "GET", "/v1/tokens/self")
	book.take()
	as(f, "user", "POST", "/v1/jobs")
	records := book.take()
	if made := records[len(records)-1]; made.Object.ID != "j9" || made.Index != 17 {
		t.Errorf("%+v", made)
	}
	answer := as(f, "admin", "POST", "/v1/operator/keys/ca/rotate")
	if passed := book.take(); len(passed) != 1 || passed[0].Request != "of-the-leader" || passed[0].Outcome != audit.Refused {
		t.Errorf("%+v", passed)
	}
	if ids := answer.Header()["X-Request-Id"]; !slices.Equal(ids, []string{"of-the-leader"}) {
		t.Errorf("the answer has the ids %q", ids)
	}
}

// A flood of refusals becomes few lines, with all that they stand for; uses and
// reads are recorded once an hour.
func TestFloodsBecomeFewLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, book := auditedFront(time.Now, nil)
		for range 1000 {
			as(f, "", "GET", "/v1/jobs")
			as(f, "user", "GET", "/v1/jobs/j2")
			as(f, "admin", "GET", "/v1/jobs/j2/files")
		}
		time.Sleep(2 * time.Minute)
		f.SweepAudit(false)
		count := map[string]int{}
		for _, r := range book.take() {
			count[fmt.Sprintf("%s %s %d", r.Actor.User, r.Action, max(r.Count, 1))]++
		}
		want := map[string]int{
			" jobs.list 1": 1, " jobs.list 999": 1, "user token.use 1": 1, "user jobs.read 1": 30, "user jobs.read 970": 1, "admin token.use 1": 1, "admin jobs.files 1": 1,
		}
		if fmt.Sprint(count) != fmt.Sprint(want) {
			t.Errorf("got %v, want %v", count, want)
		}
		time.Sleep(time.Hour)
		as(f, "admin", "GET", "/v1/jobs/j2/files")
		as(f, "guest", "GET", "/v1/jobs/j1")
		as(f, "guest", "GET", "/v1/jobs/j1")
		if got := book.lines(); !slices.Equal(got, []string{"admin token.use token/t-admin allowed 0", "admin jobs.files job/j2 allowed 200", "share.use token/t-guest allowed 0"}) {
			t.Errorf("an hour later: %q", got)
		}
	})
}

// What no page of this agent makes a browser send is recorded, too.
func TestRefusedAtTheDoor(t *testing.T) {
	f, book := auditedFront(time.Now, nil)
	ask{path: "/v1/jobs", header: http.Header{"Origin": {"https://evil.example"}}}.of(f)
	if got := book.lines(); !slices.Equal(got, []string{"door cluster/ refused 403 agent.foreign_origin"}) {
		t.Errorf("%q", got)
	}
}

// Nothing that a request brings is in its record but names: neither its token nor
// its body.
func TestNoSecrets(t *testing.T) {
	f, book := auditedFront(time.Now, nil)
	for _, route := range api.Routes() {
		header := http.Header{"Authorization": {"Bearer admin"}, "Content-Type": {"application/json"}, api.HeaderRequestedBy: {"canary"}, "Cookie": {sessionCookie + "=canary"}}
		ask{method: route.Method, path: strings.ReplaceAll(route.Pattern, "{id}", "x1") + "?canary=canary", body: `{"canary":"canary"}`, header: header}.of(f)
		ask{method: route.Method, path: strings.ReplaceAll(route.Pattern, "{id}", "x1"), header: http.Header{"Authorization": {"Bearer canary"}}}.of(f)
	}
	f.SweepAudit(true)
	for _, r := range book.take() {
		if line, err := audit.Encode(r); err != nil || strings.Contains(string(line), "canary") {
			t.Errorf("%s, %v", line, err)
		}
	}
}

func BenchmarkDoor(b *testing.B) {
	for _, path := range []string{"/v1/jobs/j1", "/v1/jobs/j1/stop"} {
		method := map[bool]string{true: "POST", false: "GET"}[strings.HasSuffix(path, "stop")]
		for _, name := range []string{"plain", "audited"} {
			b.Run(method+"/"+name, func(b *testing.B) {
				f, _ := auditedFront(time.Now, nil)
				f.audit.to = nowhere{}
				if name == "plain" {
					f.audit = nil
				}
				b.ReportAllocs()
				for b.Loop() {
					as(f, "user", method, path)
				}
			})
		}
	}
}

type nowhere struct{}

func (nowhere) Append(audit.Record) error { return nil }

package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"nomadlike/agent/httpapi/front"
	"nomadlike/internal/golden"
	"nomadlike/internal/messages"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

// world is a development agent with objects of two projects and a token of
// every role.
type world struct {
	door   http.Handler // nil: the agent's own
	agent  *Agent
	admin  *api.Client
	own    string            // id of a job of user ann in project one
	mate   string            // id of a job of ben in project one
	closed string            // the same, shared with nobody
	other  string            // id of a job in project two
	code   map[string]string // whose job names it -> digits of the digest of code; made when it is asked about
	chunks map[string]string // digits of the digest of code -> digest of its one chunk
	tokens map[string]string // role -> secret
	ids    map[string]string // role -> token id
}

func sleeper(name, project, access string) string {
	return fmt.Sprintf(`
job %q {
  project = %q
  access  = %q
  resources {
    cpu    = 0.01
    memory = "16MiB"
  }
  task {
    driver  = "exec"
    command = "sleep 600"
    env     = { SECRET = "canary-env" }
  }
}
`, name, project, access)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{tokens: map[string]string{}, ids: map[string]string{}}
	w.agent, w.admin = devAgent(t)
	token := func(key, role, project, user string) *api.Client {
		made, err := w.admin.CreateToken(t.Context(), api.TokenRequest{Name: key, Role: role, Project: project, User: user})
		if err != nil {
			t.Fatal(err)
		}
		w.tokens[key], w.ids[key] = made.Secret, made.Token.ID
		return w.admin.WithToken(made.Secret)
	}
	token("viewer", "viewer", "one", "vic")
	ann := token("user", "user", "one", "ann")
	token("project-admin", "project-admin", "one", "pat")
	token("operator", "operator", "", "olga")
	token("admin", "admin", "", "ada")
	ben := token("mate", "user", "one", "ben")
	eve := token("stranger", "user", "two", "eve")
	submit := func(client *api.Client, hcl string) string {
		job := runJob(t, client, hcl, structs.JobRunning)
		return job.Job.ID
	}
	for _, project := range []string{"one", "two"} {
		if _, err := w.admin.PutProject(t.Context(), &structs.Project{Name: project}); err != nil {
			t.Fatal(err)
		}
	}
	w.own = submit(ann, sleeper("own", "one", "read-only"))
	w.mate = submit(ben, sleeper("mate", "one", "read-only"))
	w.closed = submit(ben, sleeper("closed", "one", "none"))
	w.other = submit(eve, sleeper("other", "two", "read-write"))
	guest, err := ann.ShareJob(t.Context(), w.own, api.ShareRequest{})
	if err != nil {
		t.Fatal(err)
	}
	board, err := w.admin.ShareWall(t.Context(), api.ShareRequest{})
	if err != nil {
		t.Fatal(err)
	}
	w.tokens["guest"], w.tokens["board"] = guest.Secret, board.Secret
	_, program := w.serviceAccount(t, w.admin.WithToken(w.tokens["project-admin"]), "robot", "project-admin", api.ServiceTokenRequest{})
	w.tokens["service"], w.ids["service"] = program.Secret, program.Token.ID
	return w
}

// subjects are the objects that a route with {id} is tried on.
func (w *world) subjects(t *testing.T, route api.Route) map[string]string {
	t.Helper()
	jobs := map[string]string{"own": w.own, "mate's": w.mate, "closed": w.closed, "other project's": w.other}
	switch route.From {
	case api.FromJob:
		return jobs
	case api.FromAllocation:
		allocs := map[string]string{}
		for who, id := range jobs {
			allocs[who] = allocOf(t, w.admin, id).ID
		}
		return allocs
	case api.FromNode:
		return map[string]string{"node": w.agent.ID()}
	case api.FromToken:
		return map[string]string{"own": w.ids["user"], "another's": w.ids["mate"]}
	case api.FromSecret:
		names := map[string]string{"new": "fresh", "user's": "of_user", "administrator's": "of_admin"}
		for role, name := range map[string]string{"user": names["user's"], "project-admin": names["administrator's"]} {
			if _, err := w.admin.WithToken(w.tokens[role]).SetSecret(t.Context(), name, false, []byte("a value of some length")); err != nil {
				t.Fatal(err)
			}
		}
		return names
	case api.FromTemplate:
		for role, name := range map[string]string{"user": "of-user", "project-admin": "of-admin"} {
			if _, err := w.admin.WithToken(w.tokens[role]).PutTemplate(t.Context(), name, false, api.TemplateRequest{HCL: hello("true")}); err != nil {
				t.Fatal(err)
			}
		}
		return map[string]string{"new": "fresh", "user's": "of-user", "administrator's": "of-admin"}
	case api.FromData:
		w.namedData(t)
		return map[string]string{
			"own": "of-ann?of=one", "mate's": "of-ben?of=one", "closed": "closed?of=one", "new": "fresh?of=one",
			"other project's": "of-eve?of=two", "shared with all": "everybodys?of=two", "other project's new": "fresh?of=two",
		}
	case api.FromService:
		if _, err := w.admin.WithToken(w.tokens["project-admin"]).PutServiceAccount(t.Context(), api.ServiceAccount{Name: "ci"}, api.ServiceAccountRequest{}); err != nil {
			t.Fatal(err)
		}
		return map[string]string{"project's": "ci", "project's new": "fresh", "cluster's": "ci?cluster=true", "cluster's new": "fresh?cluster=true"}
	case api.FromCode:
		if !strings.Contains(route.Pattern, "{id}") {
			return map[string]string{"": ""}
		}
		return w.codeOf(t)
	case api.FromBody, api.FromProject:
		return map[string]string{"own project": "one", "other project": "two"}
	}
	if strings.Contains(route.Pattern, "{id}") {
		return map[string]string{"some": strings.Repeat("0", 32)}
	}
	return map[string]string{"": ""}
}

// namedData makes data that is shared otherwise, anew where a probe removed it.
func (w *world) namedData(t *testing.T) {
	t.Helper()
	storage := "nas"
	for name, of := range map[string]struct{ token, access string }{
		"of-ann": {"user", "project"}, "of-ben": {"mate", "project"}, "closed": {"mate", "private"}, "of-eve": {"stranger", "project"}, "everybodys": {"stranger", "cluster"},
	} {
		client := w.admin.WithToken(w.tokens[of.token])
		if _, err := client.PutData(t.Context(), api.DataName{Name: name}, api.DataRequest{Storage: &storage, Access: &of.access}); err != nil {
			t.Fatal(err)
		}
	}
}

// codeOf is code that jobs name which are shared otherwise.
func (w *world) codeOf(t *testing.T) map[string]string {
	t.Helper()
	if w.code != nil {
		return w.code
	}
	w.code, w.chunks = map[string]string{"nobody's": strings.Repeat("0", 64)}, map[string]string{}
	for whose, job := range map[string]struct{ token, project, user, access string }{
		"own": {"user", "one", "ann", "none"}, "mate's": {"mate", "one", "ben", "read-only"}, "closed": {"mate", "one", "ben", "none"}, "other project's": {"stranger", "two", "eve", "read-write"},
	} {
		text := "code of the job that is " + whose
		digest := sendCode(t, w.admin.WithToken(w.tokens[job.token]), text)
		submitShared(t, w.agent, "code-"+whose[:3], job.project, job.user, job.access, digest)
		w.code[whose] = strings.TrimPrefix(string(digest), "sha256:")
		w.chunks[w.code[whose]] = string(tree.DigestOf([]byte(text)))
	}
	return w.code
}

// probe sends a request whose effect, if it were allowed, does no harm: its
// body is refused, or what it names does not exist.
func (w *world) probe(t *testing.T, route api.Route, id, token string) int {
	t.Helper()
	id, query, asked := strings.Cut(id, "?")
	path := strings.ReplaceAll(route.Pattern, "{id}", id)
	if asked {
		path += "?" + query
	}
	if route.Name == "code.chunk" {
		path += "?digest=" + w.chunks[id]
	}
	var body io.Reader
	header := http.Header{}
	switch {
	case route.From == api.FromBody:
		job := api.JobRequest{HCL: sleeper("probe", id, "none")}
		if route.Name == "jobs.submit" { // refused by validation, after authorisation
			job.HCL = strings.Replace(job.HCL, "sleep 600", "", 1)
			job = api.JobRequest{Job: &structs.Job{Name: "probe", Project: id}}
		}
		data, err := json.Marshal(job)
		if err != nil {
			t.Fatal(err)
		}
		body = bytes.NewReader(data)
		header.Set("Content-Type", "application/json")
	case route.Request != nil:
		data, err := json.Marshal(reflect.Zero(reflect.TypeOf(route.Request)).Interface())
		if err != nil {
			t.Fatal(err)
		}
		body = bytes.NewReader(data)
		header.Set("Content-Type", "application/json")
	case route.Upload:
		body = strings.NewReader("no snapshot")
	}
	request := httptest.NewRequest(route.Method, "https://127.0.0.1"+path, body)
	request.Header = header
	request.RemoteAddr = "192.0.2.7:1234"
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	return w.answer(t, request).Code
}

// answer is what the agent answers to a request, of a stream what it says first.
// The stream's end is counted from its first byte, so that a slow machine does not
// cut an answer off before it is given.
func (w *world) answer(t *testing.T, request *http.Request) *httptest.ResponseRecorder {
	t.Helper()
	ctx, cancel := contextWithTimeout(t, time.Minute)
	defer cancel()
	recorder := &shortStream{ResponseRecorder: httptest.NewRecorder(), end: cancel}
	door := w.door
	if door == nil {
		door = w.agent.http.Handler
	}
	door.ServeHTTP(recorder, request.WithContext(ctx))
	if recorder.after != nil {
		recorder.after.Stop()
	}
	return recorder.ResponseRecorder
}

// shortStream keeps an answer and ends its request soon after the first byte.
type shortStream struct {
	*httptest.ResponseRecorder
	end   func()
	after *time.Timer
}

func (s *shortStream) begun() {
	if s.after == nil {
		s.after = time.AfterFunc(100*time.Millisecond, s.end)
	}
}

func (s *shortStream) WriteHeader(code int) {
	s.begun()
	s.ResponseRecorder.WriteHeader(code)
}

func (s *shortStream) Write(data []byte) (int, error) {
	s.begun()
	return s.ResponseRecorder.Write(data)
}

func (s *shortStream) Flush() {
	s.begun()
	s.ResponseRecorder.Flush()
}

// Every route with every role on own, shared, closed and foreign objects. The
// golden is the permission matrix as it really is, for people to review.
func TestAuthorisationOfEveryRoute(t *testing.T) {
	w := newWorld(t)
	roles := []string{"", "viewer", "user", "project-admin", "operator", "admin", "service", "guest", "board"}
	harmful := map[string]bool{ // allowed, they would end what the next rows need
		"jobs.stop": true, "jobs.pause": true, "jobs.continue": true, "jobs.finish": true, "jobs.delete": true, "nodes.drain": true, "nodes.cordon": true, "nodes.remove": true, "tokens.delete": true,
		"operator.raft_remove_peer": true, "operator.raft_add_peer": true, "jobs.priority": true,
		"secrets.set": true, "secrets.delete": true, "data.delete": true,
		"service_accounts.put": true, "service_accounts.state": true, "service_accounts.token": true, "service_accounts.revoke": true, "service_accounts.delete": true,
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%-28s %-16s", "route", "object")
	for _, role := range roles {
		if role == "" {
			role = "anonymous"
		}
		fmt.Fprintf(&out, " %-13s", role)
	}
	out.WriteString("\n")
	for _, route := range api.Routes() {
		subjects := w.subjects(t, route)
		names := make([]string, 0, len(subjects))
		for name := range subjects {
			names = append(names, name)
		}
		sort.Strings(names)
		for _, name := range names {
			fmt.Fprintf(&out, "%-28s %-16s", route.Name, name)
			for _, role := range roles {
				verdict := w.verdict(t, route, subjects[name], role, harmful[route.Name])
				fmt.Fprintf(&out, " %-13s", verdict)
				w.checkVerdict(t, route, name, role, verdict)
			}
			out.WriteString("\n")
		}
	}
	golden.Assert(t, "testdata/permissions.golden", trimLines(out.String()))
}

func trimLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// verdict is what a role gets: "yes", or the status of the refusal. Harmful
// routes are judged by the policy alone, on the object that the middleware
// finds.
func (w *world) verdict(t *testing.T, route api.Route, id, role string, harmful bool) string {
	t.Helper()
	if harmful {
		return w.judgeOnly(t, route, id, w.tokens[role])
	}
	switch code := w.probe(t, route, id, w.tokens[role]); code {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Sprint(code)
	case http.StatusNotFound:
		if strings.Contains(route.Pattern, "{id}") && id != strings.Repeat("0", 32) || route.From == api.FromBody {
			return "404"
		}
		return "yes" // allowed, and there is nothing of this id
	default:
		return "yes"
	}
}

// judgeOnly runs the middleware with a handler that does nothing.
func (w *world) judgeOnly(t *testing.T, route api.Route, id, token string) string {
	t.Helper()
	real := w.agent.http.Handler.(*front.Front)
	handled := false
	inner := real.Alone(route, func(*front.Request) error {
		handled = true
		return nil
	})
	aside := &world{agent: &Agent{http: &http.Server{Handler: inner}}}
	code := aside.probe(t, route, id, token)
	if handled {
		return "yes"
	}
	return fmt.Sprint(code)
}

// checkVerdict holds what must be true whatever the golden says.
func (w *world) checkVerdict(t *testing.T, route api.Route, object, role, verdict string) {
	t.Helper()
	public := route.Verb == api.VerbHealth || route.Verb == api.VerbLogin
	switch {
	case role == "" && !public && verdict != "401":
		t.Errorf("%s without credentials: %s", route.Name, verdict)
	case (role == "guest" || role == "board") && route.Mutates() && !public && verdict == "yes":
		t.Errorf("%s lets whoever has a share link change something", route.Name)
	case role == "guest" && strings.Contains(route.Pattern, "{id}") && object != "own" && !public && verdict == "yes":
		t.Errorf("%s shows a guest another thing: %s", route.Name, object)
	case role == "viewer" && route.Mutates() && !route.Question && !public && route.Verb != api.VerbExtend && route.Verb != api.VerbNotify && verdict == "yes":
		t.Errorf("%s lets a viewer change something", route.Name)
	case strings.HasPrefix(object, "other project") && role != "operator" && role != "admin" && role != "guest" && role != "board" && role != "" && verdict != "404" && !(role == "viewer" && verdict == "403" && route.From == api.FromBody):
		t.Errorf("%s on an object of another project as %s: %s", route.Name, role, verdict)
	case role == "operator" && (route.Verb == api.VerbLogs || route.Verb == api.VerbExec) && verdict == "yes":
		t.Errorf("%s shows an operator what tasks print", route.Name)
	}
}

// Lists, the queue, events and metrics hold nothing of other projects, and
// nobody but those who may read it sees a job's environment.
func TestListsHoldNothingForeign(t *testing.T) {
	w := newWorld(t)
	get := func(role, path string) string {
		request := httptest.NewRequest(http.MethodGet, "https://127.0.0.1"+path, nil)
		request.Header.Set("Authorization", "Bearer "+w.tokens[role])
		return w.answer(t, request).Body.String()
	}
	paths := []string{
		"/v1/jobs", "/v1/jobs?text=othe", "/v1/jobs?text=" + w.other[:8], "/v1/jobs?project=two", "/v1/jobs?user=eve", "/v1/queue", "/v1/events?index=1", "/v1/events?index=1&project=two",
		"/v1/events?index=1&job=" + w.other, "/v1/nodes", "/v1/nodes/" + w.agent.ID(), "/v1/jobs/" + w.own, "/v1/jobs/" + w.own + "/events",
		"/v1/devices", "/v1/nodes/" + w.agent.ID() + "/devices", "/v1/outlook/past", "/metrics",
		"/v1/jobs/other", "/v1/jobs/" + w.other[:4], "/v1/allocations/" + allocOf(t, w.admin, w.other).ID,
	}
	foreign := allocOf(t, w.admin, w.other).ID
	for _, role := range []string{"viewer", "user", "project-admin"} {
		for _, path := range paths {
			body := get(role, path)
			for _, secret := range []string{w.other, foreign, `"eve"`, `"two"`} {
				if strings.Contains(body, secret) && !strings.Contains(path, secret) {
					t.Errorf("%s sees %s in %s", role, secret, path)
				}
			}
			if strings.Contains(path, w.other) && strings.Contains(body, `"job":`) {
				t.Errorf("%s reads %s", role, path)
			}
			if strings.Contains(path, "text=") && strings.Contains(body, `"id":`) {
				t.Errorf("%s finds in %s: %s", role, path, body)
			}
			if path == "/v1/jobs" && strings.Contains(body, w.closed) != (role == "project-admin") {
				t.Errorf("%s and the closed job: %s", role, body)
			}
		}
	}
	if body := get("operator", "/v1/jobs/"+w.own); strings.Contains(body, "canary-env") || !strings.Contains(body, "***") {
		t.Errorf("operator sees the environment: %s", body)
	}
	if body := get("user", "/v1/jobs/"+w.own); !strings.Contains(body, "canary-env") {
		t.Error("the owner does not see the environment")
	}
	// Series name jobs and users of all projects, so only whoever reads all of them
	// gets any.
	if body := get("admin", "/metrics"); !strings.Contains(body, "nomadlike_state_index") || strings.Contains(body, "canary-env") {
		t.Errorf("metrics: %s", body)
	}
	for role, secret := range w.tokens {
		for _, path := range append(paths, "/v1/tokens", "/v1/tokens/self", "/v1/agent/self", "/v1/join-tokens", "/metrics") {
			if body := get("admin", path); strings.Contains(body, secret) || strings.Contains(body, `"hash"`) {
				t.Errorf("%s shows the secret of %s", path, role)
			}
		}
	}
}

// A job and a node say what the reader may do to them, which is what the policy
// would say to each request.
func TestObjectsSayWhatTheReaderMayDo(t *testing.T) {
	w := newWorld(t)
	for _, test := range []struct {
		role      string
		own, mate bool // may be stopped
		drain     bool
	}{
		{"viewer", false, false, false},
		{"user", true, false, false},
		{"project-admin", true, true, false},
		{"operator", true, true, true},
		{"admin", true, true, true},
	} {
		client := w.admin.WithToken(w.tokens[test.role])
		for id, want := range map[string]bool{w.own: test.own, w.mate: test.mate} {
			job, _, err := client.Job(t.Context(), id, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := slices.Contains(job.May, string(auth.VerbStop)); got != want || !slices.Contains(job.May, string(auth.VerbRead)) {
				t.Errorf("%s may %v to %s", test.role, job.May, job.Job.Name)
			}
		}
		node, _, err := client.Node(t.Context(), w.agent.ID(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Contains(node.May, string(auth.VerbDrain)); got != test.drain {
			t.Errorf("%s may %v to the node", test.role, node.May)
		}
	}
	for text, want := range map[string]int{"": 1, w.agent.ID()[:6]: 1, "no such node": 0} {
		request := httptest.NewRequest(http.MethodGet, "https://127.0.0.1/v1/nodes?text="+url.QueryEscape(text), nil)
		request.Header.Set("Authorization", "Bearer "+w.tokens["viewer"])
		var list api.NodeList
		if err := json.Unmarshal(w.answer(t, request).Body.Bytes(), &list); err != nil || len(list.Nodes) != want {
			t.Errorf("nodes with %q: %d, want %d (%v)", text, len(list.Nodes), want, err)
		}
	}
}

// Whoever waits for jobs of others hears that there are some, and not which.
func TestHoldersOfOthersHaveNoName(t *testing.T) {
	w := newWorld(t)
	node, _, err := w.admin.Node(t.Context(), w.agent.ID(), nil)
	if err != nil {
		t.Fatal(err)
	}
	ann := w.admin.WithToken(w.tokens["user"])
	waits, err := ann.SubmitJob(t.Context(), api.JobRequest{HCL: strings.Replace(sleeper("waits", "one", "read-only"), "cpu    = 0.01", fmt.Sprintf("cpu = %v", node.Capacity.CPU), 1)}, "")
	if err != nil {
		t.Fatal(err)
	}
	job, _, err := ann.Job(t.Context(), waits.JobID, nil)
	if err != nil {
		t.Fatal(err)
	}
	for job.Wait == nil { // the scheduler has not looked at it yet
		if job, _, err = ann.Job(t.Context(), waits.JobID, &api.Query{Index: job.Subjobs[0].ModifyIndex}); err != nil {
			t.Fatal(err)
		}
	}
	ask := func(method, path, body string) []byte {
		request := httptest.NewRequest(method, "https://127.0.0.1"+path, strings.NewReader(body))
		request.Header.Set("Authorization", "Bearer "+w.tokens["user"])
		request.Header.Set("Content-Type", "application/json")
		answer := w.answer(t, request).Body.Bytes()
		for _, id := range []string{w.other, w.closed} {
			if bytes.Contains(answer, []byte(id)) {
				t.Errorf("%s %s names a job that the caller may not see: %s", method, path, answer)
			}
		}
		return answer
	}
	for _, path := range []string{"/v1/jobs", "/v1/jobs/" + waits.JobID, "/v1/jobs/" + waits.JobID + "/subjobs", "/v1/jobs/" + waits.JobID + "/forecast?helps=true", "/v1/queue/timeline"} {
		ask(http.MethodGet, path, "")
	}
	more, err := json.Marshal(api.JobRequest{HCL: strings.Replace(sleeper("more", "one", "none"), "cpu    = 0.01", fmt.Sprintf("cpu = %v", node.Capacity.CPU), 1)})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/v1/jobs/plan", "/v1/jobs/forecast"} {
		ask(http.MethodPost, path, string(more))
	}
	body := ask(http.MethodGet, "/v1/queue", "")
	var queue api.Queue
	if err := json.Unmarshal(body, &queue); err != nil || len(queue.Entries) != 1 {
		t.Fatalf("queue %s: %v", body, err)
	}
	var names []string
	for _, holder := range queue.Entries[0].Holders {
		names = append(names, holder.Name)
	}
	slices.Sort(names)
	if want := []string{"", "mate", "own"}; !slices.Equal(names, want) {
		t.Errorf("holders %q, want %q", names, want)
	}

	// Behind the reserved start of another project's job: its name is not told either.
	if _, err := ann.StopJob(t.Context(), waits.JobID, api.JobStopRequest{}); err != nil {
		t.Fatal(err)
	}
	cpu := func(name, project string, cores float64) api.JobRequest {
		return api.JobRequest{HCL: strings.Replace(sleeper(name, project, "none"), "cpu    = 0.01", fmt.Sprintf("cpu = %v", cores), 1)}
	}
	waiting := func(client *api.Client, request api.JobRequest) (string, *structs.WaitReason) {
		submitted, err := client.SubmitJob(t.Context(), request, "")
		if err != nil {
			t.Fatal(err)
		}
		job, _, err := client.Job(t.Context(), submitted.JobID, nil)
		for ; err == nil && job.Wait == nil; job, _, err = client.Job(t.Context(), submitted.JobID, &api.Query{Index: job.Subjobs[0].ModifyIndex}) {
		}
		if err != nil {
			t.Fatal(err)
		}
		return submitted.JobID, job.Wait
	}
	waiting(w.admin, cpu("hushed", "two", node.Capacity.CPU))
	behind, wait := waiting(ann, cpu("behind", "one", node.Capacity.CPU-0.5))
	if wait.ID != "scheduler.reserved_hidden" || !messages.Has(messages.English, wait.ID) || !messages.Has(messages.Chinese, wait.ID) {
		t.Errorf("waits for %+v", wait)
	}
	for _, path := range []string{"/v1/jobs", "/v1/jobs/" + behind, "/v1/jobs/" + behind + "/subjobs", "/v1/queue"} {
		if answer := ask(http.MethodGet, path, ""); bytes.Contains(answer, []byte("hushed")) {
			t.Errorf("%s names a job that the caller may not see: %s", path, answer)
		}
	}
	if now, _, err := ann.Queue(t.Context(), nil); err != nil || len(now.Entries) != 1 || now.Hidden != 1 {
		t.Errorf("ann's queue is %+v, %v; one of hers and one of others wait", now, err)
	}
	if _, wait := waiting(w.admin, cpu("seen", "one", node.Capacity.CPU-0.5)); wait.ID != "scheduler.reserved" || wait.Params["job"] != "hushed" {
		t.Errorf("who may see it hears of %+v", wait)
	}
}

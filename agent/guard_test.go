package agent

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"nomadlike/agent/httpapi"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/server"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// meddler is a replica that does something between a judgement and the log,
// once.
type meddler struct {
	httpapi.Replica
	meddle atomic.Pointer[func()]
	before atomic.Pointer[func()] // the next consistent read, once
	asked  atomic.Int64           // commands that came
}

func (m *meddler) Consistent(ctx context.Context) (*state.Snapshot, error) {
	if meddle := m.before.Swap(nil); meddle != nil {
		(*meddle)()
	}
	return m.Replica.Consistent(ctx)
}

func (m *meddler) between() {
	m.asked.Add(1)
	if meddle := m.meddle.Swap(nil); meddle != nil {
		(*meddle)()
	}
}

func (m *meddler) SubmitGuarded(ctx context.Context, guard structs.Guard, kind structs.CommandKind, by string, body any) (structs.ApplyResult, uint64, error) {
	m.between()
	return m.Replica.SubmitGuarded(ctx, guard, kind, by, body)
}

func (m *meddler) SubmitJob(ctx context.Context, guard structs.Guard, user, key string, admitted *server.Admitted) (string, uint64, error) {
	m.between()
	return m.Replica.SubmitJob(ctx, guard, user, key, admitted)
}

// meddled returns a world whose API stands behind a meddler.
func meddled(t *testing.T) (*world, *meddler) {
	w := newWorld(t)
	m := &meddler{Replica: w.agent.server}
	w.door = w.agent.doorOver(m)
	return w, m
}

// send makes a request at once, in this process, and returns its status.
func (w *world) send(t *testing.T, method, path, token string, body any) (int, string) {
	t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	request := httptest.NewRequest(method, "https://127.0.0.1"+path, bytes.NewReader(data))
	request.RemoteAddr = "192.0.2.7:1234"
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	} else {
		request.Body, request.ContentLength = http.NoBody, 0
	}
	answer := w.answer(t, request)
	return answer.Code, answer.Body.String()
}

// A project's administrator who changes a description while an administrator
// cuts the project's bounds does not bring the old bounds back; nor does an
// operator those of a pool, nor a submission pass by the old ones.
func TestWhatADecisionRestsOnIsComparedInTheLog(t *testing.T) {
	w, m := meddled(t)
	limit := func(n int) *int { return &n }
	for name, test := range map[string]struct {
		before func()
		cut    func()
		ask    func() (int, string)
		want   int
		holds  func() bool
	}{
		"project": {
			func() { w.admin.PutProject(t.Context(), &structs.Project{Name: "one", UrgentLimit: limit(9)}) },
			func() { w.admin.PutProject(t.Context(), &structs.Project{Name: "one", UrgentLimit: limit(1)}) },
			func() (int, string) {
				return w.send(t, "PUT", "/v1/projects/one", w.tokens["project-admin"], structs.Project{Name: "one", UrgentLimit: limit(9), Description: "ours"})
			},
			http.StatusForbidden,
			func() bool {
				p := w.agent.store.Snapshot().Project("one")
				return p.UrgentLimit != nil && *p.UrgentLimit == 1 && p.Description == ""
			},
		},
		"pool": {
			func() {
				w.admin.PutPool(t.Context(), &structs.Pool{Name: "lab", Ceilings: structs.PoolCeilings{TimeLimit: structs.Duration(9e12)}})
			},
			func() {
				w.admin.PutPool(t.Context(), &structs.Pool{Name: "lab", Ceilings: structs.PoolCeilings{TimeLimit: structs.Duration(60e9)}})
			},
			func() (int, string) {
				return w.send(t, "PUT", "/v1/pools/lab", w.tokens["operator"],
					structs.Pool{Name: "lab", Description: "x", Ceilings: structs.PoolCeilings{TimeLimit: structs.Duration(9e12)}})
			},
			http.StatusForbidden,
			func() bool {
				return w.agent.store.Snapshot().Pool("lab").Ceilings.TimeLimit == structs.Duration(60e9)
			},
		},
		"submission": {
			func() { w.admin.PutPool(t.Context(), &structs.Pool{Name: "default"}) },
			func() {
				w.admin.PutPool(t.Context(), &structs.Pool{Name: "default", Ceilings: structs.PoolCeilings{TimeLimit: structs.Duration(60e9)}})
			},
			func() (int, string) {
				return w.send(t, "POST", "/v1/jobs", w.tokens["user"], api.JobRequest{HCL: sleeper("late", "one", "none")})
			},
			http.StatusBadRequest,
			func() bool {
				_, there := w.agent.store.Snapshot().JobNamed("one", "late")
				return !there
			},
		},
		"defaults": {
			func() {
				w.admin.PutPool(t.Context(), &structs.Pool{Name: "default", Defaults: structs.PoolDefaults{TimeLimit: structs.Duration(9e12)}})
			},
			func() {
				w.admin.PutPool(t.Context(), &structs.Pool{Name: "default", Defaults: structs.PoolDefaults{TimeLimit: structs.Duration(60e9)}})
			},
			func() (int, string) {
				return w.send(t, "POST", "/v1/jobs", w.tokens["user"], api.JobRequest{Job: &structs.Job{
					Name: "short", Project: "one", Resources: []structs.Resources{{CPU: 0.01, Memory: 16 * structs.MiB}},
					Task: structs.Task{Driver: "exec", Command: "sleep 600"},
				}})
			},
			http.StatusOK,
			func() bool {
				view, there := w.agent.store.Snapshot().JobNamed("one", "short")
				return there && view.Job.TimeLimit == structs.Duration(60e9)
			},
		},
	} {
		test.before()
		meddle := test.cut
		m.meddle.Store(&meddle)
		if code, text := test.ask(); code != test.want {
			t.Errorf("%s: %d %s", name, code, text)
		}
		if m.meddle.Load() != nil {
			t.Errorf("%s: the request was decided without the log", name)
		}
		if !test.holds() {
			t.Errorf("%s: the cut was undone", name)
		}
	}
	// What changed and does not matter is no reason to refuse.
	meddle := func() {
		w.admin.PutProject(t.Context(), &structs.Project{Name: "one", UrgentLimit: limit(1), Description: "the administrator's"})
	}
	m.meddle.Store(&meddle)
	if code, text := w.send(t, "PUT", "/v1/projects/one", w.tokens["project-admin"], structs.Project{Name: "one", UrgentLimit: limit(1), Description: "ours"}); code != http.StatusOK {
		t.Errorf("a description beside another: %d %s", code, text)
	}
}

// changes returns, for each route that puts something into the log, a request
// that would be done; the others say why they have none.
func changes() map[string]any {
	return map[string]any{
		"pools.put":        structs.Pool{Name: "some", Description: "x"},
		"pools.delete":     nil,
		"projects.put":     structs.Project{Name: "some", Description: "x"},
		"projects.archive": api.ArchiveRequest{},
		"projects.member":  api.MemberRequest{User: "mei", Role: "user"},
		"users.put":        structs.User{Name: "mei", DisplayName: "Mei"},
		"users.state":      api.UserStateRequest{Disabled: true},
		"users.delete":     nil,
		"users.password":   api.PasswordRequest{Reset: true},
		"images.put":       api.ImageRequest{Name: "lab/train"},
		"secrets.set":      api.SecretRequest{Value: structs.SecretBytes("a value of some length")},
		"secrets.delete":   nil,
		"templates.put":    api.TemplateRequest{HCL: sleeper("t", "one", "none")},
		"templates.delete": nil,

		"data.put":      api.DataRequest{Description: new(string)},
		"data.register": api.DataRegisterRequest{Storage: "nas", Source: "there/already"},
		"data.tag":      api.DataTagRequest{Version: 1, Tag: "stable"},
		"data.mark":     api.DataMarkRequest{},
		"data.take":     api.DataTakeRequest{Job: "some"},
		"data.delete":   nil,

		"service_accounts.put":    api.ServiceAccountRequest{Description: "x"},
		"service_accounts.state":  api.ServiceAccountStateRequest{Disabled: true},
		"service_accounts.token":  api.ServiceTokenRequest{},
		"service_accounts.revoke": api.ServiceRevokeRequest{All: true},
		"service_accounts.delete": nil,

		"notify.put":           api.NotifyRequest{On: []structs.NotifyRule{{Kind: structs.NotifyFailed, Channels: []string{structs.ChannelBell}}}},
		"notifications.seen":   api.NotificationsSeen{Through: 1},
		"settings.put":         api.SettingsRequest{NoSharing: new(bool)},
		"projects.delete":      nil,
		"jobs.submit":          api.JobRequest{HCL: sleeper("fresh", "one", "none")},
		"jobs.stop":            api.JobStopRequest{},
		"jobs.pause":           api.JobControlRequest{},
		"jobs.continue":        api.JobControlRequest{},
		"jobs.throttle":        api.ThrottleRequest{Busy: structs.Duration(1e9), Idle: structs.Duration(1e9)},
		"jobs.finish":          api.JobControlRequest{},
		"jobs.share":           api.ShareRequest{},
		"jobs.delete":          nil,
		"jobs.priority":        api.JobPriorityRequest{Priority: structs.PriorityUrgent},
		"jobs.annotate":        api.JobAnnotateRequest{Add: []string{"paper-3"}},
		"jobs.time_limit":      api.TimeLimitRequest{TimeLimit: structs.Duration(60e9)},
		"jobs.parallel":        api.ParallelRequest{Parallel: 1},
		"jobs.move":            api.QueueMoveRequest{Last: true},
		"wall.share":           api.ShareRequest{},
		"maintenance.add":      api.MaintenanceRequest{All: true, For: structs.Duration(3600e9)},
		"maintenance.change":   api.MaintenanceRequest{For: structs.Duration(7200e9)},
		"maintenance.end":      nil,
		"nodes.drain":          api.DrainRequest{},
		"nodes.cordon":         nil,
		"nodes.uncordon":       nil,
		"nodes.remove":         nil,
		"operator.keys_rotate": nil,
		"users.identity":       api.IdentityRequest{Provider: "company"},
		"tokens.create":        api.TokenRequest{Role: "user", Project: "one", User: "new"},
		"tokens.delete":        nil,
		"join_tokens.create":   api.JoinTokenRequest{Role: "client"},
		"join_tokens.delete":   nil,
	}
}

// noEntry says why a changing route puts no guarded entry into the log.
var noEntry = map[string]string{
	"jobs.forecast": "asks", "queue.what_if": "asks", "jobs.parse": "asks", "jobs.format": "asks", "jobs.validate": "asks", "jobs.plan": "asks",
	"nodes.available": "asks", "operator.snapshot_inspect": "asks", "code.missing": "asks",
	"code.chunks": "goes to the disk; nothing names it yet", "code.archive": "needs an archive; its entry goes by propose like the others", "code.commit": "needs a manifest; its entry goes by propose like the others",
	"data.upload": "needs a node with a storage; its entry goes by propose like the others", "data.upload_finish": "needs an upload; its entry goes by propose like the others",
	"data.upload_abort": "needs an upload; its entry goes by propose like the others", "data.upload_manifest": "goes to a node's storage", "data.upload_chunks": "goes to a node's storage",
	"data.files": "needs a node with a storage; its entry goes by propose like the others", "data.files_abort": "needs an upload; its entry goes by propose like the others", "data.files_finish": "needs an upload; its entry goes by propose like the others",
	"data.tus_create": "goes to a node's storage", "data.tus_write": "goes to a node's storage", "data.tus_remove": "goes to a node's storage",
	"data.upload_missing": "asks", "data.chunks": "asks", "data.verify": "asks",
	"jobs.consent":       "needs a VIP job that asks; its entry goes by propose like the others",
	"allocations.commit": "is done by the node; its event goes by propose like the others", "allocations.page": "hands out an address and writes nothing", "nodes.image": "needs an engine; its event goes by propose like the others", "images.delete": "names the image in its query; its entry goes by propose like the others", "nodes.treat_device": "needs a device; its entry goes by propose like the others",
	"session.create": "signs in by a token, or as login.create does", "session.begin": "changes nothing here", "login.begin": "changes nothing here", "session.delete": "ends at this agent; a token that a password made goes by propose like the others",
	"login.create": "rests on the account and its password: see TestSigningInIsComparedInTheLog", "tokens.extend": "needs a token that a sign-in made; its entry goes by propose like the others",
	"tokens.bootstrap": "the log compares the setup secret", "agent.join": "the log takes the use of the join token", "agent.renew": "a certificate, by the proof of a key: see TestRenewalWhileRemoved",
	"servers.join": "gossip", "operator.raft_remove_peer": "the log's own configuration", "operator.raft_add_peer": "needs a removed server; its entry goes by propose like the others",
	"notify.channel_put": "needs a host that is allowed; its entries go by propose like the others", "notify.channel_delete": "needs a channel; its entries go by propose like the others",
	"notify.channel_test":       "sends a message, and changes nothing",
	"operator.snapshot_restore": "replaces the state", "operator.secrets_rotate": "no value changes, and who may do what does not either",
}

// On every route that changes something, a token that is revoked between the
// judgement and the log changes nothing.
func TestRevokedTokenChangesNothing(t *testing.T) {
	w, m := meddled(t)
	requests := changes()
	node := w.register(t, "aside")
	join, err := w.admin.CreateJoinToken(t.Context(), api.JoinTokenRequest{Role: "client"})
	if err != nil {
		t.Fatal(err)
	}
	window, err := w.admin.AddMaintenance(t.Context(), api.MaintenanceRequest{All: true, Start: structs.UnixNano(time.Now().Add(time.Hour).UnixNano()), For: structs.Duration(3600e9)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.admin.PutUser(t.Context(), &structs.User{Name: "mei"}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.admin.PutServiceAccount(t.Context(), api.ServiceAccount{Name: "ci"}, api.ServiceAccountRequest{}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.admin.SetSecret(t.Context(), "wandb", false, []byte("a value of some length")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.admin.PutTemplate(t.Context(), "ddp", false, api.TemplateRequest{HCL: sleeper("t", "one", "none")}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.admin.RegisterData(t.Context(), api.DataName{Name: "cifar10"}, api.DataRegisterRequest{Storage: "nas", Source: "there"}); err != nil {
		t.Fatal(err)
	}
	requests["data.take"] = api.DataTakeRequest{Job: w.own}
	for _, route := range api.Routes() {
		if !route.Mutates() || noEntry[route.Name] != "" {
			continue
		}
		body, known := requests[route.Name]
		if !known {
			t.Errorf("%s changes something and is not tried: give it a request in changes, or a reason in noEntry", route.Name)
			continue
		}
		token, err := w.admin.CreateToken(t.Context(), api.TokenRequest{Role: "admin", User: "ada"})
		if err != nil {
			t.Fatal(err)
		}
		id := w.own
		switch {
		case route.Name == "operator.keys_rotate":
			id = string(structs.KeyGossip)
		case route.Name == "nodes.remove":
			id = node // servers are not removed this way
		case strings.HasPrefix(route.Name, "nodes."):
			id = w.agent.ID()
		case strings.HasPrefix(route.Name, "maintenance."):
			id = window.Window.ID
		case route.From == api.FromToken:
			id = w.ids["mate"]
		case strings.HasPrefix(route.Name, "join_tokens."):
			id = join.Token.ID
		case strings.HasPrefix(route.Name, "users."):
			id = "mei"
		case strings.HasPrefix(route.Name, "secrets."):
			id = "wandb"
		case strings.HasPrefix(route.Name, "templates."):
			id = "ddp"
		case strings.HasPrefix(route.Name, "data."):
			id = "cifar10"
		case strings.HasPrefix(route.Name, "service_accounts."):
			id = "ci"
		case strings.HasPrefix(route.Name, "pools."), strings.HasPrefix(route.Name, "projects."):
			id = "some"
		}
		ran := false
		revoke := func() {
			ran = true
			if _, err := w.admin.DeleteToken(t.Context(), token.Token.ID); err != nil {
				t.Error(err)
			}
		}
		m.meddle.Store(&revoke)
		code, text := w.send(t, route.Method, strings.ReplaceAll(route.Pattern, "{id}", id), token.Secret, body)
		m.meddle.Store(nil)
		if !ran {
			t.Errorf("%s was decided without the log: %d %s", route.Name, code, text)
		} else if code != http.StatusUnauthorized {
			t.Errorf("%s with a token that was revoked before the log had it: %d %s", route.Name, code, text)
		}
	}
	if w.agent.store.Snapshot().Node(node) == nil {
		t.Fatal("the node was removed")
	}
	if code, text := w.send(t, "DELETE", "/v1/nodes/"+node, w.tokens["admin"], nil); code != http.StatusOK || w.agent.store.Snapshot().Node(node) != nil {
		t.Errorf("a token that stands: %d %s", code, text)
	}
}

// register puts a node into the log that has no agent.
func (w *world) register(t *testing.T, name string) string {
	t.Helper()
	node := structs.Node{ID: fmt.Sprintf("%032x", 0xa51de), Name: name, Pool: "default", Incarnation: 1, Capacity: structs.Capacity{CPU: 1, Memory: 1 << 30}}
	if _, _, err := w.agent.server.Submit(t.Context(), structs.CommandNodeRegister, node.ID, &structs.NodeRegister{Node: node}); err != nil {
		t.Fatal(err)
	}
	return node.ID
}

// A node that is removed after its renewal was begun, and its proof checked, gets
// no certificate; until then it does.
func TestRenewalWhileRemoved(t *testing.T) {
	w, m := meddled(t)
	node := w.register(t, "aside")
	issued, err := w.agent.identity.ca().IssueAgent(auth.Grant{Role: auth.RoleClient, ID: node}, rand.Reader, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	stolen, err := auth.ParseCredentials(issued.ChainPEM, issued.KeyPEM, w.agent.CA())
	if err != nil {
		t.Fatal(err)
	}
	csr, _, err := auth.NewCSR(auth.RoleClient, node, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	proof, err := stolen.ProveKey(csr)
	if err != nil {
		t.Fatal(err)
	}
	renew := func() (int, string) {
		return w.send(t, "POST", "/v1/agent/renew", "", api.RenewRequest{Certificate: string(stolen.ChainPEM()), CSR: string(csr), Proof: proof})
	}
	if code, text := renew(); code != http.StatusOK || !strings.Contains(text, "BEGIN CERTIFICATE") {
		t.Fatalf("a member: %d %s", code, text)
	}
	removed := false
	remove := func() {
		_, err := w.admin.RemoveNode(t.Context(), node)
		removed = err == nil
	}
	m.before.Store(&remove)
	code, text := renew()
	if !removed || code != http.StatusForbidden || strings.Contains(text, "BEGIN CERTIFICATE") {
		t.Errorf("a node that was removed meanwhile (%v): %d %s", removed, code, text)
	}
}

// An administrator's cut and a project administrator's change that brings the
// old bounds back are sent at once, through different servers, many times: the
// cut stands every time.
func TestNobodyUndoesACut(t *testing.T) {
	c := startCluster(t, 3, 0)
	made, err := c.api.CreateToken(t.Context(), api.TokenRequest{Role: "project-admin", Project: "race", User: "pat"})
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for round := range 40 {
		wide, cut := 9, 1
		if _, err := c.api.PutProject(t.Context(), &structs.Project{Name: "race", UrgentLimit: &wide}); err != nil {
			t.Fatal(err)
		}
		pat := c.at(t, c.servers[round%3], made.Secret)
		var racing sync.WaitGroup
		var undone [4]error
		racing.Go(func() {
			if _, err := c.api.PutProject(t.Context(), &structs.Project{Name: "race", UrgentLimit: &cut}); err != nil {
				t.Errorf("round %d: the cut: %v", round, err)
			}
		})
		for i := range undone {
			racing.Go(func() {
				_, undone[i] = pat.PutProject(t.Context(), &structs.Project{Name: "race", UrgentLimit: &wide, Description: fmt.Sprint(round, i)})
			})
		}
		racing.Wait()
		detail, _, err := c.api.Project(t.Context(), "race", nil)
		if err != nil {
			t.Fatal(err)
		}
		if detail.Project.UrgentLimit == nil || *detail.Project.UrgentLimit != cut {
			t.Errorf("round %d: the cut was undone: %+v", round, detail.Project)
		}
		for _, err := range undone {
			switch structs.CodeOf(err) {
			case "":
			case structs.CodeForbidden, structs.CodeConflict:
				refused++
			case structs.CodeTimeout: // a busy machine; whatever became of it, the cut stands
			default:
				t.Errorf("round %d: %v", round, err)
			}
		}
	}
	if t.Logf("%d of 160 changes were refused", refused); refused == 0 {
		t.Error("nothing raced")
	}
}

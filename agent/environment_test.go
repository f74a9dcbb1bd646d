package agent

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// No route shows what a job's environment holds to those with whom its owner shares
// it read-only, to guests, or to a token that is bound to other verbs.
func TestNoRouteShowsAnothersEnvironment(t *testing.T) {
	w := newWorld(t)
	ann := w.admin.WithToken(w.tokens["user"])
	bound, err := w.admin.CreateToken(t.Context(), api.TokenRequest{Name: "reader", Role: "user", Project: "one", User: "ann", Verbs: []string{"list", "read"}})
	if err != nil {
		t.Fatal(err)
	}
	w.tokens["bound"] = bound.Secret
	open := runJob(t, w.admin.WithToken(w.tokens["mate"]), sleeper("open", "one", "read-write"), structs.JobRunning).Job.ID
	// Of this one the node tells what its rank was seen with.
	ben := w.admin.WithToken(w.tokens["mate"])
	file := strings.NewReplacer("SECRET =", "NCCL_ALGO =", "  resources {", "  checkpoint {\n    precheck = true\n  }\n  resources {").Replace(sleeper("seen", "one", "read-only"))
	w.mate = runJob(t, ben, file, structs.JobRunning).Job.ID
	eventually.Within(t, time.Minute, "the node tells of the environment", func() bool {
		events, _, err := ben.JobEvents(t.Context(), w.mate, nil)
		return err == nil && strings.Contains(fmt.Sprint(events), "canary-env") && len(allocOf(t, ben, w.mate).Seen) > 0
	})
	ask := func(role, path string) string {
		request := httptest.NewRequest(http.MethodGet, "https://127.0.0.1"+path, nil)
		request.Header.Set("Authorization", "Bearer "+w.tokens[role])
		return w.answer(t, request).Body.String()
	}
	tried := 0
	for _, route := range api.Routes() {
		if route.Method != http.MethodGet || route.Stream == api.StreamWebsocket {
			continue
		}
		for name, id := range w.subjects(t, route) {
			path, fixed, asks := strings.Cut(strings.ReplaceAll(route.Pattern, "{id}", id), "?")
			for _, query := range []string{"", "?index=1", "?with=" + w.own, "?with=" + open, "?text=canary-env"} {
				for _, role := range []string{"viewer", "user", "operator", "guest", "board", "bound"} {
					if role == "user" && (name == "own" || strings.Contains(query, w.own)) {
						continue // one's own
					}
					if asks {
						query = "?" + fixed + "&" + strings.TrimPrefix(query, "?")
					}
					tried++
					if body := ask(role, path+query); strings.Contains(body, "canary-env") {
						t.Errorf("%s sees the environment in %s of %s with %q: %.300s", role, route.Name, name, query, body)
					}
				}
			}
		}
	}
	if tried < 500 {
		t.Errorf("only %d answers were looked at", tried)
	}
	for role, want := range map[string]bool{"user": true, "project-admin": true, "admin": true, "viewer": false, "operator": false, "bound": false} {
		if got := strings.Contains(ask(role, "/v1/jobs/"+open), "canary-env"); got != want {
			t.Errorf("%s sees the environment of a job that is shared read-write: %v", role, got)
		}
	}
	if body := ask("user", "/v1/jobs/"+w.own); !strings.Contains(body, "canary-env") {
		t.Error("the owner does not see the environment")
	}
	// What stands for the values is nothing that a job may be given.
	detail, _, err := ann.Job(t.Context(), w.mate, nil)
	if err != nil {
		t.Fatal(err)
	}
	copied := detail.Job.Copy()
	copied.Name = "copied"
	_, err = ann.SubmitJob(t.Context(), api.JobRequest{Job: copied}, "")
	var refused *structs.Error
	if !errors.As(err, &refused) || len(refused.Details) != 1 || refused.Details[0].ID != "job.hidden" {
		t.Errorf("a copy with hidden values: %v", err)
	}
}

package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/structs"
)

// fakeVault seals with a key of its own.
type fakeVault struct {
	h   *harness
	key *auth.SealKey
}

func (v *fakeVault) Seal(_ context.Context, _ string, secret *structs.Secret, value []byte) error {
	if v.key == nil {
		v.key = auth.NewSealKey()
		v.h.submit(structs.CommandSecretKeyAdd, structs.SecretKeyAdd{Key: auth.SealDataKey(v.key, v.key, "k1")})
	}
	secret.Key, secret.Sealed = "k1", v.key.Seal(value, secret.Binding())
	return nil
}

func (*fakeVault) Rotate(context.Context, string) (int, error) { return 0, nil }
func (*fakeVault) Lacking() []string                           { return nil }

// secretHello is a job that names a secret.
func secretHello(name string) string {
	return strings.Replace(hello("true"), "task {", "task {\n    env = { TOKEN = secret(\""+name+"\") }", 1)
}

func namesOf(list *api.SecretList) (names []string) {
	for _, s := range list.Secrets {
		name := s.Name
		if s.Own {
			name = "~" + name
		}
		names = append(names, name)
	}
	return names
}

// A member of one project neither lists, uses, overwrites nor deletes what belongs to
// another project or to another user; within a project, only its maker and the
// project's administrators change a secret.
func TestSecretsBelongToTheirScope(t *testing.T) {
	h := newHarness(t)
	ctx := t.Context()
	li, eve, pat := h.person("li", "speech"), h.person("eve", "vision", "speech:viewer").In("vision"), h.person("pat", "speech:project-admin")
	mo := h.person("mo", "speech")
	value := []byte("hunter2-is-24-characters")
	if set, err := li.SetSecret(ctx, "wandb", false, value); err != nil || set.Version != 1 {
		t.Fatalf("set: %+v %v", set, err)
	}
	if _, err := li.SetSecret(ctx, "own", true, value); err != nil {
		t.Fatal(err)
	}
	for who, client := range map[string]*api.Client{"li": li, "mo": mo, "pat": pat, "eve": eve} {
		list, err := client.Secrets(ctx)
		if err != nil {
			t.Fatalf("%s: %v", who, err)
		}
		want := map[string][]string{"li": {"wandb", "~own"}, "mo": {"wandb"}, "pat": {"wandb"}}[who]
		if got := namesOf(list); !slices.Equal(got, want) {
			t.Errorf("%s sees %v, want %v", who, got, want)
		}
	}
	if _, err := eve.In("speech").Secrets(ctx); structs.CodeOf(err) != structs.CodeForbidden {
		t.Errorf("a viewer lists: %v", err)
	}
	for name, job := range map[string]string{"another project's": secretHello("wandb"), "another user's": secretHello("own")} {
		if _, err := eve.SubmitJob(ctx, api.JobRequest{HCL: job}, ""); structs.CodeOf(err) != structs.CodeInvalid {
			t.Errorf("eve uses %s: %v", name, err)
		}
	}
	// Naming a user in the job's record does not help.
	forged := api.JobRequest{Job: &structs.Job{
		Name: "forged", Resources: []structs.Resources{{CPU: 1, Memory: structs.GiB}},
		Task: structs.Task{Driver: "exec", Command: "true", Secrets: []structs.SecretUse{{Name: "own", Var: "T", User: "li"}}},
	}}
	if _, err := mo.SubmitJob(ctx, forged, ""); structs.CodeOf(err) != structs.CodeInvalid {
		t.Errorf("mo names li's own: %v", err)
	}
	for who, client := range map[string]*api.Client{"mo": mo, "eve as a viewer": eve.In("speech")} {
		if _, err := client.SetSecret(ctx, "wandb", false, []byte("mine now")); !isRefusal(err) {
			t.Errorf("%s overwrites: %v", who, err)
		}
		if _, err := client.DeleteSecret(ctx, "wandb", false); !isRefusal(err) {
			t.Errorf("%s deletes: %v", who, err)
		}
	}
	if _, err := eve.DeleteSecret(ctx, "wandb", false); structs.CodeOf(err) != structs.CodeNotFound {
		t.Errorf("eve deletes in her project what is of another: %v", err)
	}
	if _, err := mo.DeleteSecret(ctx, "own", true); structs.CodeOf(err) != structs.CodeNotFound {
		t.Errorf("mo deletes li's own: %v", err)
	}
	// One's own comes before the project's, and is not the project's for others.
	if _, err := mo.SetSecret(ctx, "wandb", true, []byte("the value of mo")); err != nil {
		t.Fatal(err)
	}
	for who, client := range map[string]*api.Client{"li": li, "mo": mo} {
		made, err := client.SubmitJob(ctx, api.JobRequest{HCL: strings.Replace(secretHello("wandb"), `"hello"`, `"of-`+who+`"`, 1)}, "")
		if err != nil {
			t.Fatal(err)
		}
		view, _ := h.replica.Store().Snapshot().Job(made.JobID)
		if got, want := view.Job.Task.Secrets[0].User, map[string]string{"mo": "mo"}[who]; got != want {
			t.Errorf("%s gets the secret of %q, want %q", who, got, want)
		}
	}
	if set, err := pat.SetSecret(ctx, "wandb", false, value); err != nil || set.Version != 2 || len(set.Jobs) != 1 || set.Jobs[0].Name != "of-li" {
		t.Errorf("the project's administrator: %+v %v", set, err)
	}
	if changed, err := pat.DeleteSecret(ctx, "wandb", false); err != nil || len(changed.Jobs) != 1 {
		t.Errorf("delete: %+v %v", changed, err)
	}
}

// A project goes without secrets only: whoever takes its name next finds none.
func TestAProjectWithSecretsStays(t *testing.T) {
	h := newHarness(t)
	ctx := t.Context()
	if _, err := h.admin.PutProject(ctx, &structs.Project{Name: "speech"}); err != nil {
		t.Fatal(err)
	}
	li := h.person("li", "speech")
	if _, err := li.SetSecret(ctx, "wandb", false, []byte("hunter2-is-24-characters")); err != nil {
		t.Fatal(err)
	}
	_, err := h.admin.DeleteProject(ctx, "speech")
	var refused *structs.Error
	if !errors.As(err, &refused) || refused.ID != "agent.project_has_secrets" || refused.Params["secret"] != "wandb" {
		t.Errorf("delete with a secret: %v", err)
	}
	if _, err := h.admin.In("speech").DeleteSecret(ctx, "wandb", false); err != nil {
		t.Fatal(err)
	}
	if _, err := h.admin.DeleteProject(ctx, "speech"); err != nil {
		t.Errorf("delete without: %v", err)
	}
}

func isRefusal(err error) bool {
	return structs.CodeOf(err) == structs.CodeForbidden || structs.CodeOf(err) == structs.CodeNotFound
}

// What is wrong with a value or a name is told without the value.
func TestRefusalsDoNotRepeatValues(t *testing.T) {
	h := newHarness(t)
	li := h.person("li", "speech")
	for name, size := range map[string]int{"empty": 0, "large": structs.SecretSizeMax + 1} {
		if _, err := li.SetSecret(t.Context(), name, false, make([]byte, size)); structs.CodeOf(err) != structs.CodeInvalid && structs.CodeOf(err) != structs.CodeTooLarge {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := li.SetSecret(t.Context(), "9lives", false, []byte("x")); refusalID(err) != "secret.name_characters" {
		t.Errorf("a bad name: %v", err)
	}
	for _, body := range []string{
		`{"value":"hunter2!"}`, `{"value":424242}`, `{"value":["hunter2!"]}`, `{"value":{"hunter2!":1}}`, `{"value":"aHVudGVyMg==","other":"hunter2!"}`, `{"value":"hunter2!`,
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "https://127.0.0.1/v1/secrets/wandb", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+h.secret("li"))
		request.Header.Set("Content-Type", "application/json")
		answer, err := h.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusBadRequest || strings.Contains(string(text), "hunter2") || strings.Contains(string(text), "424242") {
			t.Errorf("%s: %d %s %v", body, answer.StatusCode, text, err)
		}
	}
	list, err := li.Secrets(t.Context())
	if data, _ := json.Marshal(list); err != nil || len(list.Secrets) != 0 {
		t.Errorf("%s %v", data, err)
	}
}

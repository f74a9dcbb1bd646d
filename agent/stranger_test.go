package agent

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

const nightjar = `
job "nightjar" {
  project     = "aviary"
  description = "plumage"
  tags        = ["feather"]
  access      = "read-write"
  resources {
    cpu    = 0.01
    memory = "16MiB"
  }
  task {
    driver  = "exec"
    command = "bash -c 'echo bird''song; exec sleep 600'"
    env     = { NEST = "eggshell" }
  }
}
`

// A member of one project asks every route that reads, by whatever could name the job of
// another project, for itself and in the other project's name, and hears nothing of it.
// Whatever route is added is asked too.
func TestAStrangerFindsNothingOfAJob(t *testing.T) {
	w := newWorld(t)
	if _, err := w.admin.PutProject(t.Context(), &structs.Project{Name: "aviary"}); err != nil {
		t.Fatal(err)
	}
	wren, err := w.admin.CreateToken(t.Context(), api.TokenRequest{Name: "wren's", Role: "user", Project: "aviary", User: "wren"})
	if err != nil {
		t.Fatal(err)
	}
	owner := w.admin.WithToken(wren.Secret)
	job := runJob(t, owner, nightjar, structs.JobRunning).Job
	alloc := allocOf(t, owner, job.ID)
	if _, err := owner.SetSecret(t.Context(), "talon", false, []byte("beaks and claws")); err != nil {
		t.Fatal(err)
	}
	code := sendCode(t, owner, "wing formula")
	submitCode(t, w.agent, "glides", "aviary", "wren", code)
	manifest, _ := codeOfTexts("wing formula")
	chunk := manifest.Entries[0].Chunks[0]
	names := []string{strings.TrimPrefix(string(code), "sha256:"), job.ID, job.ID[:8], job.ID[:2], "nightjar", alloc.ID, alloc.ID[:8], "aviary", "wren", wren.Token.ID, "talon"}
	secrets := []string{"nightjar", "plumage", "feather", "birdsong", "eggshell", "talon", "f0000.py", "wing formula", "beaks", wren.Secret, `"wren"`, job.ID, alloc.ID, wren.Token.ID}
	query := url.Values{"project": {"aviary"}, "job": {job.ID}, "user": {"wren"}, "text": {"night"}, "name": {"nightjar"}, "index": {"1"}, "all": {"true"}, "path": {"/"}, "subjob": {"0"}, "digest": {string(chunk.Digest)}}

	// With the owner's token the same requests find all of it: they ask for what is there.
	found := map[string]bool{}
	for _, request := range stranger(names, query, wren.Secret) {
		answer := w.answer(t, request).Body.String()
		for _, secret := range secrets {
			found[secret] = found[secret] || strings.Contains(answer, secret)
		}
	}
	for _, secret := range secrets {
		if !found[secret] && secret != "beaks" && secret != wren.Secret { // nobody reads these
			t.Errorf("the owner does not find %q: the test asks for the wrong things", secret)
		}
	}
	for _, role := range []string{"viewer", "user", "project-admin", "service", "guest", "mate"} {
		for _, request := range stranger(names, query, w.tokens[role]) {
			answer := w.answer(t, request)
			told := answer.Body.String()
			for _, values := range answer.Header() {
				told += "\n" + strings.Join(values, "\n")
			}
			// What one says oneself may be said back.
			for _, asked := range append(strings.Split(strings.Trim(request.URL.Path, "/"), "/"), "aviary") {
				if len(asked) > 2 {
					told = strings.ReplaceAll(told, asked, "…")
				}
			}
			for _, secret := range secrets {
				if strings.Contains(told, secret) && !strings.Contains(request.URL.RawQuery, secret) {
					t.Errorf("%s hears %q from %s (%s): %d %s", role, secret, request.URL, request.Header.Get(api.HeaderProject), answer.Code, told)
				}
			}
		}
	}
}

// stranger is what somebody asks with a token who looks for things by their names: every
// route that reads, with each name in its path, and with all of them as filters.
func stranger(names []string, query url.Values, token string) []*http.Request {
	var requests []*http.Request
	for _, route := range api.Routes() {
		if route.Mutates() || route.Method != http.MethodGet {
			continue
		}
		paths := []string{route.Pattern}
		if strings.Contains(route.Pattern, "{id}") {
			paths = nil
			for _, name := range names {
				paths = append(paths, strings.ReplaceAll(route.Pattern, "{id}", name))
			}
		}
		for _, path := range paths {
			for _, more := range []string{"", "?" + query.Encode()} {
				for _, acting := range []string{"", "aviary"} {
					request := httptest.NewRequest(route.Method, "https://127.0.0.1"+path+more, nil)
					request.RemoteAddr = "192.0.2.7:1234"
					request.Header.Set("Authorization", "Bearer "+token)
					if acting != "" {
						request.Header.Set(api.HeaderProject, acting)
					}
					requests = append(requests, request)
				}
			}
		}
	}
	return requests
}

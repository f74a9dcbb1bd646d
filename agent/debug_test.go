package agent

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"nomadlike/agent/config"
	"nomadlike/agent/httpapi"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// What a server tells of its inside has everything but secrets: neither those of its
// configuration, nor of people and jobs. Administrators alone have it.
func TestInsideOfAServer(t *testing.T) {
	const planted = "canary-of-some-length"
	yes, no := true, false
	options := testOptions(t)
	options.Lines = httpapi.NewLogLines(1 << 20)
	options.Log = NewLogger(&testWriter{t: t}, "text", new(slog.LevelVar), options.Lines)
	startAgent(t, config.Settings{Dev: &yes, Plugins: []config.PluginBlock{{
		Name: "nvidia", Enabled: &no, Env: map[string]string{"TOKEN": planted}, Config: cty.ObjectVal(map[string]cty.Value{"root": cty.StringVal(planted)}),
	}}}, options)
	admin := savedClient(t, options)
	if _, err := admin.SetSecret(t.Context(), "wandb", false, []byte(planted)); err != nil {
		t.Fatal(err)
	}
	token, err := admin.CreateToken(t.Context(), api.TokenRequest{Role: "operator"})
	if err != nil {
		t.Fatal(err)
	}
	runJob(t, admin, `job "quiet" {
  resources {
    cpu    = 0.1
    memory = "16MiB"
  }
  task {
    command = "true"
    env     = { KEY = "`+planted+`" }
  }
}`, structs.JobSucceeded)
	for part, has := range map[string]string{
		api.DebugAgent: `"bind": "127.0.0.1"`, api.DebugMetrics: "nomadlike_raft_term", api.DebugGoroutines: "goroutine profile", api.DebugHeap: "\x1f\x8b", api.DebugCPU: "\x1f\x8b", api.DebugLog: "level=INFO",
	} {
		var text bytes.Buffer
		if err := admin.Debug(t.Context(), &text, "", part, 10*time.Millisecond); err != nil {
			t.Errorf("%s: %v", part, err)
		}
		if !strings.Contains(text.String(), has) {
			t.Errorf("%s lacks %q: %.400s", part, has, text.String())
		}
		for _, secret := range []string{planted, token.Secret} {
			if strings.Contains(text.String(), secret) {
				t.Errorf("%s tells a secret", part)
			}
		}
	}
	for what, refused := range map[string]struct {
		client       *api.Client
		server, part string
		want         structs.ErrorCode
	}{
		"an operator":            {admin.WithToken(token.Secret), "", api.DebugAgent, structs.CodeForbidden},
		"nobody":                 {admin.WithToken(""), "", api.DebugLog, structs.CodeUnauthorized},
		"no part":                {admin, "", "../etc/shadow", structs.CodeInvalid},
		"a server of no cluster": {admin, "10.0.0.1", api.DebugAgent, structs.CodeNotFound},
	} {
		if err := refused.client.Debug(t.Context(), new(bytes.Buffer), refused.server, refused.part, 0); structs.CodeOf(err) != refused.want {
			t.Errorf("%s: %v", what, err)
		}
	}
}

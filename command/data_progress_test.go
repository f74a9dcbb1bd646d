package command

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"nomadlike/agent"
	"nomadlike/agent/config"
	"nomadlike/internal/eventually"
	"nomadlike/internal/messages"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/client/data/remote"
	"nomadlike/nomadlike/structs"
)

// gate lets a web server give half of a large answer at once, then a byte for
// each beat, and the rest when it is opened. So a copy stands still, and yet its
// connection lives.
type gate struct {
	beat chan struct{}
	open chan struct{}
}

// Half of the dataset, and how much more at most: together they are 50 %.
const (
	gatedHalf = 1 << 20
	gatedMore = gatedHalf / 100
)

func (g *gate) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(&gated{ResponseWriter: w, gate: g, ctx: r.Context()}, r)
	})
}

// gated is one answer.
type gated struct {
	http.ResponseWriter
	gate *gate
	ctx  context.Context
	sent int
}

// Write passes on what the gate lets through, and waits with the rest.
func (w *gated) Write(text []byte) (int, error) {
	done := 0
	for done < len(text) {
		n := min(len(text)-done, max(gatedHalf-w.sent, 0))
		if n == 0 {
			beat := w.gate.beat
			if w.sent >= gatedHalf+gatedMore {
				beat = nil
			}
			select {
			case <-w.gate.open:
				n = len(text) - done
			case <-beat:
				n = 1
			case <-w.ctx.Done():
				return done, w.ctx.Err()
			}
		}
		n, err := w.ResponseWriter.Write(text[done : done+n])
		done, w.sent = done+n, w.sent+n
		if err != nil {
			return done, err
		}
		if err := http.NewResponseController(w.ResponseWriter).Flush(); err != nil {
			return done, err
		}
	}
	return done, nil
}

// What a person sees of a copy that has come half way: on the command line in
// both languages, in the API, and in the end in the job's events.
func TestHowFarACopyIsIsSeen(t *testing.T) {
	site, nas, home := t.TempDir(), t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"large": strings.Repeat("x", 2*gatedHalf), remote.ListDefault: "-  large\n"} {
		if err := os.MkdirAll(filepath.Join(site, "words"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(site, "words", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	g := &gate{beat: make(chan struct{}), open: make(chan struct{})}
	server := httptest.NewServer(g.around(http.FileServer(http.Dir(site))))
	defer server.Close()

	zero, yes, free, loopback := 0, true, 0.001, "127.0.0.1"
	config, err := config.Load(nil, config.Settings{Dev: &yes, Bind: &loopback, Ports: &config.PortsBlock{HTTP: &zero, Gossip: &zero}, Client: &config.ClientBlock{
		Data: &config.DataBlock{FreeMin: &free},
		Storages: []config.StorageBlock{
			{Name: "nas", Path: nas, Serves: []string{structs.StorageOutput}},
			{Name: "far", HTTP: &config.StorageHTTPBlock{URL: server.URL}},
		},
	}}, messages.English)
	if err != nil {
		t.Fatal(err)
	}
	getenv := func(name string) string {
		return map[string]string{"NOMADLIKE_CONFIG_DIR": home, "PATH": os.Getenv("PATH"), "TZ": "UTC"}[name]
	}
	running, err := agent.Start(t.Context(), config, agent.Options{
		Log: slog.New(slog.DiscardHandler), Getenv: getenv, Version: "test",
		Supervisor: supervise,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), scriptPatience)
		defer cancel()
		if err := running.Stop(ctx); err != nil {
			t.Errorf("stop agent: %v", err)
		}
	}()
	say := func(args ...string) string {
		t.Helper()
		var out, complaints bytes.Buffer
		env := &Env{
			Context: t.Context(), Stdin: strings.NewReader(""), Stdout: &Screen{Writer: &out}, Stderr: &Screen{Writer: &complaints},
			Getenv: getenv, Language: messages.English,
		}
		if code := Run(env, args); code != 0 {
			t.Fatalf("%q exits with %d: %s", args, code, complaints.String())
		}
		return out.String()
	}
	file := filepath.Join(home, "far.hcl")
	if err := os.WriteFile(file, []byte(`job "far" {
  resources {
    cpu    = 0.1
    memory = "32MiB"
  }
  task {
    driver  = "exec"
    command = "wc -c /workspace/dataset/private/words/large"
  }
  dataset "words" { storage = "far" }
}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	say("job", "run", "-detach", file)

	half := regexp.MustCompile(`(?m)^.*\bpreparing: data 50 %.*$`)
	shown := ""
	defer func() {
		if t.Failed() {
			t.Logf("the last status was\n%s", shown)
		}
	}()
	eventually.Within(t, 3*scriptPatience, "job status says that half is copied", func() bool {
		select {
		case g.beat <- struct{}{}: // a byte: copies are told of as they move
		default:
		}
		shown = say("job", "status", "far")
		return half.MatchString(shown)
	})
	if text := say("-lang", "zh", "job", "status", "far"); !strings.Contains(text, "50 %") {
		t.Errorf("in Chinese the status is\n%s", text)
	}
	if text := say("job", "status", "-json", "far"); !regexp.MustCompile(`"step": *"data",\s*"progress": *50\b`).MatchString(text) {
		t.Errorf("the API says\n%s", text)
	}
	close(g.open)
	eventually.Within(t, 3*scriptPatience, "the job ends well", func() bool { return strings.Contains(say("job", "status", "far"), "succeeded") })
	saved, err := api.LoadContext(home)
	if err != nil {
		t.Fatal(err)
	}
	client, err := api.New(api.Config{Address: saved.Address, CAPEM: []byte(saved.CA), Token: saved.Token})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	eventually.Within(t, scriptPatience, "the job's events name the copy", func() bool {
		list, _, err := client.JobEvents(t.Context(), strings.TrimSpace(say("job", "status", "-t", "{{.Job.ID}}", "far")), nil)
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(list.Events, func(e structs.Event) bool {
			return e.ID == structs.EventDataPrepared && e.Params["dataset"] == "words" && e.Params["size"] == structs.FormatSize(2*gatedHalf)
		})
	})
}

package python

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"nomadlike/agent"
	"nomadlike/agent/config"
	"nomadlike/internal/messages"
	"nomadlike/nomadlike/auth"
	"nomadlike/plugins/exec/supervisor/supervisortest"
)

const patience = 60 * time.Second

// unittest runs one file of tests/.
func unittest(t *testing.T, file string, env ...string) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed here")
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	run := exec.CommandContext(ctx, python, "-B", "-W", "error", "-m", "unittest", filepath.Join("tests", file))
	run.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "NOMADLIKE_LANG=en", "NOMADLIKE_ADDR=", "NOMADLIKE_TOKEN=", "NOMADLIKE_CACERT=", "NOMADLIKE_PROJECT=")
	run.Env = append(run.Env, env...)
	if out, err := run.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", file, err, out)
	} else if !strings.Contains(string(out), "\nOK") || strings.Contains(string(out), "Ran 0 tests") {
		t.Errorf("%s ran no test:\n%s", file, out)
	}
}

func TestAnswersThatAreNotAsTheyShouldBe(t *testing.T) { unittest(t, "test_client.py") }

// TestOnCluster runs jobs on a development agent.
func TestOnCluster(t *testing.T) {
	built, err := supervisortest.Build()
	if err != nil {
		t.Fatal(err)
	}
	defer built.Remove()
	dir := t.TempDir()
	env := map[string]string{"NOMADLIKE_CONFIG_DIR": dir}
	zero, yes, loopback := 0, true, "127.0.0.1"
	settings, err := config.Load(nil, config.Settings{Dev: &yes, Bind: &loopback, Ports: &config.PortsBlock{HTTP: &zero, Gossip: &zero}}, messages.English)
	if err != nil {
		t.Fatal(err)
	}
	running, err := agent.Start(t.Context(), settings, agent.Options{
		Log: slog.New(slog.DiscardHandler), Getenv: func(name string) string { return env[name] }, Version: "test", Supervisor: built.Command(),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := running.Stop(ctx); err != nil {
			t.Error(err)
		}
	}()
	unittest(t, "test_cluster.py", "NOMADLIKE_CONFIG_DIR="+dir)
	for _, language := range []string{"en", "zh"} {
		followGuide(t, filepath.Join("..", "..", "website", "guide", language, "programs.md"), dir)
	}
}

// fence is a block of a page.
var fence = regexp.MustCompile("(?ms)^```([^\n]*)\n(.*?)^```$")

// followGuide does what the page about programs says.
func followGuide(t *testing.T, page, config string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	sources, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	dir, typed := t.TempDir(), ""
	for _, block := range fence.FindAllStringSubmatch(string(text), -1) {
		_, name, saved := strings.Cut(block[1], "file=")
		switch {
		case saved:
			if err := os.WriteFile(filepath.Join(dir, name), []byte(block[2]), 0o600); err != nil {
				t.Fatal(err)
			}
		case strings.HasPrefix(block[2], "context="):
			typed = block[2]
		}
	}
	run := func(name string, args ...string) string {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%s is not installed here", name)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		command := exec.CommandContext(ctx, name, args...)
		command.Dir = dir
		command.Env = append(os.Environ(), "PYTHONPATH="+sources, "PYTHONDONTWRITEBYTECODE=1", "NOMADLIKE_CONFIG_DIR="+config, "NOMADLIKE_ADDR=", "NOMADLIKE_TOKEN=", "NOMADLIKE_CACERT=", "NOMADLIKE_PROJECT=")
		out, err := command.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %s: %v\n%s", page, name, err, out)
		}
		return string(out)
	}
	if out := run("python3", "sweep.py"); out != "1 1.3\n2 2.3\n3 3.3\n" {
		t.Errorf("%s: the sweep printed\n%s", page, out)
	}
	if _, err := exec.LookPath("curl"); err != nil {
		return
	}
	if out := run("bash", "-euo", "pipefail", "-c", strings.Replace(strings.ReplaceAll(typed, "jobs/hello", "jobs/hello-"+filepath.Base(filepath.Dir(page))), `"name": "hello"`, `"name": "hello-`+filepath.Base(filepath.Dir(page))+`"`, 1)); strings.Count(out, `"state":`) < 2 {
		t.Errorf("%s: curl printed\n%s", page, out)
	}
}

// TestTokensAreToldToServersAlone puts those who would like to be told one in the place
// of a server: a node of the cluster, servers of others, and who speaks no TLS.
func TestTokensAreToldToServersAlone(t *testing.T) {
	ours, theirs, namesake := ca(t, "ours"), ca(t, "theirs"), ca(t, "ours")
	var told, toldOthers atomic.Int64
	serve := func(ca *auth.CA, role auth.Role, id string, count *atomic.Int64) string {
		issued, err := ca.IssueAgent(auth.Grant{Role: role, ID: id}, rand.Reader, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		pair, err := tls.X509KeyPair(issued.ChainPEM, issued.KeyPEM)
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			count.Add(1)
			if r.Header.Get("Authorization") != "Bearer secret" || r.TLS.ServerName != auth.ServerName || r.TLS.Version != tls.VersionTLS13 || r.TLS.NegotiatedProtocol != auth.ALPNHTTP {
				w.WriteHeader(http.StatusTeapot)
			}
			_, _ = io.WriteString(w, `{"jobs":[]}`)
		}))
		server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{auth.ALPNHTTP}}
		server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
		server.StartTLS()
		t.Cleanup(server.Close)
		return server.URL
	}
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { toldOthers.Add(1) }))
	t.Cleanup(plain.Close)
	var learned atomic.Int64
	at := map[string]string{
		"server": serve(ours, auth.RoleServer, "s1", &told), "ca": string(ours.CertificatePEM()),
		"node": serve(ours, auth.RoleClient, "n1", &toldOthers), "namesake": serve(namesake, auth.RoleServer, "s1", &toldOthers),
		"stranger": serve(theirs, auth.RoleServer, "s1", &learned), "ca_of_stranger": string(theirs.CertificatePEM()),
		"plain": strings.Replace(plain.URL, "http:", "https:", 1),
	}
	text, err := json.Marshal(at)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "trust.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	unittest(t, "test_trust.py", "TRUST="+path)
	if told.Load() != 2 || learned.Load() != 1 || toldOthers.Load() != 0 {
		t.Errorf("the server was asked %d times, the one that was learned %d times, others %d times", told.Load(), learned.Load(), toldOthers.Load())
	}
}

func ca(t *testing.T, cluster string) *auth.CA {
	t.Helper()
	made, err := auth.NewCA(cluster, rand.Reader, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return made
}

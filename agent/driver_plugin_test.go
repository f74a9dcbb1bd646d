package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"nomadlike/agent/config"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// A job runs on the driver of website/examples, which the agent loads from its
// plugin_dir.
func TestDriverPlugin(t *testing.T) {
	dir := shortDir(t)
	plugins, state, data := filepath.Join(dir, "plugins"), filepath.Join(dir, "idle"), filepath.Join(dir, "data")
	program := filepath.Join(plugins, "idle")
	build := exec.Command("go", "build", "-o", program, "../website/examples/plugins/driver-idle")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the plugin: %v\n%s", err, out)
	}
	content, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	digest := hex.EncodeToString(sum[:])
	yes, options := true, testOptions(t)
	agent := startAgent(t, config.Settings{Dev: &yes, DataDir: &data, PluginDir: &plugins, Plugins: []config.PluginBlock{{
		Name: "idle", SHA256: &digest, Args: []string{"-state", state, "-hide", data}, Env: map[string]string{"PATH": "/usr/bin:/bin"},
	}}}, options)
	client := loggedIn(t, options)
	script := `read -r p n s q g e y o f a b c d u v w x prio nice rest </proc/self/stat; echo nice $nice`
	job := runJob(t, client, `
job "leftovers" {
  resources {
    cpu    = 0.1
    memory = "64MiB"
  }
  task {
    driver  = "idle"
    command = "sh -c '`+script+`'"
  }
}
`, structs.JobSucceeded)
	if out := logsOf(t, client, allocOf(t, client, job.Job.ID).ID, api.LogOptions{}); !strings.Contains(out, "nice 19\n") {
		t.Errorf("the task wrote %q", out)
	}
	node, _, err := client.Node(t.Context(), agent.ID(), nil)
	if err != nil {
		t.Fatal(err)
	}
	// It says that it masks, is told what, and does.
	if _, err := client.SetSecret(t.Context(), "token", false, []byte(secretValue)); err != nil {
		t.Fatal(err)
	}
	job = runJob(t, client, `
job "secretive" {
  resources {
    cpu    = 0.1
    memory = "64MiB"
  }
  task {
    driver  = "idle"
    command = "sh -c 'test $${#TOKEN} = 24 && echo it is $TOKEN'"
    env     = { TOKEN = secret("token") }
  }
}
`, structs.JobSucceeded)
	if out := logsOf(t, client, allocOf(t, client, job.Job.ID).ID, api.LogOptions{}); out != "it is [masked: token]\n" {
		t.Errorf("the task wrote %q", out)
	}
	if !slices.Contains(node.Drivers, "idle") || node.Attributes["driver.idle.masks"] != "true" || node.Attributes["driver.idle.nice"] != "19" {
		t.Errorf("drivers are %v, attributes %v", node.Drivers, node.Attributes)
	}
}

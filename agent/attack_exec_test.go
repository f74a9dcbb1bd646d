package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"nomadlike/agent/config"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/client/account"
	"nomadlike/nomadlike/structs"
)

// openDir is a directory of a test that users of every id can pass through.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "nomadlike-attack-")
	if err == nil {
		t.Cleanup(func() { os.RemoveAll(dir) })
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// attack is a job's script that reports everything that it could do.
func attack(agent *Agent, options Options, victim string) string {
	const name = "nomadlike-attack"
	saved, _ := api.ContextDir(options.Getenv)
	var script strings.Builder
	for _, path := range []string{
		"/etc/cron.d/" + name, "/root/" + name, "/etc/" + name, "/usr/bin/" + name, agent.DataDir() + "/" + name,
		agent.DataDir() + "/client/records/" + victim + "/output.json", agent.DataDir() + "/client/alloc/" + victim + "/task/" + name,
	} {
		fmt.Fprintf(&script, "(echo x >%s) 2>/dev/null && echo wrote %s\n", path, path)
	}
	for _, path := range []string{
		"/etc/shadow", filepath.Join(saved, api.ContextFile), agent.DataDir() + "/join-server", agent.DataDir() + "/join-client",
		agent.DataDir() + "/setup-secret", agent.DataDir() + "/identity/agent-key.pem", agent.DataDir() + "/identity/gossip.key", agent.DataDir() + "/identity/ca-key.pem",
		agent.DataDir() + "/client/records/" + victim + "/logs/stdout.0", agent.DataDir() + "/client/allocs.db",
		agent.DataDir() + "/client/alloc/" + victim + "/task/secret", agent.DataDir() + "/client/records/" + victim + "/hooks.json",
	} {
		fmt.Fprintf(&script, "[ -n \"$(cat %s 2>/dev/null)\" ] && echo read %s\n", path, path)
	}
	for _, path := range []string{
		agent.DataDir(), agent.DataDir() + "/client/alloc/" + victim, agent.DataDir() + "/client/records/" + victim,
		agent.DataDir() + "/client/exec",
	} {
		fmt.Fprintf(&script, "ls %s 2>/dev/null | grep -q identity && echo lists %s\n", path, path)
	}
	script.WriteString("grep -l -a -s secret-of-the-[v]ictim /proc/[0-9]*/environ && echo read the environment of the victim\n")
	script.WriteString("kill -0 1 2>/dev/null && [ \"$(cat /proc/1/comm)\" = systemd ] && echo signals init\n")
	script.WriteString("echo x >mine && echo uid $(id -u) of $USER in $HOME\n")
	return script.String()
}

// A plain job of a node that is told nothing is no root of it, isolated or raw,
// and finds nothing that belongs to the node, its agent or another job.
func TestTasksAreNotRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("an agent without root has no root to give away")
	}
	for _, isolation := range []string{"auto", "raw"} {
		t.Run(isolation, func(t *testing.T) {
			yes, data, options := true, filepath.Join(openDir(t), "data"), testOptions(t)
			agent := startAgent(t, config.Settings{Dev: &yes, DataDir: &data, Client: &config.ClientBlock{Enabled: &yes, Exec: &config.ExecBlock{Isolation: &isolation}}}, options)
			client := loggedIn(t, options)
			other := runJob(t, client, strings.Replace(inProject(hello(`sh -c 'echo said; echo kept >secret; sleep 3600'`), "other"), "driver", "env = { SECRET = \"secret-of-the-victim\" }\n driver", 1), structs.JobRunning)
			victim := allocOf(t, client, other.Job.ID).ID
			if err := os.WriteFile(filepath.Join(agent.DataDir(), joinServer), []byte("secret\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			job := runJob(t, client, scripted("attack", attack(agent, options, victim)), structs.JobSucceeded)
			got := logsOf(t, client, allocOf(t, client, job.Job.ID).ID, api.LogOptions{})
			uid := wantUID(structs.DefaultProject)
			if want := fmt.Sprintf("uid %d of %s in %s\n", uid, job.Job.User, filepath.Join(data, clientDir, "alloc", allocOf(t, client, job.Job.ID).ID, "task")); got != want {
				t.Errorf("the attack says\n%s\nwant\n%s", got, want)
			}
			for _, path := range []string{"/etc/cron.d/nomadlike-attack", "/root/nomadlike-attack", "/etc/nomadlike-attack", "/usr/bin/nomadlike-attack"} {
				if os.Remove(path) == nil {
					t.Errorf("%s was written", path)
				}
			}
		})
	}
}

// Where the record of the pool says root, by name, the same attack succeeds, and
// everybody is told before.
func TestRootByTheRecord(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("an agent without root has no root to give away")
	}
	agent, client := devAgent(t)
	node := func() *api.NodeDetail {
		t.Helper()
		node, _, err := client.Node(t.Context(), agent.ID(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return node
	}
	warned := func() bool {
		t.Helper()
		plan, err := client.PlanJob(t.Context(), jobOf(hello("true")))
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(plan.Warnings, func(e structs.Error) bool { return e.ID == "pool.warn.root" })
	}
	if node().Root || warned() {
		t.Error("root is announced where nothing is root")
	}
	letRoot(t, client)
	if !node().Root || !warned() {
		t.Errorf("nobody says that tasks run as root: node %v, plan %v", node().Root, warned())
	}
	t.Cleanup(func() { os.Remove("/etc/nomadlike-attack") })
	job := runJob(t, client, scripted("attack", "id -u; echo x >/etc/nomadlike-attack && echo wrote; [ -n \"$(cat /etc/shadow)\" ] && echo read"), structs.JobSucceeded)
	if got := logsOf(t, client, allocOf(t, client, job.Job.ID).ID, api.LogOptions{}); got != "0\nwrote\nread\n" {
		t.Errorf("the task says %q", got)
	}
}

// wantUID is the id of a project on a node that has not allotted any.
func wantUID(project string) int {
	return account.UIDOf(project, account.UIDMinDefault, account.UIDMaxDefault)
}

// inProject puts a job file's job into a project.
func inProject(hcl, project string) string {
	return strings.Replace(hcl, "resources {", "project = "+strconv.Quote(project)+"\n resources {", 1)
}

// scripted is a job that runs a shell script.
func scripted(name, script string) string {
	return fmt.Sprintf(`
job %q {
  resources {
    cpu    = 0.1
    memory = "32MiB"
  }
  task {
    driver  = "exec"
    command = "sh -c 'eval \"$SCRIPT\"'"
    env     = { SCRIPT = %q }
  }
}
`, name, script)
}

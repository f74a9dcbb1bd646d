package client

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// TestEnvFileOfTheNode: every task has what the file says, the job's own words win
// and may name it, and a file that is gone is the node's fault.
func TestEnvFileOfTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, w := newControl(), newFakeRuntime()
		file := filepath.Join(t.TempDir(), "cann.env")
		if err := os.WriteFile(file, []byte("export ASCEND_TOOLKIT_HOME=/usr/local/Ascend/ascend-toolkit/latest\n"+
			"export PYTHONPATH=\"${ASCEND_TOOLKIT_HOME}/python/site-packages:$PYTHONPATH\"\nASCEND_OPP_PATH=/opt\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, stop := c.node(t, tempDir(t), "n1", w.driver(), func(config *Config) { config.EnvFile = file })
		settle()
		a := gang("train", 1, "x", "n1")[0]
		a.Job.Task.Env = map[string]string{"PYTHONPATH": "/mine:$PYTHONPATH", "ASCEND_OPP_PATH": "/own"}
		c.assign(a)
		settle()
		w.mu.Lock()
		env := w.mu.tasks[driver.TaskID(a.Alloc.ID+".main")].spec.Env
		w.mu.Unlock()
		for _, want := range []string{
			"ASCEND_TOOLKIT_HOME=/usr/local/Ascend/ascend-toolkit/latest", "ASCEND_OPP_PATH=/own",
			"PYTHONPATH=/mine:/usr/local/Ascend/ascend-toolkit/latest/python/site-packages",
		} {
			if !strings.Contains("\n"+strings.Join(env, "\n")+"\n", "\n"+want+"\n") {
				t.Errorf("no %s in %q", want, env)
			}
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		b := gang("later", 1, "x", "n1")[0]
		c.assign(b)
		settle()
		if last := c.last(b.Alloc.ID); last.Status != structs.AllocFailed || !last.Infra || last.Cause.ID != "client.env_file" {
			t.Errorf("%+v", last)
		}
		stop()
	})
}

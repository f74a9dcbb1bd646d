package client

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// cann is what CANN's set_env.sh looks like.
const cann = `# CANN
export ASCEND_TOOLKIT_HOME=/usr/local/Ascend/ascend-toolkit/latest
export LD_LIBRARY_PATH=${ASCEND_TOOLKIT_HOME}/lib64:/usr/local/Ascend/driver/lib64:$LD_LIBRARY_PATH
export PYTHONPATH="${ASCEND_TOOLKIT_HOME}/python/site-packages:$PYTHONPATH"
export PATH=${ASCEND_TOOLKIT_HOME}/bin:$PATH

ASCEND_OPP_PATH='/opt/$opp'
`

func TestEnvFile(t *testing.T) {
	got, err := parseEnvFile(cann, map[string]string{"PATH": "/usr/bin:/bin"})
	if err != nil {
		t.Fatal(err)
	}
	const home = "/usr/local/Ascend/ascend-toolkit/latest"
	want := map[string]string{
		"ASCEND_TOOLKIT_HOME": home, "LD_LIBRARY_PATH": home + "/lib64:/usr/local/Ascend/driver/lib64",
		"PYTHONPATH": home + "/python/site-packages", "PATH": home + "/bin:/usr/bin:/bin", "ASCEND_OPP_PATH": "/opt/$opp",
	}
	if !maps.Equal(got, want) {
		t.Fatalf("%q", got)
	}
	for _, bad := range []string{"if true", "export A", "A=$(date)", "A=`date`", "A=b c", "A=\"b", "1A=b", "A=b;c=d", "A=${B:+x}", "source x"} {
		if _, err := parseEnvFile("OK=1\n"+bad, nil); err == nil || !strings.Contains(err.Error(), "client.env_file_line line=2") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestEnvFileOfTheNode: every task has what the file says, the job's own words win
// and may name it, and a file that is gone is the node's fault.
func TestEnvFileOfTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, w := newControl(), newWard()
		file := filepath.Join(t.TempDir(), "cann.env")
		if err := os.WriteFile(file, []byte(cann), 0o600); err != nil {
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

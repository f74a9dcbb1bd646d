package taskproc

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOverlay(t *testing.T) {
	got := Overlay([]string{"A=1", "B=2", "C=3", "A=4"}, []string{"B=x", "A=9", "D=4", "D=5"})
	if diff := cmp.Diff([]string{"C=3", "B=x", "A=9", "D=5"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestFindProgram(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"run": 0o755, "data": 0o644, "script": 0o755} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/no/such/sh -x\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	env := []string{"PATH=/no:" + dir}
	for name, want := range map[string]string{
		"run": "", "./run": "", dir + "/run": "", "data": "command_not_executable", "none": "command_not_found", "./none": "command_missing",
		"/": "command_not_executable", "run/x": "command_missing",
	} {
		path, failure := FindProgram(name, dir, env)
		got := ""
		if failure != nil {
			got = failure.Kind
		}
		if got != want || want == "" && path != filepath.Join(dir, "run") {
			t.Errorf("%s is %q, %q; want %q", name, path, got, want)
		}
	}
	if f := Explain("script", dir+"/script", dir, syscall.ENOENT); f.Kind != "interpreter_missing" || f.Params["interpreter"] != "/no/such/sh" {
		t.Errorf("failure is %v", f)
	}
	if f := Explain("run", dir+"/run", dir, syscall.ENOMEM); f.ExitCode != 0 {
		t.Errorf("a node without memory is the command's fault: %v", f)
	}
}

package docker

import (
	"slices"
	"strings"
	"testing"
)

// TestEnvironmentNamesVariables: what a shell has lies below the image, the image
// below the job, whose values may name them all; the image's directory counts.
func TestEnvironmentNamesVariables(t *testing.T) {
	in := baseInputs()
	in.Image.Env = []string{"PATH=/opt/image/bin", "LANG=C", "LD_LIBRARY_PATH=/lib1"}
	in.Image.WorkingDir = "/srv"
	in.Spec.Dir = ""
	in.Spec.EnvBase = []string{"HOME=/root", "LANG=C.UTF-8", "PATH=/usr/bin"}
	in.Spec.EnvNamed = []string{"PATH", "LD_LIBRARY_PATH", "CACHE", "MODE"}
	in.Spec.Env = []string{"PATH=/opt/conda/bin:$PATH", "LD_LIBRARY_PATH=/lib2:$LD_LIBRARY_PATH", "CACHE=$HOME/c$PLAIN", "MODE=${NONE:-fast}$$", "PLAIN=$x"}
	out, err := settings(in)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"HOME=/root", "LANG=C", "LD_LIBRARY_PATH=/lib2:/lib1", "CACHE=/root/c$x", "MODE=fast$", "PLAIN=$x"} {
		if !slices.Contains(out.Task.Env, want) {
			t.Errorf("no %s in %q", want, out.Task.Env)
		}
	}
	if path := out.Task.Env[len(out.Task.Env)-1]; !strings.HasSuffix(path, "/opt/conda/bin:/opt/image/bin") {
		t.Errorf("%s", path)
	}
	if out.Task.Dir != "/srv" {
		t.Errorf("working directory %s", out.Task.Dir)
	}
}

// TestImageDir makes sure that an image's own directory counts, and that none
// leads out of the container or away from the task's own where it wants none.
func TestImageDir(t *testing.T) {
	for wanted, want := range map[string]string{
		"": "", "/": "", "/srv": "/srv", "srv/app": "/srv/app", "/srv/../opt/": "/opt", "/..": "",
		"/proc/self/fd/8": "", "/srv/../proc/1/root": "", "/sys": "", "/dev/shm": "", "/process": "/process",
	} {
		if got := imageDir(wanted); got != want {
			t.Errorf("%q: %q, want %q", wanted, got, want)
		}
	}
}

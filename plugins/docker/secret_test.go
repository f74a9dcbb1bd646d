package docker_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver/drivertest"
	"nomadlike/plugins/driver/tasklog"
)

// A secret is in the environment of the container's task, and neither in what docker
// inspect shows, nor in a file of the engine or of the driver, nor in the task's log.
func TestSecretsStandInNoRecord(t *testing.T) {
	const value = "canary-of-a-secret"
	d := open(t)
	spec := dressed(drivertest.Shell(t, `test ${#TOKEN} = 18 && echo "it is $TOKEN" >&2 && echo ready; sleep 1000`))
	spec.Env = append(spec.Env, "TOKEN="+value)
	spec.Secrets = []structs.SecretUse{{Name: "token", Var: "TOKEN"}}
	spec.Mask = []structs.Mask{{Name: "token", Text: structs.SecretBytes(value)}}
	drivertest.Start(t, d, spec)
	drivertest.AwaitOutput(t, spec, "ready")
	if log := drivertest.Log(t, spec, tasklog.Stderr); strings.TrimSpace(log) != "it is [masked: token]" {
		t.Errorf("the log has %q", log)
	}
	id := containerOf(t, d, spec.ID)
	_, raw, err := world.api.ContainerInspectWithRaw(t.Context(), id, true)
	if err != nil || !bytes.Contains(raw, []byte(id)) {
		t.Fatalf("inspect: %s, %v", raw, err)
	}
	if bytes.Contains(raw, []byte(value)) {
		t.Errorf("docker inspect shows the value: %s", raw)
	}
	masked := 0 // files that have what stands in its place: the look finds texts
	for _, dir := range []string{world.dir, spec.LogDir} {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() || strings.Contains(path, "/overlay2/") {
				return nil // gone meanwhile, or a layer
			}
			body, err := os.ReadFile(path)
			if err != nil {
				return nil
			}
			if bytes.Contains(body, []byte(value)) {
				t.Errorf("%s holds the value", path)
			}
			if bytes.Contains(body, []byte("[masked: token]")) {
				masked++
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	if masked == 0 {
		t.Error("no file has what the task printed")
	}
}

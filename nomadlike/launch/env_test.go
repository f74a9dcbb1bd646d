package launch

import (
	"slices"
	"strings"
	"testing"

	"nomadlike/nomadlike/structs"
)

func TestEnvironmentNamesVariables(t *testing.T) {
	job := &structs.Job{Name: "env", Nodes: 1, Task: structs.Task{Driver: structs.DriverExec, Command: "echo $PATH $CACHE $WHERE", Env: map[string]string{
		"PATH": "/opt/conda/bin:$PATH", "CACHE": "$HOME/cache", "WHERE": "${NOMADLIKE_RANK}-${MODE:-fast}", "PRICE": "5$$", "WORD": "pa$word", "LD_LIBRARY_PATH": "/lib2:$LD_LIBRARY_PATH",
	}}}
	input := Input{
		Job: job, Alloc: &structs.Allocation{Attempt: 1}, Members: []structs.Member{{Name: "env-1-0", Addr: "192.0.2.1"}},
		Node: NodeFacts{TaskDir: "/task", Base: map[string]string{"HOME": "/home/li", "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}},
	}
	out, err := Build(input)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"HOME": "/home/li", "LANG": "C.UTF-8", "PATH": "/opt/conda/bin:/usr/bin:/bin", "CACHE": "/home/li/cache",
		"WHERE": "0-fast", "PRICE": "5$", "WORD": "pa$word", "LD_LIBRARY_PATH": "/lib2:",
	} {
		if out.Env[name] != want {
			t.Errorf("%s is %q, want %q", name, out.Env[name], want)
		}
	}
	if want := []string{"echo", "/opt/conda/bin:/usr/bin:/bin", "/home/li/cache", "0-fast"}; !slices.Equal(out.Command, want) {
		t.Errorf("command %q", out.Command)
	}
	if len(out.Notes) != 1 || out.Notes[0].ID != "launch.env_unknown" || out.Notes[0].Params["unknown"] != "word" {
		t.Errorf("notes %v", out.Notes)
	}
	// What an image may know is left to its driver.
	input.Node.Image = true
	job.Task.Command = "true"
	if out, err = Build(input); err != nil {
		t.Fatal(err)
	}
	if want := []string{"CACHE", "LD_LIBRARY_PATH", "PATH", "PRICE", "WHERE", "WORD"}; !slices.Equal(out.Named, want) || out.Env["PATH"] != "/opt/conda/bin:$PATH" || out.Base["HOME"] == "" || len(out.Notes) != 0 {
		t.Errorf("left to the driver: %q, PATH %q, base %q, notes %v", out.Named, out.Env["PATH"], out.Base, out.Notes)
	}
}

// TestHorovodLogs: the administrator says what NCCL logs in the prefix, and the job
// has the last word.
func TestHorovodLogs(t *testing.T) {
	for _, c := range []struct {
		node string
		env  map[string]string
		want string
	}{
		{"", nil, "-x NCCL_DEBUG=INFO"}, {"WARN", nil, "-x NCCL_DEBUG=WARN"}, {NCCLDebugOff, nil, ""}, {"WARN", map[string]string{"NCCL_DEBUG": "TRACE"}, "-x NCCL_DEBUG"},
	} {
		b := build{env: newEnvironment(), node: NodeFacts{NCCLDebug: c.node}, job: &structs.Job{}, workers: 1, slots: 1}
		b.env.user(c.env)
		words := strings.Join(b.horovodPrefix(), " ") + " "
		if c.want != "" && !strings.Contains(words, " "+c.want+" ") || c.want == "" && strings.Contains(words, "NCCL_DEBUG") {
			t.Errorf("%+v: %s", c, words)
		}
	}
}

// TestDeviceIDWithinTheVisibleOnes: the second job with one NPU of a node has card 1,
// and sees it as its card 0.
func TestDeviceIDWithinTheVisibleOnes(t *testing.T) {
	job := &structs.Job{
		Name: "npu", Nodes: 1, Distributed: structs.Distributed{Mode: structs.ModeMindSpore}, Task: structs.Task{Driver: structs.DriverExec, Command: "python3 train.py"},
		Resources: []structs.Resources{{Devices: []structs.DeviceRequest{{Kind: "huawei/npu", Count: 1}}}},
	}
	member := structs.Member{Name: "npu-1-0", Addr: "192.0.2.1", Devices: []string{"npu-1"}, Cards: []structs.Card{{ID: "npu-1", Index: 1, IP: "10.0.0.1"}}}
	out, err := Build(Input{Job: job, Alloc: &structs.Allocation{Attempt: 1, Devices: member.Devices, Spec: job.Resources[0]}, Members: []structs.Member{member}, Node: NodeFacts{TaskDir: "/task"}})
	if err != nil {
		t.Fatal(err)
	}
	if out.Env["DEVICE_ID"] != "0" {
		t.Errorf("DEVICE_ID is %q", out.Env["DEVICE_ID"])
	}
}

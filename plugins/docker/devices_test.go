package docker

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"nomadlike/internal/golden"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// nvidia is what a device plugin reserves for one card.
func nvidia(n int, uuid string) driver.Reservation {
	node := fmt.Sprintf("/dev/nvidia%d", n)
	return driver.Reservation{
		Env: map[string]string{"CUDA_VISIBLE_DEVICES": uuid, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"},
		Nodes: []driver.Device{
			{HostPath: node, TaskPath: node, Access: "rw"}, {HostPath: "/dev/nvidiactl", TaskPath: "/dev/nvidiactl", Access: "rw"},
		},
		Mounts: []driver.Mount{{HostPath: "/usr/lib/x86_64-linux-gnu/libcuda.so.1", TaskPath: "/usr/lib/x86_64-linux-gnu/libcuda.so.1", ReadOnly: true}},
		CDI:    []string{"nvidia.com/gpu=" + uuid},
		Engine: &driver.EngineDevices{
			Driver: "nvidia", IDs: []string{uuid}, Capabilities: []string{"gpu"}, Runtime: "nvidia",
			Env: map[string]string{"NVIDIA_VISIBLE_DEVICES": uuid, "NVIDIA_DRIVER_CAPABILITIES": "compute,utility"},
		},
	}
}

// ascend is what a device plugin reserves for one chip.
func ascend(n int) driver.Reservation {
	node := fmt.Sprintf("/dev/davinci%d", n)
	return driver.Reservation{
		Env: map[string]string{"ASCEND_RT_VISIBLE_DEVICES": fmt.Sprint(n)},
		Nodes: []driver.Device{
			{HostPath: node, Access: "rw"},
			{HostPath: "/dev/davinci_manager", Access: "rw"},
			{HostPath: "/dev/devmm_svm", Access: "rw"},
			{HostPath: "/dev/hisi_hdc", Access: "rw"},
		},
		Mounts: []driver.Mount{
			{HostPath: "/usr/local/Ascend/driver/lib64", TaskPath: "/usr/local/Ascend/driver/lib64", ReadOnly: true},
			{HostPath: "/usr/local/bin/npu-smi", TaskPath: "/usr/local/bin/npu-smi", ReadOnly: true},
		},
		Engine: &driver.EngineDevices{Runtime: "ascend", Env: map[string]string{"ASCEND_VISIBLE_DEVICES": fmt.Sprint(n)}},
	}
}

// hostileEnv is what an image may carry to get more than its own devices, or
// its code into the hooks of the engine.
func hostileEnv() []string {
	return []string{
		"PATH=/opt/conda/bin:/usr/bin", "NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=all", "NVIDIA_REQUIRE_CUDA=cuda>=99",
		"LD_PRELOAD=/proc/self/cwd/x.so", "LD_LIBRARY_PATH=/usr/local/cuda/lib64", "LD_AUDIT=/proc/self/cwd/a.so",
		"ASCEND_VISIBLE_DEVICES=0-7", "CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7", "ASCEND_RUNTIME_OPTIONS=NODRV",
	}
}

func TestDevices(t *testing.T) {
	all := engineFacts{CDIKinds: []string{"nvidia.com/gpu"}, Drivers: []string{"nvidia"}, Runtimes: []string{"ascend", "nvidia", "runc"}}
	only := func(change func(*engineFacts)) engineFacts {
		facts := engineFacts{Runtimes: []string{"runc"}}
		change(&facts)
		return facts
	}
	two := []driver.Reservation{nvidia(0, "GPU-aaaa"), nvidia(3, "GPU-bbbb")}
	withoutNodes := nvidia(0, "GPU-aaaa")
	withoutNodes.Nodes = nil
	withoutMounts := ascend(2)
	withoutMounts.Nodes, withoutMounts.Mounts = nil, nil
	both := withoutMounts
	both.Engine = &driver.EngineDevices{Runtime: "ascend"}
	cases := []struct {
		name         string
		facts        engineFacts
		reservations []driver.Reservation
		image        []string
	}{
		{"no devices, plain image", all, nil, nil},
		{"no devices, hostile image", all, nil, hostileEnv()},
		{"cdi first", all, two, hostileEnv()},
		{"requests without cdi", only(func(f *engineFacts) { f.Drivers = []string{"nvidia"} }), two, hostileEnv()},
		{"runtime without requests", only(func(f *engineFacts) { f.Runtimes = []string{"nvidia", "runc"} }), two, hostileEnv()},
		{"raw without anything", only(func(*engineFacts) {}), two, hostileEnv()},
		{"a cdi specification of another vendor", only(func(f *engineFacts) { f.CDIKinds = []string{"amd.com/gpu"} }), two[:1], nil},
		{"nothing fits", only(func(*engineFacts) {}), []driver.Reservation{withoutNodes}, nil},
		{"ascend raw even with its runtime", all, []driver.Reservation{ascend(2), ascend(3)}, hostileEnv()},
		{"ascend by its runtime", all, []driver.Reservation{withoutMounts, {Engine: &driver.EngineDevices{
			Runtime: "ascend", Env: map[string]string{"ASCEND_VISIBLE_DEVICES": "5"},
		}}}, hostileEnv()},
		{"two runtimes", only(func(f *engineFacts) { f.Runtimes = []string{"ascend", "nvidia"} }), []driver.Reservation{two[0], both}, nil},
		{"variables only", all, []driver.Reservation{{Env: map[string]string{"CUDA_MPS_PIPE_DIRECTORY": "/mps"}}}, nil},
	}
	var b strings.Builder
	for _, c := range cases {
		fmt.Fprintf(&b, "== %s\n", c.name)
		plan, err := planDevices(c.facts, c.reservations, c.image)
		if err != nil {
			fmt.Fprintf(&b, "refused  %v\n", err)
		} else {
			b.WriteString(plan.describe())
		}
		fmt.Fprintf(&b, "task env %s\n\n", strings.Join(taskEnv(&driver.TaskSpec{Env: []string{"JOB=1"}}, c.image, plan.TaskEnv), " "))
	}
	golden.Assert(t, "testdata/devices.txt", b.String())
}

// TestImageNeverWins says the rule of the golden file once more, for any
// image: what it carries neither chooses devices nor reaches a hook.
func TestImageNeverWins(t *testing.T) {
	for _, facts := range []engineFacts{
		{}, {Drivers: []string{"nvidia"}}, {Runtimes: []string{"nvidia"}}, {CDIKinds: []string{"nvidia.com/gpu"}},
	} {
		for _, reservations := range [][]driver.Reservation{nil, {nvidia(1, "GPU-own")}} {
			plan, err := planDevices(facts, reservations, hostileEnv())
			if err != nil {
				t.Fatal(err)
			}
			for _, entry := range hostileEnv() {
				name, value, _ := strings.Cut(entry, "=")
				if !speaksToHooks(name) {
					continue
				}
				found := ""
				for _, told := range plan.EngineEnv {
					if text, ok := strings.CutPrefix(told, name+"="); ok {
						found = "told"
						if text == value {
							t.Errorf("hooks are told %s, as the image wants", told)
						}
					}
				}
				if found == "" {
					t.Errorf("hooks see the image's own %s", name)
				}
			}
			for _, entry := range taskEnv(&driver.TaskSpec{}, hostileEnv(), plan.TaskEnv) {
				if strings.HasPrefix(entry, "LD_PRELOAD") || strings.HasSuffix(entry, "=all") || strings.HasSuffix(entry, "=0,1,2,3,4,5,6,7") {
					t.Errorf("the task gets %s", entry)
				}
			}
		}
	}
}

// TestOptionsAreRefused tries everything that reaches out of a container.
func TestOptionsAreRefused(t *testing.T) {
	attempts := map[string]string{
		"privileged": "true", "cap_add": "SYS_ADMIN", "devices": "/dev/mem", "pid": "host", "ipc": "host", "uts": "host", "userns": "host",
		"security_opt": "seccomp=unconfined", "cgroup_parent": "/", "runtime": "evil", "volumes_from": "other", "sysctls": "kernel.core_pattern=x",
		"extra_hosts": "server:1.2.3.4", "raw": "--privileged", "network": "container:other", "binds": "/:/host", "": "",
	}
	for name, value := range attempts {
		var c container
		err := applyOptions(&c, map[string]string{name: value}, Policy{})
		var told *structs.Error
		if !errors.As(err, &told) || told.ID != "docker.option_refused" || told.Code != structs.CodeForbidden {
			t.Errorf("%s gives %v", name, err)
		}
	}
	// Whatever a policy names, these cannot be had.
	for _, name := range []string{"pid", "raw", "network", "binds"} {
		var c container
		if err := applyOptions(&c, map[string]string{name: "host"}, Policy{Options: []string{name}}); err == nil {
			t.Errorf("%s is allowed", name)
		}
		if _, err := (Config{StateDir: "/x", Node: "n", Policy: Policy{Options: []string{name}}}).withDefaults(); err == nil {
			t.Errorf("a policy may name %s", name)
		}
	}
}

func TestOptionsAllowed(t *testing.T) {
	asked := map[string]string{
		"privileged": "true", "cap_add": "SYS_PTRACE, NET_ADMIN", "devices": "/dev/fuse,/dev/net/tun", "ipc": "host", "uts": "host", "userns": "host",
		"security_opt": "seccomp=unconfined", "cgroup_parent": "/jobs", "runtime": "kata", "volumes_from": "data", "sysctls": "net.core.somaxconn=1024",
		"extra_hosts": "server:1.2.3.4",
	}
	c := container{Hostname: "h"}
	if err := applyOptions(&c, asked, Policy{Options: OptionNames()}); err != nil {
		t.Fatal(err)
	}
	golden.Assert(t, "testdata/options.txt", strings.ReplaceAll(fmt.Sprintf("%+v\n", c), " ", "\n"))
	for name, value := range map[string]string{
		"privileged": "yes", "ipc": "container:x", "devices": "/dev/../etc/shadow", "sysctls": "x", "runtime": "",
	} {
		if err := applyOptions(&container{}, map[string]string{name: value}, Policy{Options: OptionNames()}); structs.CodeOf(err) != structs.CodeInvalid {
			t.Errorf("%s = %q gives %v", name, value, err)
		}
	}
}

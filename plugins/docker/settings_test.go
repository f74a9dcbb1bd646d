package docker

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/containerd/errdefs"

	"nomadlike/internal/golden"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/docker/taskinit"
	"nomadlike/plugins/driver"
)

// show writes the fields of a container that are set, one a line.
func show(out *outputs) string {
	var b strings.Builder
	for _, part := range []struct {
		name  string
		value reflect.Value
	}{{"", reflect.ValueOf(out.Container)}, {"task ", reflect.ValueOf(out.Task)}} {
		for i := range part.value.NumField() {
			if field := part.value.Field(i); !field.IsZero() {
				fmt.Fprintf(&b, "%s%s: %+v\n", part.name, part.value.Type().Field(i).Name, field.Interface())
			}
		}
	}
	return b.String()
}

func baseInputs() inputs {
	config, err := (Config{StateDir: "/state", Node: "node-1", Cluster: "lab", Policy: Policy{HostNetwork: true}}).withDefaults()
	if err != nil {
		panic(err.Error())
	}
	return inputs{
		Config: &config,
		Spec: &driver.TaskSpec{
			ID: "a1.main", AllocID: "a1", JobName: "digits", Attempt: 3, Rank: 1, Command: []string{"python3", "train.py"},
			Env: []string{"SECRET=canary"}, TaskDir: "/data/a1/task", LogDir: "/data/a1/logs", Hostname: "digits-3-1", KillGrace: 1500 * time.Millisecond,
			Hosts: []string{"127.0.0.1 localhost"}, Container: &driver.Container{Image: "pytorch"},
		},
		Image:  &image{ID: "sha256:1234", Env: []string{"PATH=/opt/bin:/bin", "LANG=C.UTF-8"}, Entrypoint: []string{"/entry.sh"}, Cmd: []string{"bash"}},
		Limits: limitFacts{Raise: true},
		Name:   "nomadlike-a1.main-x", Door: "/state/tasks/a1.main/door", Hosts: "/state/tasks/a1.main/hosts",
	}
}

func TestSettings(t *testing.T) {
	cases := []struct {
		name   string
		change func(*inputs)
	}{
		{"defaults", func(*inputs) {}},
		{"limits", func(in *inputs) {
			in.Spec.Resources = driver.Resources{CPU: 2.5, Memory: 4 << 30, Shm: 1 << 30, PIDs: 100}
			in.Spec.Ulimits = []driver.Ulimit{{Name: "core", Soft: 0, Hard: 0}, {Name: "nofile", Soft: 10, Hard: 20}}
		}},
		{"host network, read-only image, own user and directory", func(in *inputs) {
			in.Spec.Container.Network, in.Spec.Container.ReadOnlyRoot = "host", true
			in.Spec.User, in.Spec.Dir = "1000:1000", "/workspace"
			in.Image.User = "root"
		}},
		{"rdma", func(in *inputs) {
			in.Spec.Container.RDMA = true
			in.Spec.Devices = []driver.Device{{HostPath: "/dev/infiniband/uverbs0"}}
		}},
		{"the image's entrypoint", func(in *inputs) { in.Spec.Container.ImageEntrypoint = true }},
		{"held task", func(in *inputs) { in.Spec.Hold, in.Spec.Command, in.Spec.Container.ImageEntrypoint = true, nil, true }},
		{"node's user instead of root", func(in *inputs) { in.Config.User, in.Image.User = "20000:20000", "0:0" }},
		{"image's own user", func(in *inputs) { in.Config.User, in.Image.User = "20000:20000", "app" }},
		{"mounts and devices", func(in *inputs) {
			in.Mounts = []mount{{Source: "/state/mounts/a1.main/0", Target: "/dataset", ReadOnly: true}}
			in.Spec.Reservations = []driver.Reservation{ascend(0)}
		}},
		{"an engine that cannot raise limits", func(in *inputs) {
			in.Limits = limitFacts{Hard: map[string]int64{"nofile": 20000, "memlock": 8 << 20}}
		}},
		{"rdma on such an engine", func(in *inputs) {
			in.Limits = limitFacts{Hard: map[string]int64{"nofile": 20000, "memlock": 8 << 20}}
			in.Spec.Container.RDMA = true
		}},
		{"memlock without rdma", func(in *inputs) {
			in.Spec.Ulimits = []driver.Ulimit{{Name: "memlock", Soft: -1, Hard: -1}}
		}},
		{"host network refused", func(in *inputs) { in.Config.Policy.HostNetwork, in.Spec.Container.Network = false, "host" }},
		{"privileged refused", func(in *inputs) { in.Spec.Container.Options = map[string]string{"privileged": "true"} }},
		{"a mount of the node's own, and one of the job over it", func(in *inputs) {
			in.Config.Mounts = []driver.Mount{{HostPath: "/usr/bin/nomadlike", TaskPath: "/usr/bin/nomadlike", ReadOnly: true}}
			in.Mounts = []mount{{Source: "/x", Target: "/usr/bin/nomadlike"}}
		}},
		{"mount over the init", func(in *inputs) { in.Mounts = []mount{{Source: "/x", Target: taskinit.MountPoint + "/init"}} }},
		{"mount over proc", func(in *inputs) { in.Mounts = []mount{{Source: "/x", Target: "/proc/sys"}} }},
		{"mount over the hosts file", func(in *inputs) { in.Mounts = []mount{{Source: "/x", Target: "/etc/hosts"}} }},
	}
	var b strings.Builder
	for _, c := range cases {
		in := baseInputs()
		c.change(&in)
		out, err := settings(in)
		fmt.Fprintf(&b, "== %s\n", c.name)
		if err != nil {
			fmt.Fprintf(&b, "refused: %v\n\n", err)
			continue
		}
		fmt.Fprintf(&b, "%s\n", show(out))
	}
	golden.Assert(t, "testdata/settings.txt", b.String())
}

// TestSecretsStayOut makes sure that a job's environment is in nothing that
// the engine keeps.
func TestSecretsStayOut(t *testing.T) {
	out, err := settings(baseInputs())
	if err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprintf("%+v", out.Container); strings.Contains(text, "canary") || strings.Contains(text, "train.py") {
		t.Errorf("the engine is told %s", text)
	}
	login := credentials{username: "u", password: "canary", token: "canary"}
	if text := fmt.Sprintf("%v %+v %#v %s %v", login, &login, login, login, []any{login}); strings.Contains(text, "canary") {
		t.Errorf("credentials print as %s", text)
	}
}

func TestCollect(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	const gib = int64(1) << 30
	images := []storedImage{
		{ID: "old", Names: []string{"old:1"}, Bytes: 10 * gib, LastUse: ago(90 * 24 * time.Hour), Pulled: true},
		{ID: "week", Bytes: 20 * gib, LastUse: ago(7 * 24 * time.Hour), Pulled: true},
		{ID: "week-small", Bytes: 1 * gib, LastUse: ago(7 * 24 * time.Hour), Pulled: true},
		{ID: "day", Bytes: 5 * gib, LastUse: ago(24 * time.Hour), Pulled: true},
		{ID: "fresh", Bytes: 50 * gib, LastUse: ago(time.Minute), Pulled: true},
		{ID: "busy", Bytes: 50 * gib, LastUse: ago(365 * 24 * time.Hour), Pulled: true, InUse: true},
		{ID: "pinned", Bytes: 50 * gib, LastUse: ago(365 * 24 * time.Hour), Pulled: true, Excluded: true},
		{ID: "foreign", Bytes: 50 * gib, LastUse: time.Time{}},
	}
	rules := GC{HighPercent: 85, LowPercent: 75, KeepAfterUse: time.Hour}
	with := func(change func(*GC)) GC {
		changed := rules
		change(&changed)
		return changed
	}
	var b strings.Builder
	for _, c := range []struct {
		name  string
		used  int64
		rules GC
	}{
		{"room enough", 80, rules},
		{"a little too full", 85, rules},
		{"very full", 99, rules},
		{"full beyond help", 200, rules},
		{"unused for a month", 10, with(func(r *GC) { r.UnusedMax = 30 * 24 * time.Hour })},
		{"switched off", 99, with(func(r *GC) { r.Disabled = true })},
		{"unknown disk", 0, rules},
	} {
		fmt.Fprintf(&b, "== %s\n", c.name)
		disk := diskUse{Used: c.used * gib, Total: 100 * gib}
		if c.used == 0 {
			disk = diskUse{}
		}
		for _, r := range collect(images, disk, c.rules, now) {
			fmt.Fprintf(&b, "remove %s (%d GiB): %s\n", r.ID, r.Bytes/gib, r.Reason)
		}
	}
	golden.Assert(t, "testdata/collect.txt", b.String())
}

func TestRuntimeConcern(t *testing.T) {
	var b strings.Builder
	for _, version := range []string{
		"", "1.0.3", "1.1.11", "1.1.12", "1.1.5+ds1-1+deb12u1", "1.1.5+ds1-1", "1.1.5+ds1-1+b1", "1.2.7", "1.2.8", "v1.2.9", "1.3.0", "1.3.3",
		"1.3.0-rc.1", "1.4.0", "2.0.0", "1.1.12-0ubuntu2~22.04.1", "main-abc",
	} {
		concern := runtimeConcern(version)
		if concern == "" {
			concern = "-"
		}
		fmt.Fprintf(&b, "%-26s %s\n", version, concern)
	}
	golden.Assert(t, "testdata/runtimes.txt", b.String())
}

func TestParseLimits(t *testing.T) {
	const limits = `Limit                     Soft Limit           Hard Limit           Units     
Max processes             96365                96365                processes 
Max open files            1024                 20000                files     
Max locked memory         unlimited            unlimited            bytes     
`
	got := parseLimits("Name:\tdockerd\nCapEff:\t000001fffeffffff\n", limits)
	if got.Raise || got.Hard["nofile"] != 20000 || got.Hard["memlock"] != -1 || got.Hard["nproc"] != 96365 {
		t.Errorf("limits are %+v", got)
	}
	if got := parseLimits("CapEff:\t000001ffffffffff\n", limits); !got.Raise {
		t.Errorf("limits are %+v", got)
	}
}

func TestCredentials(t *testing.T) {
	const file = `{"auths": {
		"https://index.docker.io/v1/": {"auth": "aHViOnB3MQ=="},
		"registry.lab:5000": {"auth": "bGFiOmE6Yg=="},
		"token.lab": {"identitytoken": "tok"},
		"broken.lab": {"auth": "!!!"}
	}}`
	for domain, want := range map[string]*credentials{
		"docker.io": {username: "hub", password: "pw1"}, "registry.lab:5000": {username: "lab", password: "a:b"},
		"token.lab": {token: "tok"}, "other.lab": nil,
	} {
		got, err := parseAuth([]byte(file), domain)
		if err != nil || (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("%s: wrong credentials, error %v", domain, err)
		}
	}
	for _, bad := range []string{file, `{"auths": "secret-canary"`} {
		_, err := parseAuth([]byte(bad), "broken.lab")
		if err == nil || strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), "!!!") {
			t.Errorf("error is %v", err)
		}
	}
}

func TestImageNames(t *testing.T) {
	var b strings.Builder
	for _, name := range []string{
		"ubuntu", "ubuntu:22.04", "nvcr.io/nvidia/pytorch:21.05-py3", "registry.lab:5000/team/train", "localhost/x",
		"ubuntu@sha256:e6173d4dc55e76b87c4af8db8821b1feae4146dd47341e4d431118c7dd060a74",
		"sha256:e6173d4dc55e76b87c4af8db8821b1feae4146dd47341e4d431118c7dd060a74",
		"Ubuntu", "a b", "", "-rf", "../x", "http://x/y", "x:", "x@sha256:12", "sha256:xyz",
	} {
		ref, err := parseRef(name)
		if err != nil {
			fmt.Fprintf(&b, "%q refused\n", name)
			continue
		}
		fmt.Fprintf(&b, "%q is %s of %q\n", name, ref, ref.domain)
	}
	golden.Assert(t, "testdata/names.txt", b.String())
}

func TestExitResults(t *testing.T) {
	for _, c := range []struct {
		name string
		exit taskinit.Exit
		oom  bool
		want string // id of the error
		kill bool   // for memory
	}{
		{"success", taskinit.Exit{}, false, "", false},
		{"failure", taskinit.Exit{Code: 3}, false, "", false},
		{"out of memory", taskinit.Exit{Code: 137, Signal: 9}, true, "", true},
		{"a child out of memory", taskinit.Exit{Code: 1}, true, "", true},
		{"a child out of memory, all the same well", taskinit.Exit{}, true, "", false},
		{"stopped after a child was", taskinit.Exit{Code: 143, Signal: 15, Stopped: true}, true, "", false},
		{"docker stop", taskinit.Exit{Code: 143, Signal: 15, Outside: true}, false, "docker.stopped_outside", false},
		{"docker stop during ours", taskinit.Exit{Code: 143, Signal: 15, Outside: true, Stopped: true}, false, "", false},
		{"docker kill", taskinit.Exit{Code: 137, Signal: 9, Vanished: true}, false, "docker.killed_outside", false},
		{"init out of memory", taskinit.Exit{Code: 137, Signal: 9, Vanished: true}, true, "", true},
		{"unkillable", taskinit.Exit{Code: 255, Unkillable: []int{7, 9}}, true, "driver.unkillable", true},
	} {
		got := exitResult(&c.exit, c.oom)
		id := ""
		if got.Err != nil {
			id = got.Err.ID
		}
		if id != c.want || got.OOMKilled != c.kill {
			t.Errorf("%s is %+v", c.name, got)
		}
	}
}

func TestConfigRefused(t *testing.T) {
	for name, c := range map[string]Config{
		"no directory":       {Node: "n"},
		"relative directory": {StateDir: "x", Node: "n"},
		"no node":            {StateDir: "/x"},
		"engine far away":    {StateDir: "/x", Node: "n", Endpoint: "tcp://10.0.0.1:2375"},
		"unknown network":    {StateDir: "/x", Node: "n", Network: "bridge"},
		"private is host":    {StateDir: "/x", Node: "n", PrivateNetwork: "host"},
		"another's network":  {StateDir: "/x", Node: "n", PrivateNetwork: "container:x"},
		"relative root":      {StateDir: "/x", Node: "n", MountRoots: []string{"data"}},
		"low above high":     {StateDir: "/x", Node: "n", GC: GC{HighPercent: 50, LowPercent: 60}},
	} {
		if _, err := c.withDefaults(); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	var told *structs.Error
	if err := startRefusal(errors.New("Error response from daemon: unable to find user x: no matching entries in passwd file"), &container{User: "x"}); !errors.As(err, &told) || told.ID != "driver.user_unknown" {
		t.Errorf("error is %v", err)
	}
}

// TestPermanentRefusals: what the engine will refuse again ends the job with the
// cause; what may be there later is the node's.
func TestPermanentRefusals(t *testing.T) {
	const create = "Error response from daemon: failed to create task for container: OCI runtime create failed: runc create failed: unable to start container process: "
	const device = "Error response from daemon: error gathering device information while adding custom device /dev/davinci9: no such file or directory"
	for text, want := range map[string]structs.ErrorCode{
		create + "error setting rlimit type 7: operation not permitted": structs.CodeForbidden,
		device:                                 structs.CodeForbidden,
		create + "exec: /x: permission denied": structs.CodeForbidden,
		create + "write /sys/fs/cgroup/x: cannot allocate memory":        structs.CodeUnavailable,
		create + "mkdir /var/lib/docker/x: no space left on device":      structs.CodeUnavailable,
		"Error response from daemon: server misbehaving":                 structs.CodeUnavailable,
		"Error response from daemon: bind source path does not exist: x": structs.CodeUnavailable,
	} {
		if err := startRefusal(errors.New(text), &container{}); structs.CodeOf(err) != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if err := startRefusal(fmt.Errorf("create: %w", errdefs.ErrInvalidArgument), &container{}); structs.CodeOf(err) != structs.CodeForbidden {
		t.Errorf("a request that is wrong: %v", err)
	}
	in := baseInputs()
	in.Limits = limitFacts{Hard: map[string]int64{"nofile": 4096}}
	in.Config.Ulimits = nil
	in.Spec.Ulimits = []driver.Ulimit{{Name: "nofile", Soft: 96366, Hard: 96366}}
	if _, err := settings(in); structs.CodeOf(err) != structs.CodeForbidden {
		t.Errorf("a limit of the job above the engine's: %v", err)
	}
}

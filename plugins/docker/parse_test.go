package docker

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nomadlike/plugins/driver"
)

func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"version":1,"task_id":"a","container_id":"00ff","log_dir":"/x","init_pid":7}`))
	f.Add([]byte(`{"version":1,"task_id":"a","container_id":"../x"}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := decodeRecord(body, "a")
		if err == nil && (r.TaskID != "a" || !hexadecimal(r.ContainerID) || r.LogDir != "" && !filepath.IsAbs(r.LogDir)) {
			t.Errorf("accepted %+v", r)
		}
	})
}

func FuzzAuth(f *testing.F) {
	f.Add([]byte(`{"auths":{"a":{"auth":"YTpi"}}}`))
	f.Add([]byte(`{"auths":{"a":{}}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if login, err := parseAuth(body, "a"); err != nil && login != nil {
			t.Error("an error with credentials")
		}
	})
}

func FuzzImageName(f *testing.F) {
	for _, name := range []string{"a", "a/b:c", "x.y:1/z@sha256:e6173d4dc55e76b87c4af8db8821b1feae4146dd47341e4d431118c7dd060a74", "sha256:00"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		ref, err := parseRef(name)
		if err != nil {
			return
		}
		again, err := parseRef(ref.String())
		if err != nil || again != ref && ref.tag == "" == (again.tag == "") {
			t.Errorf("%q is %+v, and that is %+v, %v", name, ref, again, err)
		}
	})
}

func FuzzProc(f *testing.F) {
	f.Add("4:cpuacct,cpu:/docker/x\n0::/y\n", "Max open files 1 2 files\n")
	f.Fuzz(func(t *testing.T, membership, limits string) {
		parseMembership(membership)
		parseLimits(membership, limits)
		runtimeConcern(limits)
	})
}

// TestMeasure reads figures of both versions of cgroups.
func TestMeasure(t *testing.T) {
	root := t.TempDir()
	for path, text := range map[string]string{
		"cpuacct/docker/x/cgroup.procs":  "1\n2\n3\n",
		"cpuacct/docker/x/tasks":         "1\n2\n3\n4\n",
		"cpuacct/docker/x/cpuacct.usage": "1500000000\n",
		"memory/docker/x/memory.stat":    "cache 1\ntotal_rss 4096\ntotal_mapped_file 100\n",
		"slice/y/cgroup.procs":           "1\n2\n",
		"slice/y/cgroup.threads":         "1\n2\n3\n",
		"slice/y/cpu.stat":               "usage_usec 2500000\nuser_usec 1\n",
		"slice/y/memory.stat":            "anon 8192\nfile 5\nfile_mapped 10\n",
	} {
		full := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for membership, want := range map[string]driver.Usage{
		"5:memory:/docker/x\n4:cpu,cpuacct:/docker/x\n0::/\n": {CPUTime: 1500 * time.Millisecond, RSSBytes: 4196, Processes: 3, Threads: 4},
		"0::/slice/y\n": {CPUTime: 2500 * time.Millisecond, RSSBytes: 8202, Processes: 2, Threads: 3},
	} {
		var got driver.Usage
		if err := parseMembership(membership).measure(root, &got); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}

// TestCDIKinds finds what the engine's CDI specifications describe.
func TestCDIKinds(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"nvidia.yaml": "---\ncdiVersion: 0.5.0\ncontainerEdits:\n  deviceNodes: []\ndevices:\n- name: all\nkind: nvidia.com/gpu\n",
		"ascend.json": `{"cdiVersion": "0.6.0", "kind": "huawei.com/npu", "devices": []}`,
		"lines.json":  "{\n  \"cdiVersion\": \"0.6.0\",\n  \"kind\": \"vendor.com/card\"\n}\n",
		"note.txt":    "kind: other.com/x\n",
		"broken.yaml": "kind:\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	facts := gatherFacts(&engineInfo{CDIDirs: []string{dir, dir + "/none", dir}}, 0)
	if diff := cmp.Diff([]string{"huawei.com/npu", "nvidia.com/gpu", "vendor.com/card"}, facts.CDIKinds); diff != "" {
		t.Error(diff)
	}
}

// TestPullProgress adds up layers as an engine reports them.
func TestPullProgress(t *testing.T) {
	p := newPullProgress("x")
	var seen string
	for _, line := range []layerProgress{
		{Layer: "1", Status: "Pulling from lab/x"},
		{Layer: "a", Status: "Pulling fs layer"},
		{Layer: "b", Status: "Pulling fs layer"},
		{Layer: "a", Status: "Downloading", Done: 10, Total: 100},
		{Layer: "b", Status: "Downloading", Done: 50, Total: 50},
		{Layer: "b", Status: "Verifying Checksum"},
		{Layer: "a", Status: "Downloading", Done: 100, Total: 100},
		{Layer: "a", Status: "Download complete"},
		{Layer: "a", Status: "Extracting", Done: 5, Total: 100},
		{Layer: "a", Status: "Pull complete"},
		{Status: "Status: Downloaded newer image"},
	} {
		p.add(line)
		sum := p.sum()
		seen += fmt.Sprintf("%s %d/%d\n", sum.Step, sum.Done, sum.Total)
	}
	const want = `extract 0/0
pull 0/0
pull 0/0
pull 10/100
pull 60/150
pull 60/150
pull 150/150
extract 150/150
extract 150/150
extract 150/150
extract 150/150
`
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
}

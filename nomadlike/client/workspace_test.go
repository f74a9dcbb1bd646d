package client

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/client/workspace"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/exec"
)

// nas makes a storage with an algorithm, a dataset and what must not be read.
func nas(t *testing.T) (dir string, storages []workspace.Storage) {
	t.Helper()
	dir = tempDir(t)
	for file, text := range map[string]string{
		"algorithm/p/net/train.sh": "#!/bin/sh\ncat \"$1\"; echo done >\"$2\"\n", "dataset/p/digits/1/train": "digits\n",
		"dataset/p/digits/1/annotation/labels": "labels\n", "secret/file": "secret\n",
	} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(file)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../../secret", filepath.Join(dir, "dataset/p/stolen")); err != nil {
		t.Fatal(err)
	}
	return dir, []workspace.Storage{{Name: "nas", Path: dir + "/{kind}/{project}"}}
}

// withData is an assignment of a job that reads and writes its workspace.
func withData(name, command string) *structs.Assignment {
	a := gang(name, 1, command, "n1")[0]
	a.Job.User = "li"
	a.Job.Algorithms = []structs.DataRef{{Name: "net", ReadOnly: true}}
	a.Job.Datasets = []structs.DataRef{{Name: "digits", Version: 1, ReadOnly: true, Annotations: true}}
	a.Job.Volumes = []structs.DataRef{{Name: "scratch"}}
	a.Job.Output = "models/run7"
	return a
}

// nodeWithData starts a node whose exec driver isolates as told.
func nodeWithData(t *testing.T, c *control, isolation, view string, storages []workspace.Storage) (dir string, n *Client) {
	t.Helper()
	dir = tempDir(t)
	d, err := exec.New(exec.Config{
		StateDir: filepath.Join(dir, "exec"), Supervisor: []string{os.Args[0], "task-supervisor"}, Logger: testLogger(t), Isolation: isolation, View: view,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	cleanUp(t, dir)
	n, _ = c.node(t, dir, "n1", map[string]driver.Driver{"exec": d}, func(config *Config) {
		config.Storages, config.Fast.FreeMin = storages, 0.001 // whatever else fills the disk
	})
	eventually.Within(t, time.Minute, "the driver speaks", func() bool { return n.Node().Attributes["driver.exec.isolation"] != "" })
	return dir, n
}

// TestWorkspace runs one job file unchanged where tasks have views of their own
// and where they have none.
func TestWorkspace(t *testing.T) {
	for name, kind := range map[string]struct{ isolation, view string }{
		"raw": {exec.IsolationRaw, ""}, "shared": {exec.IsolationAuto, exec.ViewShared}, "private": {exec.IsolationAuto, exec.ViewPrivate},
	} {
		t.Run(name, func(t *testing.T) {
			data, storages := nas(t)
			c := newControl()
			dir, n := nodeWithData(t, c, kind.isolation, kind.view, storages)
			raw := n.Node().Attributes["driver.exec.isolation"] == "raw"
			if raw && name != "raw" {
				t.Logf("the node cannot isolate tasks: %s", n.Node().Attributes["driver.exec.isolation_reason"])
			}
			a := withData("reads", "/workspace/algorithm/train.sh /workspace/dataset/private/digits/train /workspace/outputs/model")
			b := withData("looks", `sh -c "cd $NOMADLIKE_WORKSPACE && cat anno_dataset/digits/annotation/labels && echo x >volume/scratch/x && (echo y >dataset/private/digits/y) 2>/dev/null; ls dataset/private/digits"`)
			c.assign(a, b)
			if r := wantEnd(t, c, a.Alloc.ID); r.Status != structs.AllocComplete {
				t.Fatalf("report %+v, stderr %q", r, logText(t, dir, a.Alloc.ID, "stderr"))
			}
			if text, err := os.ReadFile(filepath.Join(data, "output/p/models/run7/model")); err != nil || string(text) != "done\n" {
				t.Errorf("output %q, %v", text, err)
			}
			if out := logText(t, dir, a.Alloc.ID, "stdout"); out != "digits\n" {
				t.Errorf("log %q", out)
			}
			wantEnd(t, c, b.Alloc.ID)
			out := logText(t, dir, b.Alloc.ID, "stdout")
			if !strings.HasPrefix(out, "labels\n") || strings.Contains(out, "y\n") && !raw {
				t.Errorf("log %q, stderr %q", out, logText(t, dir, b.Alloc.ID, "stderr"))
			}
			if text, err := os.ReadFile(filepath.Join(data, "volume/p/scratch/x")); err != nil || string(text) != "x\n" {
				t.Errorf("volume %q, %v", text, err)
			}
		})
	}
}

// TestWorkspaceRefuses: what is not there and what leads elsewhere is told, and
// whose fault it is.
func TestWorkspaceRefuses(t *testing.T) {
	data, storages := nas(t)
	c := newControl()
	w := newFakeRuntime()
	n, _ := c.node(t, tempDir(t), "n1", w.driver(), func(config *Config) {
		config.Storages = append(storages, workspace.Storage{Name: "away", Path: filepath.Join(data, "none") + "/{project}"})
	})
	if offers := n.Node().Storages; len(offers) != 12 || offers[0] != "algorithm/nas" {
		t.Errorf("the node tells of %q", offers)
	}
	for name, job := range map[string]struct {
		change func(*structs.Job)
		cause  string
		infra  bool
	}{
		"missing": {func(j *structs.Job) { j.Datasets[0].Name = "none" }, "client.data_missing", false},
		"stolen":  {func(j *structs.Job) { j.Datasets[0] = structs.DataRef{Name: "stolen"} }, "client.data_refused", false},
		"file":    {func(j *structs.Job) { j.Mounts = []structs.Mount{{Target: "/m", Storage: "nas", Source: "../dataset"}} }, "client.storage_word", false},
		"away":    {func(j *structs.Job) { j.OutputStorage = "away" }, "client.storage_away", true},
		"other":   {func(j *structs.Job) { j.OutputStorage = "other" }, "client.storage_missing", true},
		"user":    {func(j *structs.Job) { j.Project = ".." }, "client.storage_word", false},
	} {
		a := withData("job-"+name, "true")
		a.Job.Project = "p"
		job.change(a.Job)
		c.assign(a)
		if r := wantEnd(t, c, a.Alloc.ID); r.Status != structs.AllocFailed || r.Cause == nil || r.Cause.ID != job.cause || r.Infra != job.infra {
			t.Errorf("%s: report %+v, cause %+v", name, r, r.Cause)
		}
	}
	if _, err := os.Stat(filepath.Join(data, "none")); err == nil {
		t.Error("a storage that is not there was made")
	}
}

// TestPreparedData: a dataset is read from its copy, which a second job and a
// second agent find, and which goes when it was not used for long.
func TestPreparedData(t *testing.T) {
	data, storages := nas(t)
	c := newControl()
	dir, n := nodeWithData(t, c, exec.IsolationRaw, "", storages)
	run := func(name string) {
		a := withData(name, `sh -c "cat $NOMADLIKE_WORKSPACE/dataset/private/digits/train; readlink $NOMADLIKE_WORKSPACE/dataset/private/digits"`)
		a.Job.Datasets[0].Prepare = true
		c.assign(a)
		if r := wantEnd(t, c, a.Alloc.ID); r.Status != structs.AllocComplete {
			t.Fatalf("report %+v, stderr %q", r, logText(t, dir, a.Alloc.ID, "stderr"))
		}
		if out := logText(t, dir, a.Alloc.ID, "stdout"); !strings.HasPrefix(out, "digits\n"+dir+"/data/sets/") {
			t.Errorf("log %q", out)
		}
	}
	run("first")
	run("second")
	c.mu.Lock()
	var copied []string
	for _, note := range c.mu.notes {
		if note.Told != nil && note.Told.Event == structs.EventDataPrepared {
			copied = append(copied, note.Told.Params["copied"])
		}
	}
	c.mu.Unlock()
	if len(copied) != 2 || copied[0] != "14B" || copied[1] != "0B" {
		t.Errorf("copied %q", copied)
	}
	eventually.Within(t, time.Minute, "nobody uses the copy", func() bool {
		uses, _ := filepath.Glob(filepath.Join(dir, "data/uses/*/*"))
		return len(uses) == 0
	})
	if held := n.Node(); held.CopiesFor(&structs.Job{Project: "p", Datasets: []structs.DataRef{{Name: "digits", Version: 1, Prepare: true}, {Name: "other", Prepare: true}}}) != 1 {
		t.Errorf("the node tells of %q", held.Data)
	}
	sets, _ := filepath.Glob(filepath.Join(dir, "data/sets/*/used"))
	if len(sets) != 1 {
		t.Fatalf("copies: %q", sets)
	}
	old := time.Now().Add(-8 * 24 * time.Hour)
	if err := os.Chtimes(sets[0], old, old); err != nil {
		t.Fatal(err)
	}
	n.preparer.Data.Sweep(nil)
	if _, err := os.Stat(sets[0]); err == nil {
		t.Error("the copy outlives its retention")
	}
	if names := n.Node().Data; len(names) != 0 {
		t.Errorf("the node still tells of %q", names)
	}
	if _, err := os.Stat(filepath.Join(data, "dataset/p/digits/1/train")); err != nil {
		t.Error(err)
	}
}

// A cache of Hugging Face is read through its links, prepared or not, and the event
// counts those that lead out of it.
func TestPreparedLinks(t *testing.T) {
	dir, storages := nas(t)
	cache := filepath.Join(dir, "dataset/p/hub/models--x")
	for _, name := range []string{"blobs", "snapshots/main"} {
		if err := os.MkdirAll(filepath.Join(cache, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(cache, "blobs/4f2a"), []byte("weights\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"snapshots/main/model": "../../blobs/4f2a", "snapshots/main/away": "../../../../digits"} {
		if err := os.Symlink(target, filepath.Join(cache, name)); err != nil {
			t.Fatal(err)
		}
	}
	c := newControl()
	logs, _ := nodeWithData(t, c, exec.IsolationRaw, "", storages)
	for _, prepare := range []bool{false, true} {
		a := withData("reads-"+map[bool]string{false: "plain", true: "prepared"}[prepare], `sh -c "cat $NOMADLIKE_WORKSPACE/dataset/private/hub/models--x/snapshots/main/model"`)
		a.Job.Datasets = []structs.DataRef{{Name: "hub", ReadOnly: true, Prepare: prepare}}
		c.assign(a)
		if r := wantEnd(t, c, a.Alloc.ID); r.Status != structs.AllocComplete {
			t.Fatalf("report %+v, stderr %q", r, logText(t, logs, a.Alloc.ID, "stderr"))
		}
		if out := logText(t, logs, a.Alloc.ID, "stdout"); out != "weights\n" {
			t.Errorf("log %q", out)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, note := range c.mu.notes {
		if told := note.Told; told != nil && told.Event == structs.EventDataPrepared {
			if told.Severity != "warn" || !strings.HasSuffix(told.Params["took"], "; 1 link that leads out of it is left out") || !strings.HasSuffix(told.Params["took_zh"], "；略去 1 个指向数据集之外的链接") {
				t.Errorf("told %+v", told)
			}
			return
		}
	}
	t.Error("nothing is told of the copy")
}

package client

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"nomadlike/nomadlike/client/workspace"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/exec"
)

// Attack 30: whoever may write to a storage puts links where a job looks for its
// dataset and its volume. They lead to nothing but what the administrator has
// given: not to the node's files, not to the engine's socket, not to the agent's
// own directory, and not through the copy that is made of them.
func TestAttackDataLinks(t *testing.T) {
	for name, isolation := range map[string]string{"raw": exec.IsolationRaw, "isolated": exec.IsolationAuto} {
		t.Run(name, func(t *testing.T) {
			data, storages := nas(t)
			c := newControl()
			dir, _ := nodeWithData(t, c, isolation, "", storages)
			for kind, targets := range map[string][]string{
				"dataset": {"/", "/etc", "/var/run/docker.sock", "/proc/self/root", dir, filepath.Join(dir, "data"), "../../../..", filepath.Join(data, "secret")},
				"volume":  {"/", dir, "/var/run"},
			} {
				for i, target := range targets {
					job := strings.ToLower(kind + "-" + name + "-" + string(rune('a'+i)))
					link := filepath.Join(data, kind, "p", job)
					if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.Symlink(target, link); err != nil {
						t.Fatal(err)
					}
					a := gang(job, 1, "true", "n1")[0]
					a.Job.User = "li"
					if kind == "dataset" {
						a.Job.Datasets = []structs.DataRef{{Name: job, ReadOnly: true, Prepare: i%2 == 1}}
					} else {
						a.Job.Volumes = []structs.DataRef{{Name: job}}
					}
					c.assign(a)
					r := wantEnd(t, c, a.Alloc.ID)
					if r.Status != structs.AllocFailed || r.Infra || r.Cause == nil || r.Cause.ID != "client.data_refused" && r.Cause.ID != "client.data_missing" && r.Cause.ID != "client.data_make" {
						t.Errorf("%s that leads to %s: report %+v, cause %+v", kind, target, r, r.Cause)
					}
				}
			}
			if copies, _ := filepath.Glob(filepath.Join(dir, "data/sets/*")); len(copies) != 0 {
				t.Errorf("copies were made: %q", copies)
			}

			// Links in a dataset are left out of its copy.
			if err := os.Symlink("/etc/passwd", filepath.Join(data, "dataset/p/digits/1/users")); err != nil {
				t.Fatal(err)
			}
			a := withData("linked-"+name, `sh -c "ls $NOMADLIKE_WORKSPACE/dataset/private/digits"`)
			a.Job.Datasets[0].Prepare = true
			c.assign(a)
			if r := wantEnd(t, c, a.Alloc.ID); r.Status != structs.AllocComplete {
				t.Fatalf("report %+v, cause %+v", r, r.Cause)
			}
			if out := logText(t, dir, a.Alloc.ID, "stdout"); out != "annotation\ntrain\n" {
				t.Errorf("the copy holds %q", out)
			}
		})
	}
}

// Attack 30, after the check: a dataset is swapped for a link to somebody's
// secret while jobs that read it start. A job reads what it may, or does not
// start.
func TestAttackDataSwap(t *testing.T) {
	data := tempDir(t)
	for file, text := range map[string]string{"sets/mine/file": "mine\n", "secret/file": "secret\n"} {
		if err := os.MkdirAll(filepath.Join(data, filepath.Dir(file)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(data, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	place, spare := filepath.Join(data, "sets/mine"), filepath.Join(data, "sets/spare")
	if err := os.Symlink(filepath.Join(data, "secret"), spare); err != nil {
		t.Fatal(err)
	}
	c := newControl()
	dir, n := nodeWithData(t, c, exec.IsolationAuto, exec.ViewPrivate, []workspace.Storage{{Name: "nas", Path: data + "/sets"}})
	if n.Node().Attributes["driver.exec.isolation"] == "raw" {
		t.Logf("the node cannot isolate tasks: %s", n.Node().Attributes["driver.exec.isolation_reason"])
		return // they see its files in any case
	}
	var ended atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !ended.Load() {
			_ = os.Rename(place, place+".away") // in a race, any of the four may fail
			_ = os.Rename(spare, place)
			_ = os.Rename(place, spare)
			_ = os.Rename(place+".away", place)
		}
	}()
	started := 0
	const tries = 24
	for i := range tries {
		a := gang("swap-"+string(rune('a'+i)), 1, "cat /workspace/dataset/private/mine/file", "n1")[0]
		a.Job.User = "li"
		a.Job.Datasets = []structs.DataRef{{Name: "mine", ReadOnly: true, Prepare: i%2 == 0}}
		c.assign(a)
		if r := wantEnd(t, c, a.Alloc.ID); r.Status != structs.AllocComplete {
			continue
		}
		started++
		if out := logText(t, dir, a.Alloc.ID, "stdout"); out != "mine\n" {
			t.Errorf("the job reads %q", out)
		}
	}
	ended.Store(true)
	<-done
	t.Logf("%d of %d jobs were started during the swaps", started, tries)
}

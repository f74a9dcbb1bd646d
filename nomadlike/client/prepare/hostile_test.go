package prepare

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"nomadlike/nomadlike/client/account"
	"nomadlike/nomadlike/client/checkpoint"
	"nomadlike/nomadlike/launch"
	"nomadlike/nomadlike/structs"
)

// Attack 32: what the agent writes into a task's directory (host files, rank
// tables, the remote shell, the inbox, the working directory, links to data) does
// not follow links that the task has put in its way.
func TestWhatIsWrittenStaysInTheTask(t *testing.T) {
	files := []launch.File{
		{Path: ".nomadlike/hostfile", Mode: 0o644, Content: "written"},
		{Path: ".deepspeed_env", Mode: 0o644, Content: "written"},
		{Path: ".nomadlike/bin/ssh", Mode: 0o755, Content: "written"},
	}
	nobody := account.Owner{Change: os.Geteuid() == 0, UID: 65534, GID: 65534}
	for name, plant := range map[string]func(t *testing.T, task, outside string){
		"the directory leads out": func(t *testing.T, task, outside string) { symlink(t, outside, filepath.Join(task, ".nomadlike")) },
		"the directory leads up":  func(t *testing.T, task, _ string) { symlink(t, "../outside", filepath.Join(task, ".nomadlike")) },
		"the file leads out": func(t *testing.T, task, outside string) {
			if err := os.Mkdir(filepath.Join(task, ".nomadlike"), 0o777); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{".nomadlike/hostfile", ".deepspeed_env", ".nomadlike/bin"} {
				symlink(t, filepath.Join(outside, "hostfile"), filepath.Join(task, name))
			}
		},
		"the working directory and the data lead out": func(t *testing.T, task, outside string) {
			symlink(t, outside, filepath.Join(task, "work"))
			symlink(t, outside, filepath.Join(task, workspaceDir))
		},
	} {
		t.Run(name, func(t *testing.T) {
			task, outside, before := taskAndOutside(t)
			plant(t, task, outside)
			s := &space{dir: filepath.Join(task, workspaceDir), links: map[string]string{"model/a": "/data/a"}}
			// Whether it fails is the task's own trouble; here is only asked what it reaches.
			_ = writeFiles(task, files, nobody)
			_ = makeInbox(task, nobody)
			_ = makeWorkingDir(task, &structs.Job{Task: structs.Task{Dir: "work/sub"}}, nobody)
			_ = s.link(task, nobody)
			unchanged(t, outside, before)
		})
	}
	t.Run("checkpoints", func(t *testing.T) {
		task, outside, before := taskAndOutside(t)
		if err := os.MkdirAll(filepath.Join(task, filepath.Dir(checkpoint.InboxDir)), 0o777); err != nil {
			t.Fatal(err)
		}
		symlink(t, outside, filepath.Join(task, checkpoint.InboxDir))
		if err := makeInbox(task, nobody); err == nil {
			t.Error("an inbox outside of the task is taken")
		}
		unchanged(t, outside, before)
	})
}

// The same while the task swaps its directory for a link again and again.
func TestWhatIsWrittenStaysInTheTaskThatSwapsLinks(t *testing.T) {
	task, outside, before := taskAndOutside(t)
	at, link := filepath.Join(task, ".nomadlike"), filepath.Join(task, "link")
	symlink(t, outside, link)
	over := make(chan struct{})
	var swaps sync.WaitGroup
	swaps.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
			}
			_ = os.Rename(at, filepath.Join(task, "aside")) // it may not be there yet
			_ = os.Rename(link, at)
			_ = os.Rename(at, link)
			_ = os.RemoveAll(filepath.Join(task, "aside"))
		}
	})
	written := 0
	for range 2000 {
		if writeFiles(task, []launch.File{{Path: ".nomadlike/hostfile", Mode: 0o644, Content: "written"}}, account.Owner{}) == nil {
			written++
		}
	}
	close(over)
	swaps.Wait()
	unchanged(t, outside, before)
	t.Logf("%d of 2000 files were written in spite of it", written)
}

func symlink(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

// taskAndOutside makes the directory of a task, and one beside it that a task has
// no business in.
func taskAndOutside(t *testing.T) (task, outside string, before fs.FileInfo) {
	t.Helper()
	dir := t.TempDir()
	task, outside = filepath.Join(dir, "task"), filepath.Join(dir, "outside")
	for _, path := range []string{task, outside} {
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(outside, "hostfile"), []byte("of the host"), 0o600); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(filepath.Join(outside, "hostfile"))
	if err != nil {
		t.Fatal(err)
	}
	return task, outside, before
}

// unchanged fails when anything was written, made, removed or given away outside.
func unchanged(t *testing.T, outside string, before fs.FileInfo) {
	t.Helper()
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) != 1 {
		t.Fatalf("outside there is %v, %v", entries, err)
	}
	path := filepath.Join(outside, "hostfile")
	text, err := os.ReadFile(path)
	info, statErr := os.Lstat(path)
	if err := errors.Join(err, statErr); err != nil {
		t.Fatal(err)
	}
	if string(text) != "of the host" || !os.SameFile(info, before) || info.Mode() != before.Mode() {
		t.Errorf("outside was written: %q, %s", text, info.Mode())
	}
	for _, name := range []string{outside, path} {
		if info, err := os.Lstat(name); err != nil || int(info.Sys().(*syscall.Stat_t).Uid) != os.Geteuid() {
			t.Errorf("%s was given away, %v", name, err)
		}
	}
}

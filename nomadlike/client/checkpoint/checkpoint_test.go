package checkpoint

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"nomadlike/nomadlike/structs"
)

// inbox makes a task's directory with an inbox.
func inbox(t *testing.T) (taskDir, dir string) {
	t.Helper()
	taskDir = t.TempDir()
	dir = filepath.Join(taskDir, InboxDir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return taskDir, dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestAMessageIsTakenOnceAndAnsweredWhenItIsDelivered(t *testing.T) {
	taskDir, dir := inbox(t)
	b := NewInbox(taskDir)
	stored := make(chan bool, 1)
	go func() {
		ok, err := Register(t.Context(), dir, "/ck/1", 7)
		stored <- ok && err == nil
	}()
	var found []Saved
	for deadline := time.Now().Add(5 * time.Second); len(found) == 0 && time.Now().Before(deadline); {
		var err error
		if found, err = b.Take(); err != nil {
			t.Fatal(err)
		}
	}
	if len(found) != 1 || found[0].Checkpoint.Path != "/ck/1" || found[0].Checkpoint.Step != 7 || found[0].Checkpoint.SavedAt == 0 {
		t.Fatalf("found %+v", found)
	}
	if again, _ := b.Take(); len(again) != 0 {
		t.Errorf("taken twice: %+v", again)
	}
	// An agent that starts anew finds it again: nobody has it in a log yet.
	if again, _ := NewInbox(taskDir).Take(); len(again) != 1 {
		t.Errorf("another agent found %+v", again)
	}
	b.Delivered(found[0].Name)
	if !<-stored {
		t.Error("no answer")
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestWhatATaskMayPutIntoItsInbox(t *testing.T) {
	taskDir, dir := inbox(t)
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, "/etc/shadow\n")
	write(t, filepath.Join(dir, "plain"), "/ck/2\n")
	write(t, filepath.Join(dir, "part.tmp"), "/ck/3\n")
	write(t, filepath.Join(dir, "open"), "/ck/4")
	write(t, filepath.Join(dir, "long"), strings.Repeat("x", messageMax+1))
	write(t, filepath.Join(dir, "bad"), "\x1b[2J\nanswer\n")
	write(t, filepath.Join(dir, "badstep"), "/ck/5\nstep -1\nanswer\n")
	if err := os.Symlink(secret, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "dir"), 0o755); err != nil {
		t.Fatal(err)
	}
	found, err := NewInbox(taskDir).Take()
	if err != nil || len(found) != 1 || found[0].Checkpoint.Path != "/ck/2" {
		t.Fatalf("found %+v, %v", found, err)
	}
	for name, want := range map[string]string{"bad.done": "client.checkpoint_path_bad", "badstep.done": "client.checkpoint_step_bad"} {
		if answer, err := os.ReadFile(filepath.Join(dir, name)); err != nil || strings.TrimSpace(string(answer)) != want {
			t.Errorf("%s: %q, %v", name, answer, err)
		}
	}
	if _, err := os.Stat(secret); err != nil {
		t.Errorf("the link's target: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "open")); err != nil {
		t.Errorf("a message that is not whole was dropped: %v", err)
	}
}

func TestAnInboxThatLeadsAwayIsNotRead(t *testing.T) {
	taskDir := t.TempDir()
	elsewhere := t.TempDir()
	write(t, filepath.Join(elsewhere, "m"), "/ck/1\n")
	if err := os.Mkdir(filepath.Join(taskDir, ".nomadlike"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, filepath.Join(taskDir, InboxDir)); err != nil {
		t.Fatal(err)
	}
	if found, err := NewInbox(taskDir).Take(); err == nil {
		t.Errorf("found %+v", found)
	}
}

func TestRegisterRefusesAndGivesUp(t *testing.T) {
	_, dir := inbox(t)
	for want, call := range map[string]func() (bool, error){
		"client.checkpoint_path_empty": func() (bool, error) { return Register(t.Context(), dir, "", 0) },
		"client.checkpoint_path_long": func() (bool, error) {
			return Register(t.Context(), dir, strings.Repeat("x", structs.CheckpointPathMax+1), 0)
		},
		"client.checkpoint_step_bad": func() (bool, error) { return Register(t.Context(), dir, "/a", -1) },
		"client.checkpoint_outside":  func() (bool, error) { return Register(t.Context(), "", "/a", 0) },
		"client.checkpoint_inbox":    func() (bool, error) { return Register(t.Context(), dir+"/none", "/a", 0) },
	} {
		var told *structs.Error
		if _, err := call(); !errors.As(err, &told) || told.ID != want {
			t.Errorf("want %s, got %v", want, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if stored, err := Register(ctx, dir, "/a", 0); stored || err != nil {
		t.Errorf("without an agent: %v, %v", stored, err)
	}
}

func TestWatchGivesTheNewestWholeEntryOnce(t *testing.T) {
	begin := time.Unix(1000, 0)
	at := func(seconds float64) time.Time { return begin.Add(time.Duration(seconds * float64(time.Second))) }
	var w Watch
	step := func(now float64, end End, entries ...Entry) string {
		t.Helper()
		e, ok := w.Step(entries, "step-*", at(now), end)
		if !ok {
			return ""
		}
		return e.Name
	}
	first := Entry{Name: "step-9.pt", Bytes: 10, Modified: at(0)}
	growing := Entry{Name: "step-10.pt", Bytes: 1, Modified: at(3)}
	grown := Entry{Name: "step-10.pt", Bytes: 5, Modified: at(4)}
	other := Entry{Name: "notes", Bytes: 1, Modified: at(9)}
	part := Entry{Name: "step-11.pt.tmp", Bytes: 1, Modified: at(9)}
	for i, one := range []struct {
		now     float64
		entries []Entry
		want    string
	}{
		{0, []Entry{first}, ""},
		{1, []Entry{first}, ""},
		{2, []Entry{first, other, part}, "step-9.pt"},
		{3, []Entry{first, growing}, ""},
		{4, []Entry{first, grown}, ""},
		{5, []Entry{first, grown}, ""},
		{6, []Entry{first, grown}, "step-10.pt"},
		{7, []Entry{grown}, ""},
		{8, nil, ""},
	} {
		if got := step(one.now, Running, one.entries...); got != one.want {
			t.Errorf("look %d: got %q, want %q", i, got, one.want)
		}
	}
	if got := step(9, EndedWell, Entry{Name: "step-12.pt", Bytes: 1, Modified: at(9)}); got != "step-12.pt" {
		t.Errorf("at the end: %q", got)
	}
}

// TestLastLookAfterACrash: what was saved a moment before a crash counts, what was
// cut off does not.
func TestLastLookAfterACrash(t *testing.T) {
	begin := time.Unix(1000, 0)
	at := func(seconds float64) time.Time { return begin.Add(time.Duration(seconds * float64(time.Second))) }
	old := Entry{Name: "step-1.pt", Bytes: 10, Modified: at(0)}
	for _, c := range []struct {
		name         string
		before, last []Entry // of the look a second before the crash, and of the one after
		want         string
	}{
		{"nothing new", []Entry{old}, []Entry{old}, ""},
		{"seen once before", []Entry{old, {Name: "step-2.pt", Bytes: 3, Modified: at(4)}}, []Entry{old, {Name: "step-2.pt", Bytes: 3, Modified: at(4)}}, "step-2.pt"},
		{"grown since", []Entry{old, {Name: "step-2.pt", Bytes: 3, Modified: at(4)}}, []Entry{old, {Name: "step-2.pt", Bytes: 4, Modified: at(5)}}, ""},
		{"as large as the one before", []Entry{old}, []Entry{old, {Name: "step-2.pt", Bytes: 10, Modified: at(5)}}, "step-2.pt"},
		{"cut off", []Entry{old}, []Entry{old, {Name: "step-2.pt", Bytes: 9, Modified: at(5)}}, ""},
		{"the one before was removed for it", []Entry{old}, []Entry{{Name: "step-2.pt", Bytes: 10, Modified: at(5)}}, "step-2.pt"},
		{"two of them", []Entry{old}, []Entry{old, {Name: "step-2.pt", Bytes: 11, Modified: at(4)}, {Name: "step-3.pt", Bytes: 10, Modified: at(5)}}, "step-3.pt"},
		{"the later was cut off", []Entry{old}, []Entry{old, {Name: "step-2.pt", Bytes: 10, Modified: at(4)}, {Name: "step-3.pt", Bytes: 2, Modified: at(5)}}, "step-2.pt"},
	} {
		var w Watch
		w.Step([]Entry{old}, "", at(0), Running)
		if e, ok := w.Step([]Entry{old}, "", at(3), Running); !ok || e.Name != old.Name {
			t.Fatalf("%s: the first was not given", c.name)
		}
		w.Step(c.before, "", at(4), Running)
		if e, _ := w.Step(c.last, "", at(5), EndedBadly); e.Name != c.want {
			t.Errorf("%s: got %q, want %q", c.name, e.Name, c.want)
		}
	}
	var w Watch
	if e, ok := w.Step([]Entry{old}, "", at(1), EndedBadly); ok {
		t.Errorf("the first of a training, seen at its crash alone, is given: %+v", e)
	}
}

func TestStepOf(t *testing.T) {
	for name, want := range map[string]int64{
		"step-1200.pt": 1200, "ckpt_000017": 17, "epoch3-step40.ckpt": 40, "model.pt": 0, "checkpoint-500": 500,
		"global_step1000": 1000, "a.7": 7, "999999999999999999999": 0, "": 0, "v2/x.mp4": 2,
	} {
		if got := StepOf(name); got != want {
			t.Errorf("%q: %d, want %d", name, got, want)
		}
	}
}

func TestLookDescribesFilesAndDirectories(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "step-1"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "step-1", "a"), "123")
	write(t, filepath.Join(dir, "step-1", "b"), "4567")
	write(t, filepath.Join(dir, "file"), "12")
	for name, place := range map[string]Place{"root": {Root: filepath.Dir(dir), Dir: filepath.Base(dir)}, "plain": {Dir: dir}} {
		entries, err := Look(place)
		if err != nil {
			t.Fatal(err)
		}
		sizes := make(map[string]int64)
		for _, e := range entries {
			sizes[e.Name] = e.Bytes
		}
		if len(sizes) != 2 || sizes["step-1"] != 7 || sizes["file"] != 2 {
			t.Errorf("%s: %v", name, sizes)
		}
	}
	if os.Geteuid() == 0 {
		if err := os.Chmod(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if entries, err := Look(Place{Dir: dir, UID: 65534, GID: 65534}); !errors.Is(err, os.ErrPermission) {
			t.Errorf("with the rights of nobody: %v, %v", entries, err)
		}
		if _, err := Look(Place{Dir: dir}); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	}
	if _, err := Look(Place{Root: dir, Dir: "../.."}); err == nil {
		t.Error("a look above the root")
	}
}

func FuzzParse(f *testing.F) {
	f.Add("/a\nstep 4\nanswer\n")
	f.Add("\n\n")
	f.Add("/a\nstep\n")
	f.Fuzz(func(t *testing.T, text string) {
		m, problem, whole := parse(text)
		if !whole || problem != "" {
			return
		}
		again, problem, whole := parse(m.text())
		if !whole || problem != "" || again != m {
			t.Errorf("%q: %+v, then %+v %q", text, m, again, problem)
		}
	})
}

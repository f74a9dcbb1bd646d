package objects

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

// wrote is what a task of user 1000 wrote to the output run1.
func wrote(t *testing.T, dir string, files map[string]string) string {
	t.Helper()
	at := filepath.Join(dir, "output/vision/run1")
	for name, text := range files {
		name = filepath.Join(at, name)
		target, isLink := strings.CutPrefix(text, "-> ")
		err := os.MkdirAll(filepath.Dir(name), 0o755)
		switch {
		case err != nil:
		case isLink:
			err = os.Symlink(target, name)
		case text == "|":
			err = syscall.Mkfifo(name, 0o644)
		default:
			err = os.WriteFile(name, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if os.Geteuid() == 0 {
		if err := filepath.WalkDir(at, func(name string, _ os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(name, 1000, 1000)
		}); err != nil {
			t.Fatal(err)
		}
	}
	return at
}

func takeOf(number int, below string, ended bool) *structs.DataAsk {
	return &structs.DataAsk{
		What: structs.DataAskTake, Upload: "take-0000000" + string(rune('0'+number)),
		Place: structs.DataPlace{Project: "vision", Owner: "li", Kind: structs.StorageModel, Name: "resnet", Storage: "nas", Version: number},
		From:  &structs.DataOutput{Project: "vision", User: "li", Output: "run1", Storage: "nas", Path: below, Ended: ended},
	}
}

// refusalID is the id of the text of an error.
func refusalID(t *testing.T, err error) string {
	t.Helper()
	told, ok := errors.AsType[*structs.Error](err)
	if !ok {
		t.Fatalf("refused with %v, which has no text for people", err)
	}
	return told.ID
}

// asked asks until it is done.
func asked(t *testing.T, s *Store, ask *structs.DataAsk) (reply *structs.DataReply, refused string) {
	t.Helper()
	eventually.Within(t, 20*time.Second, "the version", func() bool {
		var err error
		reply, err = s.Answer(t.Context(), ask)
		if err != nil {
			refused = refusalID(t, err)
			return true
		}
		return reply.Done
	})
	return reply, refused
}

func inode(t *testing.T, name string) uint64 {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Ino
}

// What a job wrote becomes a version without copying when it has ended: nobody can
// write to it then. While the job goes on, and for what is open to be written, it is a
// copy. What is made of a part is that part.
func TestTake(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	at := wrote(t, dir, map[string]string{"a": "one", "sub/b": "two", "sub/l": "-> ../a", "open": "three", ".nomadlike/x": "not ours"})
	file, err := os.OpenFile(filepath.Join(at, "open"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	running, refused := asked(t, s, takeOf(1, "", false))
	if refused != "" || running.Files != 4 || running.Bytes != 11 {
		t.Fatalf("of a running job: %+v, %s", running, refused)
	}
	ended, refused := asked(t, s, takeOf(2, "", true))
	if refused != "" || ended.Digest != running.Digest {
		t.Fatalf("of an ended job: %+v, %s", ended, refused)
	}
	version := func(number, name string) string { return filepath.Join(dir, "model/vision/resnet", number, name) }
	if inode(t, version("1", "a")) == inode(t, filepath.Join(at, "a")) {
		t.Error("a running job could write to a version")
	}
	shared := ended.Copied == 0 || inode(t, version("2", "a")) == inode(t, filepath.Join(at, "a"))
	if !shared || inode(t, version("2", "open")) == inode(t, filepath.Join(at, "open")) {
		t.Errorf("copied %d bytes; what is open to be written is not shared, the rest is", ended.Copied)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{version("2", "a"), version("2", "sub")} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm()&0o222 != 0 || !ours(info) {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if again, refused := asked(t, s, takeOf(2, "", true)); refused != "" || again.Digest != ended.Digest {
		t.Errorf("again: %+v, %s", again, refused)
	}
	third, refused := asked(t, s, takeOf(3, "sub/b", true))
	text, err := os.ReadFile(version("3", "b"))
	if refused != "" || third.Files != 1 || string(text) != "two" {
		t.Errorf("of one file: %+v, %s, %q, %v", third, refused, text, err)
	}
	s.Close()
	s = openStore(t, dir) // the next agent is asked for the same
	if again, refused := asked(t, s, takeOf(2, "", true)); refused != "" || again.Digest != ended.Digest {
		t.Errorf("after a restart: %+v, %s", again, refused)
	}
	verify := takeOf(2, "", true)
	verify.What, verify.From, verify.Place.Digest = structs.DataAskVerify, nil, ended.Digest
	if reply, refused := asked(t, s, verify); refused != "" || reply.Wrongs != 0 {
		t.Errorf("verified: %+v, %s", reply, refused)
	}
}

// Whatever is left of an agent that was killed between two steps, the next try makes the
// version.
func TestTakeIsRepeated(t *testing.T) {
	dir := t.TempDir()
	at := wrote(t, dir, map[string]string{"a": "one", "sub/b": "two"})
	parent := filepath.Join(dir, "model/vision/resnet")
	own := filepath.Join(parent, ownDir)
	m, _, err := tree.Scan(t.Context(), at, tree.Options{Data: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, left := range []map[string]string{
		{"up-ID/tree-node-1/old": "of a try before"},
		{"up-ID/tree-node-1/a": "one", "up-ID/tree-node-1/sub/.nomadlike-link": "two"},
		{"up-ID/sealed": string(m.Digest())},
		{"up-ID/sealed": string(m.Digest()), "resnet.N.tree": string(m.Encode())},
		{"up-ID/sealed": "sha256:" + strings.Repeat("0", 64), "resnet.N.tree": "of an object that is gone", "../N/x": "its bytes"},
	} {
		ask := takeOf(i+1, "", true)
		named := strings.NewReplacer("ID", ask.Upload, "N", string(rune('1'+i)))
		for name, text := range left {
			name = filepath.Join(own, named.Replace(name))
			if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s := openStore(t, dir)
		if reply, refused := asked(t, s, ask); refused != "" || reply.Digest != string(m.Digest()) {
			t.Errorf("after %v: %+v, %s", left, reply, refused)
		}
		s.Close()
	}
}

// What cannot be a version is refused by name, and nothing is to be seen of it.
func TestTakeRefuses(t *testing.T) {
	for what, one := range map[string]struct {
		files map[string]string
		below string
		want  string
	}{
		"a pipe":                  {map[string]string{"p": "|"}, "", "objects.take_special"},
		"a link out of the tree":  {map[string]string{"a": "x", "l": "-> ../../../secret"}, "", "tree.link_out"},
		"nothing":                 {map[string]string{"sub/deep/.nomadlikeignore": "*"}, "sub", "objects.take_empty"},
		"no such directory":       {map[string]string{"a": "x"}, "b", "objects.output_gone"},
		"a directory by a link":   {map[string]string{"l": "-> ../../../../etc"}, "l", "objects.output_gone"},
		"a path out of the place": {map[string]string{"a": "x"}, "../../x", "objects.place"},
	} {
		dir := t.TempDir()
		s := openStore(t, dir)
		wrote(t, dir, one.files)
		_, refused := asked(t, s, takeOf(1, one.below, true))
		if refused != one.want {
			t.Errorf("%s: %q, want %q", what, refused, one.want)
		}
		if _, err := os.Stat(filepath.Join(dir, "model/vision/resnet/1")); err == nil {
			t.Errorf("%s: there is a version", what)
		}
	}
}

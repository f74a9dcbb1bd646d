package tree

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nomadlike/internal/messages"
	"nomadlike/nomadlike/structs"
)

func scanned(t *testing.T, dir string) (Manifest, []LeftOut) {
	t.Helper()
	m, left, err := Scan(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return m, left
}

func pathsOf(m Manifest) (names []string) {
	for i := range m.Entries {
		names = append(names, m.Entries[i].Path)
	}
	return names
}

func leftTexts(left []LeftOut) (texts []string) {
	for _, one := range left {
		texts = append(texts, fmt.Sprintf("%s by %s of %s:%d", one.Path, one.Text, one.File, one.Line))
	}
	return texts
}

// What is scanned, sent by chunks and unpacked is the same directory: names, bytes,
// modes, links and empty directories.
func TestThereAndBack(t *testing.T) {
	dir := t.TempDir()
	large := make([]byte, 20<<20)
	rand.Read(large)
	writeFile(t, filepath.Join(dir, "large.bin"), string(large))
	writeFile(t, filepath.Join(dir, "train.py"), "print(1)\n")
	writeFile(t, filepath.Join(dir, "again.py"), "print(1)\n")
	writeFile(t, filepath.Join(dir, "src", "new\nline \x1b[31m.txt"), "x")
	writeFile(t, filepath.Join(dir, "src", "\xb4\xfa\xc2\xeb.txt"), "gbk")
	writeFile(t, filepath.Join(dir, "src", "case"), "1")
	writeFile(t, filepath.Join(dir, "src", "CASE"), "2")
	writeFile(t, filepath.Join(dir, strings.Repeat("n", NameMax)), "")
	for name, mode := range map[string]os.FileMode{"train.py": 0o750, "src/case": 0o444} {
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "empty", "too"), 0o755), os.Symlink("../train.py", filepath.Join(dir, "src", "link")),
		os.Symlink("not/there", filepath.Join(dir, "dangling"))); err != nil {
		t.Fatal(err)
	}
	m, left := scanned(t, dir)
	if len(left) > 0 || m.Files() != 10 || m.Bytes() != int64(len(large)+9+9+1+3+1+1) {
		t.Fatalf("%d files, %d bytes, left out: %v", m.Files(), m.Bytes(), left)
	}
	source, err := OpenSource(dir, m)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	other := t.TempDir()
	open := func(_ context.Context, chunk Chunk) (io.ReadCloser, error) {
		data, err := source.Read(chunk)
		return io.NopCloser(bytes.NewReader(data)), err
	}
	if err := Unpack(t.Context(), m, openDir(t, other), open); err != nil {
		t.Fatal(err)
	}
	again, _ := scanned(t, other)
	if diff := cmp.Diff(m, again); diff != "" || m.Digest() != again.Digest() {
		t.Errorf("what came out is another tree: %s", diff)
	}
	if data, _ := os.ReadFile(filepath.Join(other, "large.bin")); !bytes.Equal(data, large) {
		t.Error("large.bin has other bytes")
	}
}

// A byte that is put into a large file leaves most chunks as they were, and cuts never
// move between versions: what was sent is sent anew otherwise.
func TestLargeFilesAreCutByContent(t *testing.T) {
	dir := t.TempDir()
	text := make([]byte, 16<<20)
	state := uint64(1)
	for i := range text { // the same bytes at every run
		state = state*6364136223846793005 + 1442695040888963407
		text[i] = byte(state >> 56)
	}
	name := filepath.Join(dir, "model.bin")
	writeFile(t, name, string(text))
	before, _ := scanned(t, dir)
	if got, want := before.Digest().Short(), "f65adea2137f"; got != want {
		t.Errorf("the tree is %s, was %s", got, want)
	}
	writeFile(t, name, string(slices.Insert(text, 5<<20, 'x')))
	after, _ := scanned(t, dir)
	known := make(map[Digest]bool)
	for _, chunk := range before.Chunks() {
		known[chunk.Digest] = true
	}
	fresh := int64(0)
	for _, chunk := range after.Chunks() {
		if !known[chunk.Digest] {
			fresh += chunk.Size
		}
	}
	if fresh == 0 || fresh > 4<<20 {
		t.Errorf("%d of %d bytes are new", fresh, after.Bytes())
	}
}

func TestIgnoreFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{
		"train.py", "a.pyc", ".venv/bin/python", "src/__pycache__/x", "src/m.py", "data/big", "data/small.csv", "logs/1", ".git/HEAD", ".git/info/x",
		"sub/keep.log", "sub/other.log", "node_modules/m/i.js",
	} {
		writeFile(t, filepath.Join(dir, name), "x")
	}
	writeFile(t, filepath.Join(dir, ".gitignore"), "# what git does not want\nlogs/\n*.log\n/data/*\n!.venv\n")
	writeFile(t, filepath.Join(dir, "sub", ".nomadlikeignore"), "!keep.log\n")
	writeFile(t, filepath.Join(dir, ".nomadlikeignore"), "!/data/small.csv\n!node_modules\n")
	m, left := scanned(t, dir)
	want := []string{
		".gitignore", ".nomadlikeignore", "data", "data/small.csv", "node_modules", "node_modules/m", "node_modules/m/i.js",
		"src", "src/m.py", "sub", "sub/.nomadlikeignore", "sub/keep.log", "train.py",
	}
	if diff := cmp.Diff(want, pathsOf(m)); diff != "" {
		t.Error(diff)
	}
	wantLeft := []string{
		".git by .git of :0", ".venv by .venv of :0", "a.pyc by *.py[co] of :0", "data/big by /data/* of .gitignore:4",
		"logs by logs/ of .gitignore:2", "src/__pycache__ by __pycache__ of :0", "sub/other.log by *.log of .gitignore:3",
	}
	if diff := cmp.Diff(wantLeft, leftTexts(left)); diff != "" {
		t.Error(diff)
	}
	writeFile(t, filepath.Join(dir, ".nomadlikeignore"), "#!only\n/data\n!/.git\n")
	m, _ = scanned(t, dir)
	for name, goes := range map[string]bool{"logs/1": true, "sub/other.log": true, "data": false, ".venv": false, ".git/HEAD": true} {
		if slices.Contains(pathsOf(m), name) != goes {
			t.Errorf("#!only: %s goes along: %t", name, !goes)
		}
	}
}

// The rules of a work tree hold in its directories, as git judges them there.
func TestRulesFromAbove(t *testing.T) {
	dir := t.TempDir()
	initGit(t, dir)
	for _, name := range []string{"p/q/train.py", "p/q/a.ckpt", "p/q/r/b.ckpt", "p/q/r/c.txt", "p/q/only", "p/other", "out/run/a.ckpt", "p/q/z"} {
		writeFile(t, filepath.Join(dir, name), "x")
	}
	writeFile(t, filepath.Join(dir, ".gitignore"), "*.ckpt\n/out/\n/p/q/only\n")
	writeFile(t, filepath.Join(dir, "p", ".gitignore"), "!r/b.ckpt\n")
	writeFile(t, filepath.Join(dir, ".git", "info", "exclude"), "z\n")
	inner := filepath.Join(dir, "p", "q")
	m, left := scanned(t, inner)
	if diff := cmp.Diff([]string{"r", "r/c.txt", "train.py"}, pathsOf(m)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{
		"a.ckpt by *.ckpt of ../../.gitignore:1", "only by /p/q/only of ../../.gitignore:3",
		"r/b.ckpt by *.ckpt of ../../.gitignore:1", "z by z of ../../.git/info/exclude:1",
	}, leftTexts(left)); diff != "" {
		t.Error(diff)
	}
	for _, one := range left {
		if git := gitSays(t, dir, []string{"p/q/" + one.Path}); git["p/q/"+one.Path] == "" {
			t.Errorf("git takes %s", one.Path)
		}
	}
	if m, _ := scanned(t, filepath.Join(dir, "out", "run")); len(m.Entries) != 1 { // named, so it is meant
		t.Errorf("of an ignored directory: %v", pathsOf(m))
	}
}

// What cannot travel is an error that names the file and what to write.
func TestWhatCannotTravel(t *testing.T) {
	socket := func(name string) error {
		listener, err := net.Listen("unix", name)
		if err != nil {
			return err
		}
		listener.(*net.UnixListener).SetUnlinkOnClose(false)
		return listener.Close()
	}
	for name, test := range map[string]struct {
		make func(at string) error
		id   string
	}{
		"pipe":     {func(at string) error { return syscall.Mkfifo(at, 0o644) }, "tree.special"},
		"socket":   {socket, "tree.special"},
		"link out": {func(at string) error { return os.Symlink("../../etc/passwd", at) }, "tree.link_out"},
		"absolute": {func(at string) error { return os.Symlink("/etc/passwd", at) }, "tree.link_out"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := os.MkdirTemp("", "t") // the path of a socket must be short
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			const bad = "bad one*\n\x1b[31m\xb4\xfa\\-"
			if err := test.make(filepath.Join(dir, bad)); err != nil {
				t.Fatal(err)
			}
			_, _, err = Scan(t.Context(), dir, Options{})
			var told *structs.Error
			if !errors.As(err, &told) || told.ID != test.id || told.Params["path"] != strconv.Quote(bad) {
				t.Fatalf("%v", err)
			}
			writeFile(t, filepath.Join(dir, OwnIgnore), told.Params["line"]+"\n") // the cure
			if m, _ := scanned(t, dir); len(m.Entries) != 1 {
				t.Errorf("the line %q did not help: %v", told.Params["line"], pathsOf(m))
			}
		})
	}
	for mode, want := range map[os.FileMode]string{os.ModeNamedPipe: "pipe", os.ModeSocket: "socket", os.ModeDevice | os.ModeCharDevice: "device_file"} {
		if got := specialKind(mode); got != want || !messages.Has(messages.Chinese, "word."+got) {
			t.Errorf("%v is called %s", mode, got)
		}
	}
	if _, _, err := Scan(t.Context(), filepath.Join(t.TempDir(), "none"), Options{}); idOf(err) != "tree.directory" {
		t.Errorf("no directory: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	writeFile(t, file, "")
	if _, _, err := Scan(t.Context(), file, Options{}); idOf(err) != "tree.no_directory" {
		t.Errorf("a file: %v", err)
	}
}

// Nothing is read of what is too large: a sparse file of a terabyte is refused at once.
func TestTooLarge(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "train.py"), "x")
	writeFile(t, filepath.Join(dir, "runs", "b", "1"), strings.Repeat("x", 3000))
	writeFile(t, filepath.Join(dir, "runs", "c", "1"), strings.Repeat("x", 2000))
	writeFile(t, filepath.Join(dir, "data", "sparse.bin"), "")
	if err := os.Truncate(filepath.Join(dir, "data", "sparse.bin"), 1<<40); err != nil {
		t.Fatal(err)
	}
	_, _, err := Scan(t.Context(), dir, Options{})
	var large *TooLargeError
	if !errors.As(err, &large) || large.Max != BytesMaxDefault || large.Bytes != 1<<40+5001 {
		t.Fatalf("%v", err)
	}
	want := []Part{
		{Path: "data", Bytes: 1 << 40, Files: 1, Line: "/data/"},
		{Path: "runs", Bytes: 5000, Files: 2, Line: "/runs/"},
		{Path: "runs/b", Bytes: 3000, Files: 1, Line: "/runs/b/"},
		{Path: "runs/c", Bytes: 2000, Files: 1, Line: "/runs/c/"},
		{Path: "train.py", Bytes: 1, Files: 1, Line: "/train.py"},
	}
	if diff := cmp.Diff(want, large.Largest); diff != "" {
		t.Error(diff)
	}
	writeFile(t, filepath.Join(dir, OwnIgnore), large.Largest[0].Line+"\n") // the cure
	if m, _ := scanned(t, dir); m.Files() != 4 {
		t.Errorf("%v", pathsOf(m))
	}
	for i := range 20 {
		writeFile(t, filepath.Join(dir, fmt.Sprint("d", i), "f"), "xx")
	}
	_, _, err = Scan(t.Context(), dir, Options{BytesMax: 10})
	if !errors.As(err, &large) || len(large.Largest) != LargestShown {
		t.Errorf("%v", err)
	}
}

// A file that changes while the directory is scanned, or before it has been sent, is an
// error that names it.
func TestFilesThatChange(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "a"), "first")
	writeFile(t, filepath.Join(dir, "b"), "second")
	for name, change := range map[string]func(at string) error{
		"longer":   func(at string) error { return os.WriteFile(at, []byte("SECOND and more"), 0o644) },
		"gone":     os.Remove,
		"replaced": func(at string) error { return errors.Join(os.Remove(at), os.WriteFile(at, []byte("secone"), 0o644)) },
		"a pipe":   func(at string) error { return errors.Join(os.Remove(at), syscall.Mkfifo(at, 0o644)) },
		"a link":   func(at string) error { return errors.Join(os.Remove(at), os.Symlink("a", at)) },
	} {
		t.Run(name, func(t *testing.T) {
			b := filepath.Join(dir, "b")
			if err := os.RemoveAll(b); err != nil {
				t.Fatal(err)
			}
			writeFile(t, b, "second")
			m, _ := scanned(t, dir)
			changes := func([]string) error { return change(b) } // between finding the files and reading them
			_, _, err := Scan(t.Context(), dir, Options{Fill: changes})
			var told *structs.Error
			if !errors.As(err, &told) || told.ID != "tree.changed" || told.Params["path"] != "b" {
				t.Errorf("while it was scanned: %v", err)
			}
			source, err := OpenSource(dir, m)
			if err != nil {
				t.Fatal(err)
			}
			defer source.Close()
			_, err = source.Read(m.Entries[1].Chunks[0])
			if !errors.As(err, &told) || told.ID != "tree.changed" || told.Params["path"] != "b" {
				t.Errorf("while it was sent: %v", err)
			}
		})
	}
	m, _ := scanned(t, t.TempDir())
	source, err := OpenSource(dir, m)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	if _, err := source.Read(Chunk{Digest: DigestOf(nil), Size: 1}); idOf(err) != "tree.unknown_chunk" {
		t.Errorf("of another tree: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := Scan(ctx, dir, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestIgnoreFilesAreBounded(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "x", GitIgnore), strings.Repeat("#\n", ignoreSizeMax/2+1))
	if _, _, err := Scan(t.Context(), dir, Options{}); idOf(err) != "tree.ignore_too_large" {
		t.Errorf("%v", err)
	}
	// Patterns of many stars are answered at once.
	writeFile(t, filepath.Join(dir, "x", GitIgnore), strings.Repeat("*a", 60)+"b\n")
	writeFile(t, filepath.Join(dir, "x", strings.Repeat("a", NameMax)), "")
	if m, _ := scanned(t, dir); len(m.Entries) != 3 {
		t.Errorf("%v", pathsOf(m))
	}
}

// TestDirectoriesThatAreFilled: of a commit, what git's files say of other files does not
// count; bytes are written once it is known which go along, and not of what stays behind.
func TestDirectoriesThatAreFilled(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{".gitignore": "*.ckpt\n", "a.ckpt": "?", "b/c.txt": "?", "b/left": "?", ".nomadlikeignore": "left\n", "__pycache__/x": "?"} {
		writeFile(t, filepath.Join(dir, name), text)
	}
	var asked []string
	options := Options{Committed: true, Fill: func(files []string) error {
		asked = files
		for _, name := range files {
			at := filepath.Join(dir, name)
			info, err := os.Stat(at)
			if err != nil {
				return err
			}
			data, err := os.ReadFile(at)
			if err == nil && string(data) == "?" {
				err = errors.Join(os.WriteFile(at, []byte("!"), 0o600), os.Chtimes(at, info.ModTime(), info.ModTime()))
			}
			if err != nil {
				return err
			}
		}
		return nil
	}}
	m, left, err := Scan(t.Context(), dir, options)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{".gitignore", ".nomadlikeignore", "a.ckpt", "b/c.txt"}, asked); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"__pycache__ by __pycache__ of :0", "b/left by left of .nomadlikeignore:1"}, leftTexts(left)); diff != "" {
		t.Error(diff)
	}
	for i := range m.Entries {
		if entry := &m.Entries[i]; entry.Path == "a.ckpt" && entry.Chunks[0].Digest != DigestOf([]byte("!")) {
			t.Error("what was read is not what was filled in")
		}
	}
	failed := errors.New("no")
	options.Fill = func([]string) error { return failed }
	if _, _, err := Scan(t.Context(), dir, options); !errors.Is(err, failed) {
		t.Errorf("%v", err)
	}
	options.BytesMax, options.Fill = 1, func([]string) error {
		t.Error("what is too large was filled")
		return nil
	}
	if _, _, err := Scan(t.Context(), dir, options); !errors.As(err, new(*TooLargeError)) {
		t.Errorf("%v", err)
	}
}

// The keys of a cluster that somebody tries out beside their code do not go with a job,
// unless they say so; a directory that only looks alike does.
func TestDataDirectoryOfAnAgent(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"train.py", "data/agent.lock", "data/identity/ca-key.pem", "sub/.nomadlike/agent.lock", "sub/.nomadlike/identity/agent-key.pem", "locks/agent.lock", "who/identity/me.txt"} {
		writeFile(t, filepath.Join(dir, name), "x")
	}
	m, left, err := Scan(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"data by agent.lock of :0", "sub/.nomadlike by agent.lock of :0"}, leftTexts(left)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"locks", "locks/agent.lock", "sub", "train.py", "who", "who/identity", "who/identity/me.txt"}, pathsOf(m)); diff != "" {
		t.Error(diff)
	}
	writeFile(t, filepath.Join(dir, OwnIgnore), "!data\n")
	if _, left, err = Scan(t.Context(), dir, Options{}); err != nil || len(left) != 1 {
		t.Errorf("%v %v", leftTexts(left), err)
	}
	if _, left, err = Scan(t.Context(), dir, Options{Data: true}); err != nil || len(left) != 0 {
		t.Errorf("of data %v stays behind, %v", leftTexts(left), err)
	}
}

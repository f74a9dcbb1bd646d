package command

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nomadlike/internal/messages"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

// testEnv is an environment without a terminal; what it prints goes nowhere.
func testEnv(t *testing.T) *Env {
	t.Helper()
	nowhere := &Screen{Writer: &bytes.Buffer{}}
	return &Env{
		Context: t.Context(), Stdin: strings.NewReader(""), Stdout: nowhere, Stderr: nowhere, Getenv: os.Getenv, Language: messages.English,
		Environ: append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1"),
	}
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	always := []string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"}
	command := exec.Command("git", append(always, args...)...)
	command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func put(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestGitIsWrittenDown: commit, branch and changes of the directory itself, and nothing
// that the directory asks git to run.
func TestGitIsWrittenDown(t *testing.T) {
	env := testEnv(t)
	top := t.TempDir()
	dir := filepath.Join(top, "train")
	put(t, filepath.Join(dir, "train.py"), "1")
	expect := func(want *structs.WorkdirGit) {
		t.Helper()
		if diff := cmp.Diff(want, env.gitOf(dir)); diff != "" {
			t.Error(diff)
		}
	}
	expect(nil)
	git(t, top, "init", "-q")
	expect(&structs.WorkdirGit{Branch: "main", Dirty: true})
	git(t, top, "add", ".")
	git(t, top, "commit", "-qm", "first")
	commit := git(t, top, "rev-parse", "HEAD")
	expect(&structs.WorkdirGit{Commit: commit, Branch: "main"})
	put(t, filepath.Join(top, "elsewhere"), "1") // not of this directory
	expect(&structs.WorkdirGit{Commit: commit, Branch: "main"})
	put(t, filepath.Join(dir, "new.py"), "1")
	expect(&structs.WorkdirGit{Commit: commit, Branch: "main", Dirty: true})
	git(t, top, "checkout", "-q", "--detach")
	expect(&structs.WorkdirGit{Commit: commit, Dirty: true})

	ran := filepath.Join(t.TempDir(), "ran")
	script := filepath.Join(top, ".git", "spy")
	put(t, script, "#!/bin/sh\ntouch "+ran+"\n")
	if err := os.Chmod(script, 0o755); err != nil {
		t.Fatal(err)
	}
	git(t, top, "config", "core.fsmonitor", script)
	git(t, top, "config", "core.hooksPath", filepath.Dir(script))
	expect(&structs.WorkdirGit{Commit: commit, Dirty: true})
	if _, err := os.Stat(ran); err == nil {
		t.Error("git ran a program of the directory's")
	}
}

// TestBodiesOfChunks: every chunk is sent once, and no body is larger than is taken.
func TestBodiesOfChunks(t *testing.T) {
	var chunks []tree.Chunk
	for i := range 10_000 {
		chunks = append(chunks, tree.Chunk{Digest: tree.DigestOf([]byte{byte(i), byte(i >> 8)}), Size: int64(i % 5000)})
	}
	chunks = append(chunks, tree.Chunk{Size: tree.ChunkSizeMax}, tree.Chunk{Size: 1}, tree.Chunk{Size: tree.ChunkSizeMax})
	var sent []tree.Chunk
	for _, body := range bodies(chunks) {
		if len(body) == 0 || len(body) > api.CodeChunksMax || bytesOf(body) > api.CodeBytesMax {
			t.Errorf("a body of %d chunks and %d bytes", len(body), bytesOf(body))
		}
		sent = append(sent, body...)
	}
	if diff := cmp.Diff(chunks, sent); diff != "" {
		t.Error(diff)
	}
	if len(bodies(nil)) != 0 {
		t.Error("nothing has bodies")
	}
}

// TestWhereCodeLies: a directory of a job file lies beside it, one of a flag where it is
// typed.
func TestWhereCodeLies(t *testing.T) {
	env := testEnv(t)
	env.Getenv = func(name string) string { return map[string]string{"HOME": "/home/ann"}[name] }
	for _, test := range []struct{ file, dir, want string }{
		{"train.hcl", ".", "."},
		{"jobs/train.hcl", ".", "jobs"},
		{"jobs/train.hcl", "../code", "code"},
		{"-", "code", "code"},
		{"/a/train.hcl", "b", "/a/b"},
		{"a/train.hcl", "/b", "/b"},
		{"a/train.hcl", "~/b", "/home/ann/b"},
	} {
		if got := env.besideFile(test.file, test.dir); got != test.want {
			t.Errorf("%s beside %s is %s, want %s", test.dir, test.file, got, test.want)
		}
	}
}

func TestWhereCodeOfARepositoryComesFrom(t *testing.T) {
	for want, w := range map[string]structs.Workdir{
		".":                      {Source: "."},
		"https://a/b":            {Source: "https://a/b", Repo: &structs.WorkdirRepo{}},
		"https://a/b#main":       {Source: "https://a/b", Repo: &structs.WorkdirRepo{Ref: "main"}},
		"https://a/b#main:train": {Source: "https://a/b", Repo: &structs.WorkdirRepo{Ref: "main", Subdir: "train"}},
		"https://a/b#:train":     {Source: "https://a/b", Repo: &structs.WorkdirRepo{Subdir: "train"}},
	} {
		if got := locationOf(&w); got != want {
			t.Errorf("%+v is %s, want %s", w, got, want)
		}
	}
}

package client

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/client/code"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/exec"
)

// oneFile is a server that has one tree, of a program in a directory.
type oneFile struct {
	manifest tree.Manifest
	content  []byte
	ctx      context.Context // of a stream
	stuck    bool
}

func programTree(content string) *oneFile {
	chunk := tree.Chunk{Digest: tree.DigestOf([]byte(content)), Size: int64(len(content))}
	return &oneFile{content: []byte(content), manifest: tree.Manifest{Entries: []tree.Entry{
		{Path: "nets", Kind: tree.KindDir, Mode: 0o755},
		{Path: "nets/train.sh", Kind: tree.KindFile, Mode: 0o755, Chunks: []tree.Chunk{chunk}},
	}}}
}

func (o *oneFile) Manifest() (tree.Manifest, error) {
	if o.stuck {
		<-o.ctx.Done()
		return tree.Manifest{}, o.ctx.Err()
	}
	return o.manifest, nil
}

func (o *oneFile) Chunks(want []tree.Chunk, took func(tree.Chunk, []byte) error) error {
	for _, chunk := range want {
		if err := took(chunk, o.content); err != nil {
			return err
		}
	}
	return nil
}

func (*oneFile) Close() {}

// job is an assignment of a job whose code is a tree.
func (o *oneFile) job(name string, attempt uint64, command string) *structs.Assignment {
	a := gang(name, attempt, command, "n1")[0]
	a.Job.Workdir = &structs.Workdir{Source: ".", Tree: string(o.manifest.Digest()), Files: 1, Bytes: int64(len(o.content))}
	return a
}

// program tells where it is and what it finds, spoils its code, and looks again.
const program = `#!/bin/sh
echo "in $(pwd) of $NOMADLIKE_CODE_DIR"
test "$(pwd -P)" = "$(cd $NOMADLIKE_CODE_DIR && pwd -P)" && echo it is the directory
test $(stat -c %u nets/train.sh) = $(id -u) && echo it is mine
echo spoilt >nets/train.sh
touch left
ls; ls $NOMADLIKE_WORKSPACE/code
`

// TestCode runs a job's code where tasks have views of their own and where they have
// none: it is the task's directory, its own, and the same for the next attempt.
func TestCode(t *testing.T) {
	for name, kind := range map[string]struct{ isolation, view, dir string }{
		"raw": {exec.IsolationRaw, "", "/task/code"}, "shared": {exec.IsolationAuto, exec.ViewShared, "/workspace/code"},
		"private": {exec.IsolationAuto, exec.ViewPrivate, "/workspace/code"},
	} {
		t.Run(name, func(t *testing.T) {
			from := programTree(program)
			var asked atomic.Int32
			c := newControl()
			dir, n := nodeWith(t, c, kind.isolation, kind.view, func(config *Config) {
				config.AskCode = func(_ context.Context, addr, alloc string) (code.Source, error) {
					asked.Add(1)
					return from, nil
				}
			})
			where := kind.dir
			if n.Node().Attributes["driver.exec.isolation"] == "raw" {
				where = "/task/code"
			}
			for attempt := range uint64(3) {
				a := from.job("trains", attempt+1, "nets/train.sh")
				a.RunAs = &structs.RunAs{Root: attempt == 1} // and as the project's user
				c.assign(a)
				r := wantEnd(t, c, a.Alloc.ID)
				out := logText(t, dir, a.Alloc.ID, "stdout")
				lines := strings.SplitAfterN(out, "\n", 2)
				if r.Status != structs.AllocComplete || len(lines) != 2 || !strings.HasSuffix(strings.TrimSpace(lines[0]), where) ||
					lines[1] != "it is the directory\nit is mine\nleft\nnets\nleft\nnets\n" {
					t.Fatalf("attempt %d: %+v: %q, stderr %q", attempt+1, r.Cause, out, logText(t, dir, a.Alloc.ID, "stderr"))
				}
			}
			if asked.Load() != 1 {
				t.Errorf("servers were asked %d times", asked.Load())
			}
			below := from.job("below", 1, "./train.sh /workspace/code/nets/train.sh")
			below.Job.Task.Dir = "nets"
			below.Job.Task.Command = `sh -c "pwd; cat $0" /workspace/code/nets/train.sh`
			c.assign(below)
			if r := wantEnd(t, c, below.Alloc.ID); r.Status != structs.AllocComplete {
				t.Errorf("%+v", r.Cause)
			}
			if out := logText(t, dir, below.Alloc.ID, "stdout"); !strings.HasSuffix(out, where+"/nets\n"+program) {
				t.Errorf("%q", out)
			}
		})
	}
}

// nodeWith starts a node whose exec driver isolates as told.
func nodeWith(t *testing.T, c *control, isolation, view string, change func(*Config)) (dir string, n *Client) {
	t.Helper()
	dir = tempDir(t)
	if err := errors.Join(os.Chmod(filepath.Dir(dir), 0o711), os.Mkdir(dir, 0o711)); err != nil { // the task's user passes through
		t.Fatal(err)
	}
	d, err := exec.New(exec.Config{
		StateDir: filepath.Join(dir, "exec"), Supervisor: []string{os.Args[0], "task-supervisor"}, Logger: testLogger(t), Isolation: isolation, View: view,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	cleanUp(t, dir)
	n, _ = c.node(t, dir, "n1", map[string]driver.Driver{"exec": d}, change)
	eventually.Within(t, time.Minute, "the driver speaks", func() bool { return n.Node().Attributes["driver.exec.isolation"] != "" })
	return dir, n
}

// A node whose servers say nothing waits; its agent is stopped, and the next one goes on.
func TestCodeAfterARestart(t *testing.T) {
	from := programTree("#!/bin/sh\necho trained\n")
	dir := tempDir(t)
	c := newControl()
	asked := make(chan struct{}, 100)
	drivers := map[string]driver.Driver{"exec": realExec(t, dir)}
	cleanUp(t, dir)
	_, stop := c.node(t, dir, "n1", drivers, func(config *Config) {
		config.AskCode = func(ctx context.Context, _, _ string) (code.Source, error) {
			asked <- struct{}{}
			return &oneFile{ctx: ctx, stuck: true}, nil
		}
	})
	a := from.job("waits", 1, "nets/train.sh")
	c.assign(a)
	<-asked
	stop()
	if last := c.last(a.Alloc.ID); last.Status.Terminal() {
		t.Fatalf("the stop ended it: %+v", last)
	}
	c.node(t, dir, "n1", drivers, func(config *Config) {
		config.AskCode = func(context.Context, string, string) (code.Source, error) { return from, nil }
	})
	if r := wantEnd(t, c, a.Alloc.ID); r.Status != structs.AllocComplete {
		t.Fatalf("%+v", r.Cause)
	}
	if out := logText(t, dir, a.Alloc.ID, "stdout"); out != "trained\n" {
		t.Errorf("%q", out)
	}
}

// What keeps code from a node is told with its cure, and charged to whom it is due.
func TestCodeThatDoesNotCome(t *testing.T) {
	from := programTree("#!/bin/sh\n")
	for name, want := range map[string]struct {
		source code.Ask
		cause  string
		infra  bool
	}{
		"not here": {func(context.Context, string, string) (code.Source, error) {
			return nil, structs.NewError(structs.CodeNotFound, "agent.secret_gone", "secret", "x")
		}, "agent.secret_gone", false},
		"away": {nil, "client.code_unreachable", true},
		"another": {func(context.Context, string, string) (code.Source, error) {
			return programTree("#!/bin/sh\necho stolen\n"), nil
		}, "client.code_corrupt", false},
		"hostile": {func(context.Context, string, string) (code.Source, error) {
			evil := tree.Manifest{Entries: []tree.Entry{{Path: "../../../../evil", Kind: tree.KindDir, Mode: 0o777}}}
			return &oneFile{manifest: evil}, nil
		}, "client.code_corrupt", false}, // not the one that the job names
	} {
		t.Run(name, func(t *testing.T) {
			dir := tempDir(t)
			c := newControl()
			drivers := map[string]driver.Driver{"exec": realExec(t, dir)}
			cleanUp(t, dir)
			c.node(t, dir, "n1", drivers, func(config *Config) { config.AskCode = want.source })
			a := from.job("starves", 1, "nets/train.sh")
			c.assign(a)
			r := wantEnd(t, c, a.Alloc.ID)
			if r.Status == structs.AllocComplete || r.Cause == nil || r.Cause.ID != want.cause || r.Infra != want.infra {
				t.Errorf("%+v, because of %+v", r, r.Cause)
			}
			if _, err := os.Lstat(filepath.Join(dir, "alloc", a.Alloc.ID, "task", "code")); err == nil {
				t.Error("something was made of it")
			}
		})
	}
}

// The cache is the agent's alone: no task looks into the code of others.
func TestCodeIsTheAgents(t *testing.T) {
	dir := tempDir(t)
	n, stop := newControl().node(t, dir, "n1", nil)
	stop()
	info, err := os.Stat(n.files.Code())
	if err != nil || info.Mode().Perm() != 0o700 || int(info.Sys().(*syscall.Stat_t).Uid) != os.Geteuid() {
		t.Errorf("%v, %v", info, err)
	}
}

package repository

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"nomadlike/nomadlike/structs"
)

// git is the program, and the repository that it is to work in.
type git struct {
	dir     string
	environ []string
}

// settings hold whatever the user's own settings, or the other end, say: nothing of a
// repository starts a program, leads to another server or has more fetched.
func settings() []string {
	return []string{
		"core.hooksPath=/dev/null", "core.fsmonitor=false", "core.attributesFile=/dev/null",
		"fetch.recurseSubmodules=false", "submodule.recurse=false", "transfer.bundleURI=false",
		"fetch.unpackLimit=1", "fetch.writeCommitGraph=false", "gc.auto=0", "maintenance.auto=false",
		"http.followRedirects=initial", "protocol.version=2", "safe.bareRepository=all",
	}
}

// environ is the user's environment without what turns git to other repositories, writes
// down what it sends, or asks at the terminal: nobody may be there.
func environ(users []string) []string {
	var kept []string
	for _, one := range users {
		name, _, _ := strings.Cut(one, "=")
		if name == "LC_ALL" || name == "LANGUAGE" || strings.HasPrefix(name, "GIT_") && !ofUser(name) {
			continue
		}
		kept = append(kept, one)
	}
	return append(kept, "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_ALLOW_PROTOCOL=http:https:ssh:git", "GIT_PROTOCOL_FROM_USER=0",
		"GIT_LFS_SKIP_SMUDGE=1", "GIT_NO_REPLACE_OBJECTS=1", "GIT_ATTR_NOSYSTEM=1", "GIT_NO_LAZY_FETCH=1")
}

// ofUser reports whether a variable of git's says how the user signs in and connects.
func ofUser(name string) bool {
	switch name {
	case "GIT_ASKPASS", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT", "GIT_EXEC_PATH", "GIT_PROXY_COMMAND",
		"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_COUNT":
		return true
	}
	for _, front := range []string{"GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_", "GIT_SSL_", "GIT_HTTP_", "GIT_PROXY_SSL_"} {
		if strings.HasPrefix(name, front) {
			return true
		}
	}
	return false
}

// command is git with what it starts in a session of their own: without a terminal, and
// ended together.
func (g *git) command(ctx context.Context, args ...string) *exec.Cmd {
	var all []string
	for _, setting := range settings() {
		all = append(all, "-c", setting)
	}
	all = append(all, "--git-dir="+g.dir, "--no-optional-locks")
	command := exec.CommandContext(ctx, "git", append(all, args...)...)
	command.Env = g.environ
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	command.Cancel = func() error {
		if err := syscall.Kill(-command.Process.Pid, syscall.SIGKILL); !errors.Is(err, syscall.ESRCH) {
			return err
		}
		return os.ErrProcessDone
	}
	command.WaitDelay = 5 * time.Second
	return command
}

// run runs what talks to nobody.
func (g *git) run(ctx context.Context, args ...string) error {
	_, err := g.ask(ctx, args...)
	return err
}

// ask returns what git says, without space around it.
func (g *git) ask(ctx context.Context, args ...string) (string, error) {
	said := new(tail)
	command := g.command(ctx, args...)
	command.Stderr = said
	out, err := command.Output()
	if err != nil {
		return "", g.failed(ctx, err, said.text())
	}
	return strings.TrimSpace(string(out)), nil
}

// failed is the error of a program that should not fail.
func (g *git) failed(ctx context.Context, err error, said string) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, exec.ErrNotFound):
		return structs.NewError(structs.CodeUnavailable, "git.missing").Because(err)
	case said == "":
		said = err.Error()
	}
	return structs.NewError(structs.CodeUnavailable, "git.broken", "said", printed(said)).Because(err)
}

// asked is what a server is asked for.
type asked struct {
	source, ref string
	options     Options
}

var (
	errSilent = errors.New("the server says nothing")
	errLarge  = errors.New("the server sends too much")
)

// fetch brings one commit without those before it. A server that says nothing, or sends
// more than is taken, is left.
func (g *git) fetch(ctx context.Context, asked asked) error {
	watched, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	said := new(tail)
	command := g.command(watched, "fetch", "--depth=1", "--no-tags", "--no-recurse-submodules", "--progress", "--", asked.source, asked.ref)
	command.Stderr = said
	done := make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() { g.watch(said, asked.options, stop, done) })
	err := command.Run()
	close(done)
	watcher.Wait()
	switch {
	case err == nil && g.received() > asked.options.most(): // it was faster than the watch
		return g.problem(ctx, asked, errLarge, "")
	case err == nil:
		if asked.options.Progress != nil {
			asked.options.Progress(g.received())
		}
		return nil
	case errors.Is(err, exec.ErrNotFound) || ctx.Err() != nil:
		return g.failed(ctx, err, "")
	}
	return g.problem(ctx, asked, context.Cause(watched), said.text())
}

// watch looks at what has come until done is closed.
func (g *git) watch(said *tail, options Options, stop context.CancelCauseFunc, done <-chan struct{}) {
	silence, most := options.patience(), options.most()
	ticker := time.NewTicker(min(250*time.Millisecond, silence/4))
	defer ticker.Stop()
	last, words, since := int64(0), 0, time.Now()
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
		}
		received, spoken := g.received(), said.count()
		if received != last || spoken != words {
			last, words, since = received, spoken, time.Now()
		}
		if options.Progress != nil {
			options.Progress(received)
		}
		switch {
		case received > most:
			stop(errLarge)
			return
		case time.Since(since) > silence:
			stop(errSilent)
			return
		}
	}
}

// received is how many bytes of objects are there.
func (g *git) received() (sum int64) {
	packs, err := os.ReadDir(filepath.Join(g.dir, "objects", "pack"))
	if err != nil {
		return 0
	}
	for _, pack := range packs {
		if info, err := pack.Info(); err == nil {
			sum += info.Size()
		}
	}
	return sum
}

// tail keeps the last of what a program says, whatever it says.
type tail struct {
	mu    sync.Mutex
	kept  []byte
	bytes int
}

const tailMax = 8 << 10 // bytes

func (t *tail) Write(data []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bytes += len(data)
	t.kept = append(t.kept, data[max(0, len(data)-tailMax):]...)
	if over := len(t.kept) - tailMax; over > 0 {
		t.kept = bytes.Clone(t.kept[over:])
	}
	return len(data), nil
}

func (t *tail) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.bytes
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.kept)
}

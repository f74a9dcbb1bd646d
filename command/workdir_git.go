package command

import (
	"context"
	"os/exec"
	"strings"
	"time"

	"nomadlike/nomadlike/structs"
)

// gitPatience bounds what is waited for git: a large work tree on a slow disk has no
// record rather than no job.
const gitPatience = 20 * time.Second

// gitOf is where git stands in a directory, nil where it stands nowhere or is not
// installed. Git is asked for what it reads alone: it writes nothing and calls nobody.
func (env *Env) gitOf(dir string) *structs.WorkdirGit {
	ask := func(args ...string) (string, bool) { return env.askGit(dir, args...) }
	if inside, ok := ask("rev-parse", "--is-inside-work-tree"); !ok || inside != "true" {
		return nil
	}
	git := &structs.WorkdirGit{}
	git.Commit, _ = ask("rev-parse", "--verify", "-q", "HEAD^{commit}")
	git.Branch, _ = ask("symbolic-ref", "-q", "--short", "HEAD")
	if len(git.Branch) > structs.WorkdirBranchMax {
		git.Branch = ""
	}
	changes, ok := ask("status", "--porcelain", "--ignore-submodules=none", "--", ".")
	git.Dirty = !ok || changes != ""
	return git
}

// askGit runs git in a directory. What could make it start programs of the directory's
// own is switched off.
func (env *Env) askGit(dir string, args ...string) (answer string, ok bool) {
	ctx, cancel := context.WithTimeout(env.Context, gitPatience)
	defer cancel()
	always := []string{"--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=true"}
	command := exec.CommandContext(ctx, "git", append(always, args...)...)
	command.Dir = dir
	command.Env = append(env.Environ[:len(env.Environ):len(env.Environ)], "LC_ALL=C", "GIT_TERMINAL_PROMPT=0")
	out, err := command.Output()
	return strings.TrimSpace(string(out)), err == nil
}

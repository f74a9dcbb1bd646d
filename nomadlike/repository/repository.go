// Package repository takes one directory of one commit out of a git repository that is
// on a server.
//
// Flow: Fetch has git bring the commit, and writes the names of the directory: who looks
// which of its files go along knows their sizes, and Fill then writes the bytes of those.
// Close removes all of it.
//
//	DIR/git    a repository of its own, without a work tree, and without settings
//	DIR/tree   the directory
//
// Git is started for what the network needs alone: with the user's settings, agents and
// credential helpers, and nothing that the repository says. Nothing is checked out:
// files are written here, as they were committed, so that no filter, hook, attribute or
// line ending of this machine changes what runs elsewhere.
//
// Limits: files of git-lfs are their pointers, submodules are empty directories; both are
// told. A commit that is named by its digits has to be one that the server hands out.
package repository

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"nomadlike/nomadlike/structs"
)

const (
	silenceMax  = 90 * time.Second // that a server may say nothing, and send nothing
	receivedMax = 8 << 30          // bytes that are taken of a server
	entriesMax  = 400_000          // names of the directory
)

// Options say how a repository is asked.
type Options struct {
	Environ []string // of the user, with their agent and their settings of git
	// Progress is told from time to time how many bytes have come.
	Progress func(received int64)

	silence  time.Duration // of tests; 0: silenceMax
	received int64         // likewise; 0: receivedMax
}

// patience is how long a server may say nothing.
func (o *Options) patience() time.Duration { return cmp.Or(o.silence, silenceMax) }

// most is how many bytes are taken of a server.
func (o *Options) most() int64 { return cmp.Or(o.received, receivedMax) }

// Checkout is a directory of a commit on this machine. It is for one goroutine, and has
// to be closed.
type Checkout struct {
	Dir    string   // the directory: its names, permissions and links. Files have their sizes, and their bytes after Fill
	Commit string   // whole
	Branch string   // "" of a tag, of a commit, and of what the server calls HEAD
	Empty  []string // submodules, whose directories stay empty

	Pointers []string // files that are pointers of git-lfs; after Fill

	base  string
	git   *git
	files map[string]file
}

// Fetch brings the directory of a repository. The source is known to be one of a job that
// passed its checks. ctx ends it.
func Fetch(ctx context.Context, source string, repo structs.WorkdirRepo, options Options) (_ *Checkout, err error) {
	base, err := os.MkdirTemp("", "nomadlike-git-")
	if err != nil {
		return nil, structs.NewError(structs.CodeUnavailable, "git.write", "path", os.TempDir(), "problem", systemSaid(err)).Because(err)
	}
	c := &Checkout{Dir: filepath.Join(base, "tree"), base: base}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	c.git = &git{dir: filepath.Join(base, "git"), environ: environ(options.Environ)}
	if err := c.git.run(ctx, "init", "--quiet", "--bare", "--template="); err != nil {
		return nil, err
	}
	asked := asked{source: source, ref: repo.Ref, options: options}
	if asked.ref == "" {
		asked.ref = "HEAD"
	}
	if err := c.git.fetch(ctx, asked); err != nil {
		return nil, err
	}
	if c.Commit, err = c.git.ask(ctx, "rev-parse", "--verify", "--quiet", "FETCH_HEAD^{commit}"); err != nil {
		return nil, structs.NewError(structs.CodeInvalid, "git.ref_no_commit", "ref", asked.ref, "source", source)
	}
	c.Branch = c.git.branch()
	if err := c.list(ctx, repo.DirOf(), asked); err != nil {
		return nil, err
	}
	return c, nil
}

// Close removes the directory.
func (c *Checkout) Close() error {
	if err := os.RemoveAll(c.base); err != nil {
		return structs.NewError(structs.CodeUnavailable, "git.leftover", "path", c.base, "problem", systemSaid(err)).Because(err)
	}
	return nil
}

// branch is the branch that was fetched, by what git wrote of it.
func (g *git) branch() string {
	line, err := os.ReadFile(filepath.Join(g.dir, "FETCH_HEAD"))
	if err != nil {
		return ""
	}
	_, name, found := strings.Cut(string(line), "\tbranch '")
	name, _, ended := strings.Cut(name, "' of ")
	if !found || !ended || len(name) > structs.WorkdirBranchMax {
		return ""
	}
	return name
}

// systemSaid is what the system said about a file, without its path.
func systemSaid(err error) error {
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return err
}

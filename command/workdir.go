package command

import (
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"nomadlike/nomadlike/repository"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

// workdirFlags say which code goes with a job, and whether it is only looked at.
type workdirFlags struct {
	dir          *string
	dryRun, list *bool
}

func declareWorkdir(set *flag.FlagSet) *workdirFlags {
	return &workdirFlags{
		dir:    set.String("workdir", "", "cli.flag.workdir"),
		dryRun: set.Bool("dry-run", false, "cli.flag.dry_run"),
		list:   set.Bool("list", false, "cli.flag.code_list"),
	}
}

// code is a directory of this machine that goes with a job.
type code struct {
	dir      string
	manifest tree.Manifest
	left     []tree.LeftOut
	record   structs.Workdir
	fetched  *repository.Checkout // what dir is in; nil: the user's own
}

// largestNamed is how many parts of a directory are named before it is sent.
const largestNamed = 5

// readCode reads the directory that goes with a job: dir, which a flag names, or the one
// that its file names, relative to that. nil: none goes, or it names code that was sent
// before. The job is given which directory it is, and nothing of what lies in it. What
// was fetched for it stays until the code is closed.
func (env *Env) readCode(jobFile string, job *structs.Job, dir string, bound codeBound) (_ *code, err error) {
	at := dir
	switch {
	case structs.IsTreeDigest(dir):
		job.Workdir = &structs.Workdir{Source: dir, Tree: dir}
	case dir != "":
		job.Workdir = &structs.Workdir{Source: dir}
	case job.Workdir != nil:
		at = env.besideFile(jobFile, job.Workdir.Source)
	}
	if job.Workdir == nil || job.Workdir.Tree != "" {
		return nil, nil // no code is an answer
	}
	read := &code{dir: at}
	most := int64(structs.CodeMaxDefault)
	if bound.first {
		if most, err = bound.ask(job.Project); err != nil {
			return nil, err
		}
	}
	show := env.codeProgress("cli.code.reading")
	options := tree.Options{Progress: show.step, BytesMax: most}
	if job.Workdir.Repo != nil {
		if read.fetched, err = env.fetchRepository(job.Workdir); err != nil {
			return nil, err
		}
		defer func() {
			if err != nil {
				read.close(env)
			}
		}()
		at, read.dir = locationOf(job.Workdir), read.fetched.Dir
		options.Committed, options.Fill = true, func(files []string) error { return read.fetched.Fill(env.Context, files) }
	}
	read.manifest, read.left, err = tree.Scan(env.Context, read.dir, options)
	show.done()
	large := new(tree.TooLargeError)
	if errors.As(err, &large) && bound.later(job.Project, &options, large) {
		read.manifest, read.left, err = tree.Scan(env.Context, read.dir, options)
		show.done()
	}
	if errors.As(err, &large) {
		return nil, env.explainTooLarge(at, large)
	}
	if err != nil {
		return nil, err
	}
	if read.manifest.Files() == 0 {
		return nil, structs.NewError(structs.CodeInvalid, "cli.code.nothing", "dir", at, "count", len(read.left))
	}
	read.record = structs.Workdir{
		Source: job.Workdir.Source, Repo: job.Workdir.Repo, Tree: string(read.manifest.Digest()), Files: read.manifest.Files(), Bytes: read.manifest.Bytes(),
	}
	if read.fetched != nil {
		read.record.Git = &structs.WorkdirGit{Commit: read.fetched.Commit, Branch: read.fetched.Branch}
		env.printFetched(read.fetched)
	} else {
		read.record.Git = env.gitOf(at)
	}
	return read, nil
}

// besideFile is a directory that a job file names, seen from here. "~/" is the user's
// own, as in a shell.
func (env *Env) besideFile(jobFile, dir string) string {
	if rest, ok := strings.CutPrefix(dir, "~/"); ok && env.Getenv("HOME") != "" {
		return filepath.Join(env.Getenv("HOME"), rest)
	}
	if filepath.IsAbs(dir) || jobFile == "-" {
		return dir
	}
	return filepath.Join(filepath.Dir(jobFile), dir)
}

// explainTooLarge names what makes a directory too large, with the lines to write.
func (env *Env) explainTooLarge(dir string, large *tree.TooLargeError) error {
	table := newTable(env.Stderr, env.text("cli.col.size"), env.text("cli.col.files"), env.text("cli.col.path"), env.text("cli.col.ignore_line"))
	for _, part := range large.Largest {
		table.row(size(part.Bytes), fmt.Sprint(part.Files), safe(part.Path), safe(part.Line))
	}
	table.print()
	fmt.Fprintln(env.Stderr)
	return structs.NewError(structs.CodeTooLarge, "cli.code.too_large", "dir", dir, "size", size(large.Bytes), "max", size(large.Max))
}

// printCode says what goes with a job, in a line or two.
func (env *Env) printCode(c *code) {
	fmt.Fprintln(env.Stdout, env.text("cli.code.summary", "dir", safe(locationOf(&c.record)), "files", c.record.Files,
		"size", size(c.record.Bytes), "tree", c.manifest.Digest().Short(), "left", len(c.left)))
	if git := env.gitText(c.record.Git); git != "" {
		fmt.Fprintf(env.Stdout, "  git %s\n", git)
	}
	var parts []string
	for _, part := range c.manifest.Largest(largestNamed) {
		parts = append(parts, safe(part.Path)+" "+size(part.Bytes))
	}
	if len(parts) > 0 {
		fmt.Fprintf(env.Stdout, "  %s\n", env.text("cli.code.largest", "parts", strings.Join(parts, ", ")))
	}
}

// printCodeList lists what goes with a job, and what stays behind and why.
func (env *Env) printCodeList(c *code) {
	goes := newTable(env.Stdout, env.text("cli.col.goes"), env.text("cli.col.size"))
	for i := range c.manifest.Entries {
		entry := &c.manifest.Entries[i]
		switch entry.Kind {
		case tree.KindDir:
			goes.row(safe(entry.Path)+"/", "")
		case tree.KindLink:
			goes.row(safe(entry.Path)+" -> "+safe(entry.Target), "")
		default:
			goes.row(safe(entry.Path), size(entry.Size()))
		}
	}
	fmt.Fprintln(env.Stdout)
	goes.print()
	if len(c.left) == 0 {
		return
	}
	stays := newTable(env.Stdout, env.text("cli.col.stays"), env.text("cli.col.rule"), env.text("cli.col.rule_from"))
	for _, one := range c.left {
		name, from := safe(one.Path), env.text("cli.code.usual")
		if one.Dir {
			name += "/"
		}
		if one.File != "" {
			from = fmt.Sprintf("%s:%d", safe(one.File), one.Line)
		}
		stays.row(name, safe(one.Text), from)
	}
	fmt.Fprintln(env.Stdout)
	stays.print()
}

// codeShown is what a program is told of code that is only looked at.
type codeShown struct {
	Workdir *structs.Workdir `json:"workdir"` // nil: none goes with the job
	Entries []entryShown     `json:"entries"`
	LeftOut []tree.LeftOut   `json:"left_out"`
	Largest []tree.Part      `json:"largest"`
}

type entryShown struct {
	Path   string `json:"path"`
	Kind   string `json:"kind"` // file, dir or link
	Mode   string `json:"mode,omitempty"`
	Bytes  int64  `json:"bytes,omitempty"`
	Target string `json:"target,omitempty"`
}

func (c *code) shown() codeShown {
	value := codeShown{Entries: []entryShown{}, LeftOut: []tree.LeftOut{}, Largest: []tree.Part{}}
	if c == nil {
		return value
	}
	value.Workdir = &c.record
	value.LeftOut = append(value.LeftOut, c.left...)
	value.Largest = append(value.Largest, c.manifest.Largest(tree.LargestShown)...)
	kinds := map[tree.Kind]string{tree.KindFile: "file", tree.KindDir: "dir", tree.KindLink: "link"}
	for i := range c.manifest.Entries {
		entry := &c.manifest.Entries[i]
		one := entryShown{Path: entry.Path, Kind: kinds[entry.Kind], Bytes: entry.Size(), Target: entry.Target}
		if entry.Kind != tree.KindLink {
			one.Mode = fmt.Sprintf("%04o", entry.Mode)
		}
		value.Entries = append(value.Entries, one)
	}
	return value
}

// showCode answers -dry-run: nothing has been sent, and nothing is submitted.
func (env *Env) showCode(output outputFlags, c *code, list bool) error {
	return env.show(output, c.shown(), func() {
		if c == nil {
			fmt.Fprintln(env.Stdout, env.text("cli.code.none"))
			return
		}
		env.printCode(c)
		if list {
			env.printCodeList(c)
		}
		fmt.Fprintln(env.Stdout, env.text("cli.code.dry"))
	})
}

// workdirText says which code a job has.
func (env *Env) workdirText(w *structs.Workdir) string {
	if w == nil {
		return ""
	}
	text := env.text("cli.code.of_job", "dir", safe(locationOf(w)), "files", w.Files, "size", size(w.Bytes), "tree", tree.Digest(w.Tree).Short())
	if structs.IsTreeDigest(w.Source) {
		text = env.text("cli.code.of_tree", "files", w.Files, "size", size(w.Bytes), "tree", tree.Digest(w.Tree).Short())
	}
	if git := env.gitText(w.Git); git != "" {
		text += "; git " + git
	}
	return text
}

func (env *Env) gitText(git *structs.WorkdirGit) string {
	if git == nil {
		return ""
	}
	text := strings.TrimSpace(safe(git.Branch) + " " + git.Commit[:min(len(git.Commit), 12)])
	if git.Dirty {
		return env.text("cli.code.dirty", "at", text)
	}
	return text
}

// counter shows on a terminal how far something is.
type counter struct {
	env   *Env
	id    string
	shown time.Time
	any   bool
}

// progressEvery is how often a terminal is told of progress.
const progressEvery = 200 * time.Millisecond

func (env *Env) codeProgress(id string) *counter {
	return &counter{env: env, id: id, shown: time.Now()}
}

func (c *counter) step(done, all int64) {
	if now := time.Now(); c.env.Stderr.Terminal && now.Sub(c.shown) > progressEvery {
		c.shown, c.any = now, true
		fmt.Fprintf(c.env.Stderr, "\r\x1b[K%s", c.env.text(c.id, "done", size(done), "all", size(all)))
	}
}

// done wipes the line away.
func (c *counter) done() {
	if c.any {
		fmt.Fprint(c.env.Stderr, "\r\x1b[K")
	}
}

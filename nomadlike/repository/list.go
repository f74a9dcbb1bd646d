package repository

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

// file is a file of the commit.
type file struct {
	object string
	size   int64
}

// name is a name of the commit, as git lists it.
type name struct {
	path   string
	mode   string
	object string
	size   int64
}

// The modes that git knows. Older ones of files are read as what they meant.
const (
	modeDir       = "040000"
	modeLink      = "120000"
	modeSubmodule = "160000"
	modeProgram   = "100755"
)

// list writes the names of a directory of the commit.
func (c *Checkout) list(ctx context.Context, dir string, asked asked) error {
	top, err := c.git.ask(ctx, "rev-parse", "--verify", "--quiet", c.Commit+":"+dir)
	if err != nil {
		return c.noSubdir(ctx, dir, asked)
	}
	if kind, err := c.git.ask(ctx, "cat-file", "-t", top); err != nil || kind != "tree" {
		return c.noSubdir(ctx, dir, asked)
	}
	names, err := c.git.names(ctx, top)
	if err != nil {
		return err
	}
	if err := c.write(ctx, names); err != nil {
		return err
	}
	var rules []string
	for i := range names {
		if _, isFile := c.files[names[i].path]; isFile && path.Base(names[i].path) == tree.OwnIgnore {
			rules = append(rules, names[i].path)
		}
	}
	return c.Fill(ctx, rules) // they say which others go along
}

// noSubdir names the directories that there are.
func (c *Checkout) noSubdir(ctx context.Context, dir string, asked asked) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var dirs []string
	if names, err := c.git.names(ctx, c.Commit); err == nil {
		for i := range names {
			if names[i].mode == modeDir {
				dirs = append(dirs, names[i].path)
			}
		}
	}
	params := []any{"source", asked.source, "subdir", dir, "commit", c.Commit[:12]}
	if near := structs.Nearest(dir, dirs); near != "" {
		return structs.NewError(structs.CodeNotFound, "git.subdir_near", append(params, "suggestion", printed(near))...)
	}
	return structs.NewError(structs.CodeNotFound, "git.subdir_unknown", params...)
}

// names lists a tree with all that lies below it.
func (g *git) names(ctx context.Context, top string) ([]name, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	said := new(tail)
	command := g.command(ctx, "ls-tree", "-r", "-t", "-l", "-z", "--full-tree", top)
	command.Stderr = said
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, g.failed(ctx, err, "")
	}
	if err := command.Start(); err != nil {
		return nil, g.failed(ctx, err, "")
	}
	names, err := readNames(out)
	if err != nil {
		cancel()
	}
	if waited := command.Wait(); err == nil && waited != nil {
		err = g.failed(ctx, waited, said.text())
	}
	return names, err
}

// readNames reads "MODE TYPE OBJECT SIZE\tPATH\0" until its end.
func readNames(from io.Reader) ([]name, error) {
	lines := bufio.NewReader(from)
	var names []name
	for {
		line, err := lines.ReadString(0)
		if errors.Is(err, io.EOF) && line == "" {
			return names, nil
		}
		if err != nil {
			return nil, structs.NewError(structs.CodeUnavailable, "git.broken", "said", err)
		}
		if len(names) == entriesMax {
			return nil, structs.NewError(structs.CodeTooLarge, "git.too_many", "max", entriesMax)
		}
		facts, at, _ := strings.Cut(strings.TrimSuffix(line, "\x00"), "\t")
		fields := strings.Fields(facts)
		if len(fields) != 4 {
			return nil, structs.NewError(structs.CodeUnavailable, "git.broken", "said", printed(line))
		}
		one := name{path: at, mode: fields[0], object: fields[2]}
		if fields[1] == "blob" {
			if one.size, err = strconv.ParseInt(fields[3], 10, 64); err != nil {
				return nil, structs.NewError(structs.CodeUnavailable, "git.broken", "said", printed(line))
			}
		}
		names = append(names, one)
	}
}

// check refuses a name that no file may have. A repository that git made has none such.
func (n *name) check() error {
	for part := range strings.SplitSeq(n.path, "/") {
		if part == "" || part == "." || part == ".." || strings.EqualFold(part, ".git") || len(part) > tree.NameMax || strings.ContainsRune(part, 0) {
			return structs.NewError(structs.CodeInvalid, "git.path", "path", printed(n.path))
		}
	}
	return nil
}

// written is the time of all files: that they are filled afterwards is no change.
func written() time.Time { return time.Unix(946_684_800, 0) }

// write makes directories, files of the right size without their bytes, and links, those
// last: nothing is written through one.
func (c *Checkout) write(ctx context.Context, names []name) error {
	if err := os.Mkdir(c.Dir, 0o755); err != nil {
		return unwritten(c.Dir, err)
	}
	root, err := os.OpenRoot(c.Dir)
	if err != nil {
		return unwritten(c.Dir, err)
	}
	defer root.Close()
	c.files = make(map[string]file)
	var links []*name
	for i := range names {
		one := &names[i]
		if err := errors.Join(ctx.Err(), one.check()); err != nil {
			return err
		}
		switch one.mode {
		case modeDir, modeSubmodule:
			if one.mode == modeSubmodule {
				c.Empty = append(c.Empty, one.path)
			}
			err = makeDir(root, one.path)
		case modeLink:
			links = append(links, one)
		default:
			mode := os.FileMode(0o644)
			if one.mode == modeProgram {
				mode = 0o755
			}
			c.files[one.path] = file{one.object, one.size}
			err = makeFile(root, one.path, mode, one.size)
		}
		if err != nil {
			return c.unmade(one.path, err)
		}
	}
	return c.link(ctx, root, links)
}

// unmade names what a name could not be made beside: a file system on which "a" and "A"
// are one has room for one of them.
func (c *Checkout) unmade(at string, err error) error {
	if errors.Is(err, os.ErrExist) {
		return structs.NewError(structs.CodeConflict, "git.twins", "path", printed(at))
	}
	return unwritten(at, err)
}

func makeDir(root *os.Root, at string) error {
	if err := root.Mkdir(at, 0o755); err != nil {
		return err
	}
	return root.Chmod(at, 0o755) // whatever the user's umask is: the same tree everywhere
}

func makeFile(root *os.Root, at string, mode os.FileMode, size int64) error {
	made, err := root.OpenFile(at, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(made.Truncate(size), made.Chmod(mode|0o200), made.Close()); err != nil {
		return err
	}
	return root.Chtimes(at, written(), written())
}

// link makes links, whose targets are objects as files are.
func (c *Checkout) link(ctx context.Context, root *os.Root, links []*name) error {
	objects := make([]string, len(links))
	for i, one := range links {
		objects[i] = one.object
	}
	at := 0
	return c.git.objects(ctx, objects, func(size int64, from io.Reader) error {
		one := links[at]
		at++
		if size > tree.PathMax {
			return structs.NewError(structs.CodeInvalid, "git.path", "path", printed(one.path))
		}
		target, err := io.ReadAll(from)
		if err != nil {
			return err
		}
		if len(target) == 0 || bytes.IndexByte(target, 0) >= 0 {
			return structs.NewError(structs.CodeInvalid, "git.path", "path", printed(one.path))
		}
		if err := root.Symlink(string(target), one.path); err != nil {
			return c.unmade(one.path, err)
		}
		return nil
	})
}

// pointerMax is how long a pointer of git-lfs may be.
const pointerMax = 1024 // bytes

var pointer = []byte("version https://git-lfs.github.com/spec/v1\n")

// Fill writes the bytes of files of the directory.
func (c *Checkout) Fill(ctx context.Context, files []string) error {
	root, err := os.OpenRoot(c.Dir)
	if err != nil {
		return unwritten(c.Dir, err)
	}
	defer root.Close()
	objects := make([]string, len(files))
	for i, at := range files {
		objects[i] = c.files[at].object
	}
	next := 0
	return c.git.objects(ctx, objects, func(size int64, from io.Reader) error {
		at := files[next]
		next++
		if size != c.files[at].size {
			return structs.NewError(structs.CodeUnavailable, "git.broken", "said", printed(at))
		}
		if size < pointerMax {
			data, err := io.ReadAll(from)
			if err != nil {
				return err
			}
			if bytes.HasPrefix(data, pointer) {
				c.Pointers = append(c.Pointers, at)
			}
			from = bytes.NewReader(data)
		}
		return fill(root, at, from)
	})
}

func fill(root *os.Root, at string, from io.Reader) error {
	to, err := root.OpenFile(at, os.O_WRONLY, 0)
	if err != nil {
		return unwritten(at, err)
	}
	if _, err := io.Copy(to, from); err != nil {
		return errors.Join(unwritten(at, err), to.Close())
	}
	if err := to.Close(); err != nil {
		return unwritten(at, err)
	}
	if err := root.Chtimes(at, written(), written()); err != nil {
		return unwritten(at, err)
	}
	return nil
}

// objects reads objects in their order, and calls took with each, which need not read it
// to its end.
func (g *git) objects(ctx context.Context, objects []string, took func(size int64, from io.Reader) error) error {
	if len(objects) == 0 {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	said := new(tail)
	command := g.command(ctx, "cat-file", "--batch", "--buffer")
	command.Stderr = said
	command.Stdin = strings.NewReader(strings.Join(objects, "\n") + "\n")
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		return g.failed(ctx, err, "")
	}
	err = readObjects(bufio.NewReaderSize(out, 1<<16), objects, took)
	if err != nil {
		cancel()
	}
	waited := command.Wait()
	if err == nil && waited != nil {
		err = g.failed(ctx, waited, said.text())
	}
	return err
}

func readObjects(from *bufio.Reader, objects []string, took func(size int64, from io.Reader) error) error {
	for _, object := range objects {
		head, err := from.ReadString('\n')
		if err != nil {
			return structs.NewError(structs.CodeUnavailable, "git.broken", "said", err)
		}
		fields := strings.Fields(head)
		if len(fields) != 3 || fields[0] != object || fields[1] != "blob" {
			return structs.NewError(structs.CodeUnavailable, "git.broken", "said", printed(head))
		}
		size, err := strconv.ParseInt(fields[2], 10, 64)
		if err != nil {
			return structs.NewError(structs.CodeUnavailable, "git.broken", "said", printed(head))
		}
		body := io.LimitReader(from, size)
		if err := took(size, body); err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, body); err != nil {
			return structs.NewError(structs.CodeUnavailable, "git.broken", "said", err)
		}
		if _, err := from.ReadByte(); err != nil { // the line's end
			return structs.NewError(structs.CodeUnavailable, "git.broken", "said", err)
		}
	}
	return nil
}

func unwritten(at string, err error) error {
	return structs.NewError(structs.CodeUnavailable, "git.write", "path", printed(at), "problem", systemSaid(err)).Because(err)
}

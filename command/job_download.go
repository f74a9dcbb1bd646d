package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// downloadDepthMax bounds the directories in each other of a download.
const downloadDepthMax = 64

// downloaded is what a program is told of a download.
type downloaded struct {
	Target     string `json:"target"`
	Files      int    `json:"files"`
	Bytes      int64  `json:"bytes"`
	Same       int    `json:"same"`       // of the files, that were there already, byte by byte
	LeftOut    int    `json:"left_out"`   // links and special files
	Unverified int    `json:"unverified"` // of the files, for which no agent told a digest
}

// jobDownload copies a file, or a directory with all below it, from the node.
func jobDownload(set *flag.FlagSet) func(*Env, []string) error {
	connection, output, filter := declareConnection(set), declareOutput(set), declareFileFilter(set)
	return func(env *Env, args []string) error {
		if len(args) < 2 {
			return usagef("cli.missing_argument", "argument", []string{"JOB", "PATH"}[len(args)])
		}
		target, err := atMostOne(args[2:])
		if err != nil {
			return err
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		list, err := client.Files(env.Context, args[0], args[1], *filter)
		if err != nil {
			return err
		}
		filter.Attempt = list.Attempt // one attempt from the first file to the last, whatever begins meanwhile
		d := download{env: env, files: writtenFiles{env: env, client: client, job: args[0], filter: *filter}, target: downloadTarget(args[1], target, list.Entry.Dir)}
		if list.Entry.Link { // a pipe or the like: there is nothing to read
			return structs.NewError(structs.CodeNotFound, "client.file_unknown", "path", args[1])
		}
		if err := d.run(args[1], list); err != nil {
			return err
		}
		return env.show(output, d.result(), func() { d.print() })
	}
}

// downloadTarget is where something is copied to. A file goes into a directory that is
// there, or that is named as one.
func downloadTarget(from, target string, dir bool) string {
	base := path.Base(path.Clean("/" + from))
	if base == "/" {
		base = "."
	}
	if target == "" {
		return base
	}
	info, err := os.Stat(target)
	if !dir && (strings.HasSuffix(target, "/") || err == nil && info.IsDir()) {
		return filepath.Join(target, base)
	}
	return target
}

// writtenFiles lists what an attempt of a job wrote.
type writtenFiles struct {
	env    *Env
	client *api.Client
	job    string
	filter api.FileFilter
}

// foundFile is a file or directory that was found, with where it lies below what was
// asked for.
type foundFile struct {
	below string // "" for what was asked for itself
	entry structs.FileEntry
	from  string
}

// walk goes over a directory and those below it, in order. What it cannot take is given
// to left, with the id of the reason.
func (f *writtenFiles) walk(list *api.FileList, below string, depth int, each func(foundFile), left func(name, reason string)) error {
	if list.More || depth > downloadDepthMax {
		return usagef("cli.files.more", "max", structs.FileEntriesMax)
	}
	each(foundFile{below: below, entry: list.Entry, from: list.Path})
	for i := range list.Entries {
		e := list.Entries[i]
		if !filepath.IsLocal(e.Name) || filepath.Base(e.Name) != e.Name {
			return fmt.Errorf("download %q: not a name", e.Name) // a node that is not honest
		}
		from, to := path.Join(list.Path, e.Name), path.Join(below, e.Name)
		switch {
		case e.Link:
			left(to, "cli.files.reason.special")
		case strings.ContainsRune(e.Name, '\uFFFD'): // what JSON makes of bytes that are no text
			left(to, "cli.files.reason.name")
		case e.Dir:
			inner, err := f.client.Files(f.env.Context, f.job, from, f.filter)
			if err == nil {
				err = f.walk(inner, to, depth+1, each, left)
			}
			if err != nil {
				return err
			}
		default:
			each(foundFile{below: to, entry: e, from: from})
		}
	}
	return nil
}

func (f *writtenFiles) remote(found foundFile) *remoteFile {
	return &remoteFile{client: f.client, job: f.job, path: found.from, filter: f.filter, size: found.entry.Size, at: found.entry.Modified}
}

// download is one job download under way.
type download struct {
	env    *Env
	files  writtenFiles
	target string
	wanted []*incoming
	dirs   []string
	left   int
	bytes  int64
	show   *transfer
	same   atomic.Int64
	open   *os.File // of the file that comes now
}

// incoming is a file on its way.
type incoming struct {
	*remoteFile
	to         string
	unverified bool
}

func (in *incoming) part() string { return in.to + ".part" }

func (d *download) run(from string, list *api.FileList) error {
	take := func(found foundFile) {
		to := filepath.Join(d.target, filepath.FromSlash(found.below))
		if found.entry.Dir {
			d.dirs = append(d.dirs, to)
			return
		}
		d.wanted = append(d.wanted, &incoming{remoteFile: d.files.remote(found), to: to})
		d.bytes += found.entry.Size
	}
	if list.Entry.Dir {
		if err := d.files.walk(list, "", 0, take, func(string, string) { d.left++ }); err != nil {
			return err
		}
	} else {
		take(foundFile{entry: list.Entry, from: from})
		d.dirs = append(d.dirs, filepath.Dir(d.target))
	}
	for _, dir := range d.dirs {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make directory %s: %w", dir, err)
		}
	}
	d.show = d.env.transfer("cli.files.progress", d.bytes)
	defer d.show.wipe()
	stream := fetchAll(d.env.Context, d.tasks)
	defer stream.close()
	for {
		part, more := stream.next()
		if !more {
			return d.env.Context.Err()
		}
		err := part.err
		if err == nil {
			err = d.take(part)
		}
		if err != nil {
			if d.open != nil {
				err = errors.Join(err, d.open.Close())
			}
			return err
		}
	}
}

// tasks are the parts that have to be got, of one file after the other.
func (d *download) tasks(yield func(fetchTask) bool) {
	for _, in := range d.wanted {
		at, there, err := d.begin(in)
		if err != nil {
			yield(func(context.Context) fetched { return fetched{err: err} })
			return
		}
		d.show.skip(at)
		if there {
			d.same.Add(1)
			continue
		}
		parts := in.parts(at, in)
		if at == in.size { // nothing is missing but its name
			parts = func(yield func(fetchTask) bool) {
				yield(func(context.Context) fetched { return fetched{offset: at, verified: true, of: in} })
			}
		}
		for part := range parts {
			if !yield(part) {
				return
			}
		}
	}
}

// begin says from which byte on a file has to be got. There is true when all of it lies
// here under its name. What an earlier try has left is gone on with, as far as its node
// says that these are its bytes.
func (d *download) begin(in *incoming) (at int64, there bool, err error) {
	ctx := d.env.Context
	if info, err := os.Lstat(in.to); err == nil && info.Mode().IsRegular() && info.Size() == in.size {
		same, known, err := in.agrees(ctx, in.to, in.size)
		if err == nil && known && same == in.size {
			return in.size, true, nil
		}
	}
	if info, err := os.Lstat(in.part()); err == nil && info.Mode().IsRegular() {
		same, known, err := in.agrees(ctx, in.part(), min(info.Size(), in.size))
		switch {
		case err == nil && known:
			at = same
		case err == nil && info.Size() < in.size && info.ModTime().After(in.at.Time()):
			at = info.Size() // an older agent: by the clock
		}
	}
	var disk unix.Statfs_t
	if unix.Statfs(filepath.Dir(in.to), &disk) == nil {
		if free := int64(disk.Bavail * uint64(disk.Bsize)); in.size-at > free {
			return 0, false, structs.NewError(structs.CodeConflict, "cli.files.no_room", "path", in.path, "size", size(in.size), "free", size(free))
		}
	}
	return at, false, nil
}

// take writes a part. Half a file never has its name.
func (d *download) take(part fetched) error {
	in := part.of.(*incoming) // tasks put it there
	if d.open == nil {
		file, err := os.OpenFile(in.part(), os.O_WRONLY|os.O_CREATE|unix.O_NOFOLLOW, 0o644)
		if err != nil {
			return err
		}
		d.open = file
		if err := file.Truncate(part.offset); err != nil {
			return err
		}
	}
	in.unverified = in.unverified || !part.verified
	if _, err := d.open.WriteAt(part.data, part.offset); err != nil {
		return fmt.Errorf("write %s: %w", in.part(), err)
	}
	d.show.add(int64(len(part.data)))
	if part.offset+int64(len(part.data)) < in.size {
		return nil
	}
	file := d.open
	d.open = nil
	if err := file.Close(); err != nil {
		return fmt.Errorf("write %s: %w", in.part(), err)
	}
	return os.Rename(in.part(), in.to)
}

func (d *download) result() downloaded {
	out := downloaded{Target: d.target, Files: len(d.wanted), Bytes: d.bytes, Same: int(d.same.Load()), LeftOut: d.left}
	for _, in := range d.wanted {
		if in.unverified {
			out.Unverified++
		}
	}
	return out
}

func (d *download) print() {
	out := d.result()
	fmt.Fprintln(d.env.Stdout, d.env.text("cli.files.downloaded", "files", out.Files, "size", size(out.Bytes), "target", safe(out.Target)))
	if out.Same > 0 {
		fmt.Fprintln(d.env.Stdout, d.env.text("cli.files.same", "count", out.Same))
	}
	if out.LeftOut > 0 {
		fmt.Fprintln(d.env.Stderr, d.env.text("cli.files.left_out", "count", out.LeftOut))
	}
	if out.Unverified > 0 {
		fmt.Fprintln(d.env.Stderr, d.env.text("cli.files.unverified", "count", out.Unverified))
	}
}

package command

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// downloadDepthMax bounds the directories in each other of a download.
const downloadDepthMax = 64

// declareFileFilter declares the flags that say whose files are meant.
func declareFileFilter(set *flag.FlagSet) *api.FileFilter {
	filter := new(api.FileFilter)
	set.Uint64Var(&filter.Attempt, "attempt", 0, "cli.flag.file_attempt")
	set.IntVar(&filter.Rank, "rank", 0, "cli.flag.file_rank")
	set.IntVar(&filter.Subjob, "subjob", 0, "cli.flag.file_subjob")
	return filter
}

// jobFiles lists a directory that a job wrote, or prints a file.
func jobFiles(set *flag.FlagSet) func(*Env, []string) error {
	connection, output, filter := declareConnection(set), declareOutput(set), declareFileFilter(set)
	return func(env *Env, args []string) error {
		if len(args) == 0 {
			return usagef("cli.missing_argument", "argument", "JOB")
		}
		name, err := atMostOne(args[1:])
		if err != nil {
			return err
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		list, err := client.Files(env.Context, args[0], name, *filter)
		if err != nil {
			return err
		}
		if !list.Entry.Dir && !output.forPrograms() {
			return env.copyFile(client, args[0], name, *filter, env.Stdout, 0)
		}
		return env.show(output, list, func() { env.printFiles(list) })
	}
}

func (env *Env) printFiles(list *api.FileList) {
	table := newTable(env.Stdout, env.text("cli.col.size"), env.text("cli.col.modified"), env.text("cli.col.name"))
	for i := range list.Entries {
		e := &list.Entries[i]
		name, bytes := safe(e.Name), size(e.Size)
		switch {
		case e.Dir:
			name, bytes = name+"/", "-"
		case e.Link:
			name, bytes = name+"@", "-"
		}
		table.row(bytes, when(e.Modified), name)
	}
	if len(table.rows) == 0 {
		fmt.Fprintln(env.Stdout, env.text("cli.files.empty"))
		return
	}
	table.print()
	if list.More {
		fmt.Fprintln(env.Stderr, env.text("cli.files.more", "max", structs.FileEntriesMax))
	}
}

func (env *Env) copyFile(client *api.Client, job, name string, filter api.FileFilter, to io.Writer, offset int64) error {
	from, err := client.OpenFile(env.Context, job, name, filter, offset)
	if err != nil {
		return err
	}
	defer from.Close()
	if _, err := io.Copy(to, from); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return nil
}

// jobDownload copies a file, or a directory with all below it, from the node.
func jobDownload(set *flag.FlagSet) func(*Env, []string) error {
	connection, filter := declareConnection(set), declareFileFilter(set)
	return func(env *Env, args []string) error {
		if len(args) < 2 {
			return usagef("cli.missing_argument", "argument", []string{"JOB", "PATH"}[len(args)])
		}
		target, err := atMostOne(args[2:])
		if err != nil {
			return err
		}
		if target == "" {
			target = path.Base(path.Clean("/" + args[1]))
		}
		if target == "/" {
			target = "."
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		d := download{env: env, client: client, job: args[0], filter: *filter}
		list, err := client.Files(env.Context, args[0], args[1], *filter)
		if err != nil {
			return err
		}
		// One attempt from the first file to the last, whatever begins meanwhile.
		d.filter.Attempt = list.Attempt
		if list.Entry.Link { // a pipe or the like: there is nothing to read
			return structs.NewError(structs.CodeNotFound, "client.file_unknown", "path", args[1])
		}
		if !list.Entry.Dir {
			err = d.file(args[1], &list.Entry, target)
		} else {
			err = d.dir(list, target, 0)
		}
		if err != nil {
			return err
		}
		fmt.Fprintln(env.Stdout, env.text("cli.files.downloaded", "files", d.files, "size", size(d.bytes), "target", safe(target)))
		if d.left > 0 {
			fmt.Fprintln(env.Stderr, env.text("cli.files.left_out", "count", d.left))
		}
		return nil
	}
}

// download is one job download under way.
type download struct {
	env    *Env
	client *api.Client
	job    string
	filter api.FileFilter
	files  int
	bytes  int64
	left   int // links and special files
}

func (d *download) dir(list *api.FileList, target string, depth int) error {
	if list.More || depth > downloadDepthMax {
		return usagef("cli.files.more", "max", structs.FileEntriesMax)
	}
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	for i := range list.Entries {
		e := &list.Entries[i]
		if !filepath.IsLocal(e.Name) || filepath.Base(e.Name) != e.Name {
			return fmt.Errorf("download %q: not a name", e.Name) // a node that is not honest
		}
		from, to := path.Join(list.Path, e.Name), filepath.Join(target, e.Name)
		var err error
		switch {
		case e.Link:
			d.left++
		case e.Dir:
			var inner *api.FileList
			if inner, err = d.client.Files(d.env.Context, d.job, from, d.filter); err == nil {
				err = d.dir(inner, to, depth+1)
			}
		default:
			err = d.file(from, e, to)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// file writes beside the target first: half a file never has its name. What an
// earlier try has left is gone on with.
func (d *download) file(from string, e *structs.FileEntry, target string) error {
	part := target + ".part"
	to, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	at := int64(0)
	if info, statErr := to.Stat(); statErr == nil && info.Size() < e.Size && info.ModTime().After(e.Modified.Time()) {
		at = info.Size()
	}
	var disk unix.Statfs_t
	if unix.Fstatfs(int(to.Fd()), &disk) == nil {
		if free := int64(disk.Bavail * uint64(disk.Bsize)); e.Size-at > free {
			return errors.Join(structs.NewError(structs.CodeConflict, "cli.files.no_room", "path", from, "size", size(e.Size), "free", size(free)), to.Close(), os.Remove(part))
		}
	}
	if err = to.Truncate(at); err == nil {
		if _, err = to.Seek(at, io.SeekStart); err == nil && e.Size > 0 {
			err = d.env.copyFile(d.client, d.job, from, d.filter, to, at)
		}
	}
	if err = errors.Join(err, to.Close()); err != nil {
		return err
	}
	if err := os.Rename(part, target); err != nil {
		return err
	}
	d.files, d.bytes = d.files+1, d.bytes+e.Size
	return nil
}

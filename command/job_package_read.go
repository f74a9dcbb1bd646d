package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"nomadlike/internal/filelock"
	"nomadlike/jobspec"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/parcel"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

// openPackage opens a package. The caller closes the file.
func openPackage(name string, flags *packageFlags) (*os.File, *parcel.Reader, error) {
	file, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0) // a pipe must not hold the command up
	if err != nil {
		return nil, nil, structs.NewError(structs.CodeInvalid, "cli.file_unreadable", "path", name, "problem", rootCause(err))
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = structs.NewError(structs.CodeInvalid, "cli.package.no_file", "file", name)
	}
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	reader, err := parcel.Open(file, info.Size(), parcel.Options{AnyRatio: *flags.anyRatio})
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return file, reader, nil
}

// readPackage reads a whole package and says what is in it, or whether it is whole.
func (env *Env) readPackage(name string, flags *packageFlags, output outputFlags) error {
	file, reader, err := openPackage(name, flags)
	if err != nil {
		return err
	}
	defer file.Close()
	show := env.transfer("cli.package.verifying", reader.Head().Bytes)
	for err == nil {
		var entry *parcel.Entry
		if entry, err = reader.Next(); err == nil {
			_, err = io.Copy(counting{show}, struct{ io.Reader }{reader})
			_ = entry
		}
	}
	show.wipe()
	found := new(parcel.DamagedError)
	if !errors.Is(err, io.EOF) && !errors.As(err, &found) {
		return err
	}
	shown := packedShown{
		File: name, Digest: reader.Digest(), Whole: len(found.Problems) == 0, Head: reader.Head(), Entries: reader.Entries(), Wrong: all(found.Problems),
	}
	if err := env.show(output, shown, func() {
		env.printHead(name, reader.Head(), reader.Digest())
		if *flags.list {
			env.printEntries(reader.Entries())
		}
		env.printLeftOut(reader.Head().LeftOut)
		if shown.Whole && *flags.verify {
			fmt.Fprintln(env.Stdout, env.text("cli.package.whole"))
		}
	}); err != nil {
		return err
	}
	if !shown.Whole {
		env.printWrong(found.Problems)
		return damaged(name, len(found.Problems))
	}
	return nil
}

// counting tells a transfer of the bytes that pass.
type counting struct{ to *transfer }

func (c counting) Write(p []byte) (int, error) {
	c.to.add(int64(len(p)))
	return len(p), nil
}

func (env *Env) printEntries(entries []parcel.Entry) {
	table := newTable(env.Stdout, env.text("cli.col.size"), "SHA-256", env.text("cli.col.name"))
	for i := range entries {
		e := &entries[i]
		switch e.Kind {
		case parcel.KindDir:
			table.row("-", "", safe(e.Path)+"/")
		case parcel.KindLink:
			table.row("-", "", safe(e.Path)+" -> "+safe(e.Target))
		default:
			table.row(size(e.Size), short12(e.SHA256), safe(e.Path))
		}
	}
	fmt.Fprintln(env.Stdout)
	table.print()
	fmt.Fprintln(env.Stdout)
}

// extractPackage writes what a package holds into a new directory, which has its name
// when all of it is there and is what was packed.
func (env *Env) extractPackage(name, dir string, flags *packageFlags, output outputFlags) (err error) {
	file, reader, err := openPackage(name, flags)
	if err != nil {
		return err
	}
	defer file.Close()
	above := filepath.Dir(filepath.Clean(dir))
	if err := os.MkdirAll(above, 0o755); err != nil {
		return fmt.Errorf("make directory %s: %w", above, err)
	}
	if there, err := os.ReadDir(dir); err == nil && len(there) > 0 || err != nil && !os.IsNotExist(err) {
		return structs.NewError(structs.CodeConflict, "cli.package.dir_exists", "dir", dir)
	}
	if err := enoughRoom(name, above, reader.Head().Bytes); err != nil {
		return err
	}
	beside := filepath.Join(above, "."+filepath.Base(filepath.Clean(dir))+".package-part")
	held, err := beginDir(beside)
	if err != nil {
		return err
	}
	defer held.Close()
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(beside))
		}
	}()
	root, err := os.OpenRoot(beside)
	if err != nil {
		return err
	}
	defer root.Close()
	show := env.transfer("cli.package.extracting", reader.Head().Bytes)
	last := int64(0)
	err = reader.Extract(root, func(done int64) { show.add(done - last); last = done })
	show.wipe()
	if err := env.explainDamage(name, err); err != nil {
		return err
	}
	if err := os.Chmod(beside, 0o755); err != nil {
		return err
	}
	if err := os.Rename(beside, dir); err != nil {
		return fmt.Errorf("give %s its name: %w", dir, err)
	}
	shown := packedShown{File: name, Digest: reader.Digest(), Whole: true, Head: reader.Head(), Entries: reader.Entries(), Wrong: []parcel.Problem{}}
	return env.show(output, shown, func() {
		env.printHead(name, reader.Head(), reader.Digest())
		fmt.Fprintln(env.Stdout, env.text("cli.package.extracted", "dir", safe(dir)))
	})
}

// beginDir makes a directory that is empty and this command's alone, as long as it is
// held open. What a try that was killed has left there is removed.
func beginDir(name string) (*os.File, error) {
	take := func() (*os.File, error) {
		held, err := os.OpenFile(name, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
		if err != nil {
			return nil, err
		}
		if err = filelock.Take(held, 0); errors.Is(err, unix.EWOULDBLOCK) {
			err = structs.NewError(structs.CodeConflict, "cli.package.busy", "path", name)
		}
		if err != nil {
			return nil, errors.Join(err, held.Close())
		}
		return held, nil
	}
	if left, err := take(); err == nil {
		if err := errors.Join(os.RemoveAll(name), left.Close()); err != nil {
			return nil, fmt.Errorf("remove %s: %w", name, err)
		}
	} else if !os.IsNotExist(err) {
		return nil, err
	}
	if err := os.Mkdir(name, 0o700); err != nil {
		return nil, fmt.Errorf("make directory %s: %w", name, err)
	}
	return take()
}

// explainDamage names what is wrong with a package before it says that something is.
func (env *Env) explainDamage(name string, err error) error {
	if found := new(parcel.DamagedError); errors.As(err, &found) {
		env.printWrong(found.Problems)
		return damaged(name, len(found.Problems))
	}
	return err
}

func enoughRoom(what, dir string, bytes int64) error {
	var disk unix.Statfs_t
	known := unix.Statfs(dir, &disk) == nil
	if free := int64(disk.Bavail * uint64(disk.Bsize)); known && bytes > free {
		return structs.NewError(structs.CodeConflict, "cli.files.no_room", "path", what, "size", size(bytes), "free", size(free))
	}
	return nil
}

// submittedShown is what a program is told of a package that was run again.
type submittedShown struct {
	*api.JobSubmitted
	Tree  string             `json:"tree,omitempty"` // digest of the code, the same as in the package
	Lacks []structs.DataLack `json:"lacks"`
}

// submitPackage runs what a package holds again: as it says, on the cluster that is asked.
func (env *Env) submitPackage(connection connectionFlags, name string, flags *packageFlags, output outputFlags) error {
	file, reader, err := openPackage(name, flags)
	if err != nil {
		return err
	}
	defer file.Close()
	dir, err := os.MkdirTemp("", "nomadlike-package-")
	if err != nil {
		return fmt.Errorf("make a directory for the code: %w", err)
	}
	defer os.RemoveAll(dir)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	show := env.transfer("cli.package.verifying", reader.Head().Bytes)
	last := int64(0)
	manifest, err := reader.ExtractCode(root, func(done int64) { show.add(done - last); last = done })
	show.wipe()
	if err := env.explainDamage(name, err); err != nil {
		return err
	}
	quiet := output.forPrograms()
	if !quiet {
		env.printHead(name, reader.Head(), reader.Digest())
	}
	job, places, err := env.packedJob(name, reader, flags)
	if err != nil {
		return err
	}
	if *connection.project != "" {
		job.Project = *connection.project
	}
	code, err := packedCode(job, reader.Head(), manifest, dir)
	if err != nil {
		return err
	}
	client, err := env.connect(connection)
	if err != nil {
		return err
	}
	defer client.Close()
	lacks, err := env.lacksOf(client, job, places)
	if err != nil {
		return err
	}
	if *flags.dryRun {
		return env.show(output, submittedShown{Tree: job.Tree(), Lacks: all(lacks)}, func() {
			env.printLacks(lacks)
			fmt.Fprintln(env.Stdout, env.text("cli.package.dry"))
		})
	}
	if len(lacks) > 0 {
		env.printLacks(lacks)
		return structs.NewError(structs.CodeConflict, "cli.package.lacks", "count", len(lacks))
	}
	if err := env.sendCode(client, job, code, quiet); err != nil {
		return err
	}
	submitted, err := client.SubmitJob(env.Context, api.JobRequest{Job: job}, "")
	if err != nil {
		return env.explain(err, places)
	}
	return env.show(output, submittedShown{JobSubmitted: submitted, Tree: job.Tree(), Lacks: []structs.DataLack{}}, func() {
		fmt.Fprintln(env.Stdout, env.text("cli.job.submitted", "name", submitted.Name, "id", submitted.JobID))
	})
}

// packedJob reads the job file of a package, which may come from anybody: it reads no
// file and no variable of this machine.
func (env *Env) packedJob(name string, reader *parcel.Reader, flags *packageFlags) (*structs.Job, *jobspec.SourceMap, error) {
	source, err := changed(reader.Job(), flags.sets)
	if err != nil {
		return nil, nil, err
	}
	return env.parseJob(filepath.Base(name)+":"+parcel.JobName, source, jobspec.Options{Name: *flags.name})
}

// packedCode is the code that goes with a job out of a package. A job file that names
// other code than the package has, such as a directory of this machine, is refused.
func packedCode(job *structs.Job, head *parcel.Head, manifest tree.Manifest, dir string) (*code, error) {
	if job.Workdir == nil {
		return nil, nil // no code is an answer
	}
	if job.Workdir.Tree == "" || head.Code != nil && head.Code.Tree != job.Workdir.Tree {
		return nil, structs.NewError(structs.CodeInvalid, "cli.package.other_code", "source", job.Workdir.Source)
	}
	if head.Code == nil {
		return nil, nil // it was packed without: the cluster has it, or says that it has not
	}
	return &code{dir: dir, manifest: manifest, record: structs.Workdir{
		Source: job.Workdir.Tree, Tree: job.Workdir.Tree, Files: manifest.Files(), Bytes: manifest.Bytes(), Git: head.Code.Git,
	}}, nil
}

// lacksOf asks which data a job names that this cluster does not have, before anything is
// sent.
func (env *Env) lacksOf(client *api.Client, job *structs.Job, places *jobspec.SourceMap) ([]structs.DataLack, error) {
	asked := job.Copy()
	asked.Workdir = nil // it is about to be sent
	plan, err := client.PlanJob(env.Context, api.JobRequest{Job: asked})
	if err != nil {
		return nil, env.explain(err, places)
	}
	return plan.Lacks, nil
}

func (env *Env) printLacks(lacks []structs.DataLack) {
	for i := range lacks {
		fmt.Fprintln(env.Stderr, env.text("cli.package.lack", "reason", env.reasonText(&lacks[i].Cause)))
	}
}

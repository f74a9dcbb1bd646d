package prepare

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/account"
	"nomadlike/nomadlike/client/alloc"
	"nomadlike/nomadlike/client/layout"
	"nomadlike/nomadlike/client/words"
	"nomadlike/nomadlike/client/workspace"
	"nomadlike/nomadlike/launch"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// workspaceEnv names the workspace for programs that are to work on every
// node: /workspace, or a directory of the task where it sees the node's files.
const workspaceEnv = "NOMADLIKE_WORKSPACE"

// workspaceDir is where links to the data lie in the directory of a task that
// has no view of its own.
const workspaceDir = "workspace"

// space is the data of a task, ready to be shown to it.
type space struct {
	env    map[string]string
	mounts []driver.Mount
	links  map[string]string // by path in the task's directory, for tasks without a view
	dir    string            // of the links, as all ranks see it; "" with a view
}

// SeesNode reports whether tasks of a driver see the node's files where they are:
// such tasks get links, since nothing can be mounted for one of them alone.
func (r *Preparer) SeesNode(driverName string) bool {
	return launch.SeesNode(driverName, r.Node.Node().Attributes)
}

// openWorkspace checks and makes the directories of a job's data.
func (r *Preparer) openWorkspace(ctx context.Context, a *structs.Assignment, owner account.Owner) (*space, *alloc.PrepareFailed) {
	raw := r.SeesNode(a.Job.Task.Driver)
	if raw {
		for _, m := range a.Job.Mounts {
			return nil, alloc.ByJob(structs.NewError(structs.CodeInvalid, "client.mount_raw", "target", m.Target))
		}
		if a.Alloc.Spec.SharedMemory > 0 {
			return nil, alloc.ByJob(structs.NewError(structs.CodeInvalid, "client.shm_raw"))
		}
	}
	if len(a.Job.StorageNeeds()) == 0 && a.Job.Workdir == nil {
		return &space{}, nil
	}
	places, err := workspace.Plan(r.Storages, a.Job, a.Alloc.Subjob)
	if err != nil {
		failed := alloc.ByJob(err)
		failed.Infra = structs.CodeOf(err) == structs.CodeUnavailable
		return nil, failed
	}
	s := &space{env: map[string]string{workspaceEnv: workspace.Dir}}
	if raw {
		s.dir, s.links = path.Join(r.taskDirOfAll(a), workspaceDir), make(map[string]string, len(places))
		s.env[workspaceEnv] = s.dir
	}
	for _, place := range places {
		if place.Kind != structs.StorageOutput {
			continue
		}
		if err := r.Layout.WriteOutput(a.Alloc.ID, layout.Output{Root: place.Root, Path: place.Path}); err != nil {
			r.Log.Warn("the output of an allocation will not be found", logkey.AllocID, a.Alloc.ID, logkey.Error, err)
		}
	}
	for _, place := range places {
		if failure := r.openData(ctx, a, &place, owner); failure != nil {
			return nil, failure
		}
		if raw {
			s.links[strings.TrimPrefix(place.TaskPath, workspace.Dir+"/")] = place.Path
			continue
		}
		s.mounts = append(s.mounts, driver.Mount{HostPath: place.Path, TaskPath: place.TaskPath, ReadOnly: place.ReadOnly, Within: place.Root})
	}
	return s, nil
}

// openData lets a place be there, with the copy that it is to have.
func (r *Preparer) openData(ctx context.Context, a *structs.Assignment, place *workspace.Place, owner account.Owner) *alloc.PrepareFailed {
	if place.Remote {
		return r.Data.fetch(ctx, a, place)
	}
	if failure := openPlace(place, owner); failure != nil || !place.Prepare {
		return failure
	}
	return r.Data.copyIn(ctx, a, place)
}

// taskDirOfAll is a path of the task's directory, the one that it has on every
// node if ranks are started from one of them.
func (r *Preparer) taskDirOfAll(a *structs.Assignment) string {
	if links := r.linksOf(a); a.RanksReachEachOther() && len(links) > 0 {
		return links[0].Path
	}
	return r.Layout.Task(a.Alloc.ID)
}

// openPlace finds the directory of a place, below the one that the
// administrator has given, whatever links people have put there; it makes what
// is to be made. A driver that mounts it looks again, in the same way.
func openPlace(place *workspace.Place, owner account.Owner) *alloc.PrepareFailed {
	if info, err := os.Stat(place.Given); err != nil || !info.IsDir() {
		return alloc.ByNode("client.storage_away", "storage", place.Storage, "cause", words.Cause(err))
	}
	if place.Make {
		// The storage's own directories, of a user or a project, belong to the agent.
		if err := os.MkdirAll(place.Root, 0o755); err != nil {
			return alloc.ByNode("client.data_make", "kind", place.Kind, "name", place.Name, "storage", place.Storage, "cause", words.Cause(err))
		}
	}
	root, err := os.OpenRoot(place.Root)
	if err != nil {
		return dataMissing(place, err)
	}
	defer root.Close()
	below, err := filepath.Rel(place.Root, place.Path)
	if err != nil {
		return alloc.ByNode("client.storage_away", "storage", place.Storage, "cause", err)
	}
	if place.Make {
		if err := makeBelow(root, below, owner); err != nil {
			return alloc.ByNode("client.data_make", "kind", place.Kind, "name", place.Name, "storage", place.Storage, "cause", words.Cause(err))
		}
	}
	info, err := root.Stat(below)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return dataMissing(place, err)
	case err != nil, !info.IsDir():
		return alloc.ByJob(structs.NewError(structs.CodeForbidden, "client.data_refused", "kind", place.Kind, "name", place.Name,
			"storage", place.Storage, "path", place.Path, "cause", words.Cause(err)))
	}
	if err := takeOver(root, below, info, place, owner); err != nil {
		return alloc.ByNode("client.data_make", "kind", place.Kind, "name", place.Name, "storage", place.Storage, "cause", words.Cause(err))
	}
	return nil
}

// takeOver hands a directory that the agent has made over to the task's user, when
// an earlier version made it, whose tasks were root: a volume or an output in a
// place of the user's or the project's own. What lies in it stays as it is.
func takeOver(root *os.Root, below string, info fs.FileInfo, place *workspace.Place, owner account.Owner) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !owner.Change || !place.Make || !place.Own || stat.Uid != 0 || owner.UID == 0 || below == "." {
		return nil
	}
	return owner.GiveIn(root, below)
}

func dataMissing(place *workspace.Place, err error) *alloc.PrepareFailed {
	return alloc.ByJob(structs.NewError(structs.CodeNotFound, "client.data_missing", "kind", place.Kind, "name", place.Name,
		"storage", place.Storage, "path", place.Path, "cause", words.Cause(err)))
}

// makeBelow makes a directory with those above it, below root, and returns what
// it has made to the task's user.
func makeBelow(root *os.Root, below string, owner account.Owner) error {
	made := ""
	for element := range strings.SplitSeq(below, "/") {
		made = path.Join(made, element)
		err := root.Mkdir(made, 0o755)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err == nil {
			err = owner.GiveIn(root, made)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// makeWorkingDir makes the job's working directory when it lies in the task's
// own.
func makeWorkingDir(taskDir string, job *structs.Job, owner account.Owner) error {
	dir := job.Task.Dir
	if dir == "" || path.IsAbs(dir) {
		return nil
	}
	if job.Workdir != nil {
		dir = path.Join(launch.CodeDir, dir)
	}
	root, err := os.OpenRoot(taskDir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.MkdirAll(path.Clean(dir), 0o755); err != nil {
		return err
	}
	return owner.GiveIn(root, path.Clean(dir))
}

// link makes the links of a task without a view, anew when they are there: the
// preparation may be repeated.
func (s *space) link(taskDir string, owner account.Owner) error {
	if s.dir == "" {
		return nil
	}
	root, err := os.OpenRoot(taskDir)
	if err != nil {
		return err
	}
	defer root.Close()
	for below, target := range s.links {
		at := path.Join(workspaceDir, below)
		if err := makeBelow(root, path.Dir(at), owner); err != nil {
			return err
		}
		if err := root.Remove(at); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := root.Symlink(target, at); err != nil {
			return err
		}
		if err := owner.GiveIn(root, at); err != nil {
			return err
		}
	}
	return nil
}

// rewrite lets a command line that speaks of /workspace find it in a task
// without a view: words that begin with it, also behind a "=".
func (s *space) rewrite(l *launch.Launch) {
	if s.dir == "" {
		return
	}
	for i, word := range l.Command {
		l.Command[i] = moved(word, s.dir)
	}
	l.Dir = moved(l.Dir, s.dir)
}

// moved puts dir in the place of /workspace in a word. Pure.
func moved(word, dir string) string {
	name, value, found := strings.Cut(word, "=")
	if found && !strings.Contains(name, "/") {
		return name + "=" + moved(value, dir)
	}
	if word == workspace.Dir || strings.HasPrefix(word, workspace.Dir+"/") {
		return dir + strings.TrimPrefix(word, workspace.Dir)
	}
	return word
}

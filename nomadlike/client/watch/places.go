package watch

import (
	"path"
	"path/filepath"
	"strings"

	"nomadlike/nomadlike/client/account"
	"nomadlike/nomadlike/client/checkpoint"
	"nomadlike/nomadlike/client/workspace"
	"nomadlike/nomadlike/structs"
)

// Places finds the directories of tasks on the node.
type Places struct {
	Storages []workspace.Storage
	Owners   *account.Owners
}

// PlaceOf returns where a directory of a task lies on the node. Containers show
// the node's directories at other paths.
func (p *Places) PlaceOf(a *structs.Assignment, dir string) (checkpoint.Place, bool) {
	var best string
	var found checkpoint.Place
	consider := func(target, root, at string) {
		below, ok := strings.CutPrefix(dir, strings.TrimSuffix(target, "/"))
		if start, err := filepath.Rel(root, at); err == nil && ok && within(dir, target) && len(target) > len(best) {
			best, found = target, checkpoint.Place{Root: root, Dir: path.Join(start, below)}
		}
	}
	for _, m := range a.Job.Mounts {
		if m.Source != "" {
			consider(m.Target, m.Source, m.Source)
		}
	}
	if len(a.Job.StorageNeeds()) > 0 {
		places, err := workspace.Plan(p.Storages, a.Job, a.Alloc.Subjob)
		if err != nil {
			return checkpoint.Place{}, false
		}
		for _, place := range places {
			if place.Remote {
				continue // nobody writes there
			}
			consider(place.TaskPath, place.Root, place.Path)
		}
	}
	if best != "" {
		return found, true
	}
	if a.Job.Task.Driver == structs.DriverDocker {
		return checkpoint.Place{}, false // it lies inside the container alone
	}
	by, err := p.Owners.OfRunning(a)
	if err != nil {
		return checkpoint.Place{}, false
	}
	return checkpoint.Place{Dir: dir, UID: by.UID, GID: by.GID}, true
}

// within reports whether a clean path is dir or below it.
func within(name, dir string) bool {
	dir = strings.TrimSuffix(dir, "/")
	return name == dir || strings.HasPrefix(name, dir+"/")
}

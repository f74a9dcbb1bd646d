package prepare

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"nomadlike/nomadlike/client/account"
	"nomadlike/nomadlike/client/workspace"
	"nomadlike/nomadlike/structs"
)

const (
	// looksAtOnce bounds how many looks may hang in storages that do not answer.
	looksAtOnce = 8
	lookTimeout = 2 * time.Second
)

// LookForData reports what of a job's data the node's storages lack, before the job
// is admitted. Nothing is made, nothing is opened but directories; a storage that
// does not answer in time is told as unknown.
func (r *Preparer) LookForData(ctx context.Context, ask *structs.DataLook) (*structs.DataSeen, error) {
	if ask.Job == nil {
		return nil, structs.NewError(structs.CodeInvalid, "client.launch_failed", "cause", "the job is missing")
	}
	places, err := workspace.Plan(r.Storages, ask.Job, 0)
	if err != nil {
		return &structs.DataSeen{Unknown: true}, nil // the scheduler tells it
	}
	select {
	case r.looks <- struct{}{}:
	default:
		return &structs.DataSeen{Unknown: true}, nil
	}
	seen := make(chan *structs.DataSeen, 1)
	go func() { // it may hang with its storage, longer than this process lives
		defer func() { <-r.looks }()
		seen <- lookAt(places)
	}()
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	select {
	case found := <-seen:
		return found, nil
	case <-ctx.Done():
		return &structs.DataSeen{Unknown: true}, nil
	}
}

// lookAt looks for the directories of places.
func lookAt(places []workspace.Place) *structs.DataSeen {
	seen := new(structs.DataSeen)
	for i := range places {
		place := &places[i]
		if place.Kind == structs.StorageOutput && !place.Remote && holdsSomething(place) {
			seen.Kept = append(seen.Kept, structs.DataKept{Name: place.Name, Storage: place.Storage, Path: place.Path})
		}
		if place.Remote || place.Make || place.Kind == structs.StorageMount {
			continue
		}
		failure := openPlace(place, account.Owner{})
		switch {
		case failure == nil:
		case failure.Infra:
			seen.Unknown = true
		default:
			seen.Lacks = append(seen.Lacks, structs.DataLack{Kind: place.Kind, Name: place.Name, Storage: place.Storage, Path: place.Path, Cause: *failure.Cause})
		}
	}
	return seen
}

// holdsSomething reports whether an output is there and is not empty. What cannot be
// looked at is told at the start. A link on the way says nothing: it could lead to
// what is somebody else's.
func holdsSomething(place *workspace.Place) bool {
	root, err := os.OpenRoot(place.Root)
	if err != nil {
		return false
	}
	defer root.Close()
	below, err := filepath.Rel(place.Root, place.Path)
	if err != nil {
		return false
	}
	for end := range below {
		if below[end] != filepath.Separator {
			continue
		}
		if info, err := root.Lstat(below[:end]); err != nil || !info.IsDir() {
			return false
		}
	}
	if info, err := root.Lstat(below); err != nil || !info.IsDir() {
		return false
	}
	dir, err := root.Open(below)
	if err != nil {
		return false
	}
	defer dir.Close()
	names, err := dir.Readdirnames(1)
	return err == nil && len(names) > 0
}

// Package objects keeps the bytes of named data on storages of the node: each version
// of an object is a plain directory, which jobs read where it lies.
//
// Flow: a manifest comes first, and says what is to come; Missing tells what of it
// neither was sent nor lies in an earlier version; Put writes chunks where they belong
// in a directory that nobody sees; Finish brings the rest from the earlier version,
// and gives the directory its name. List, Read and Verify read a version.
//
//	PARENT/VERSION                  the directory of a version: files 0444 or 0555
//	PARENT/.nomadlike/NAME.N.tree   its manifest
//	PARENT/.nomadlike/up-ID/*       what is being uploaded: manifest, journal, tree
//	PARENT/.nomadlike/done-ID       an upload is a version on the disk; gone when the log has it
//	PARENT/.nomadlike/gone-*        what is being removed
//
// PARENT may be a directory in which users write. So nothing is opened through a link,
// and .nomadlike has to be the agent's own, closed to everybody else. Whoever renames
// the whole of it gets at nothing: what is read is compared with digests that stand in
// the servers' log, also before it is shared with a later version.
//
// An answer to Put comes after the bytes and then the journal have reached the disk. So
// nothing that was acknowledged is lost when the process is killed or the power fails;
// and a version has its name when it is whole, not before.
//
// Limits: who may ask is judged by servers. A storage of one name is the same place on
// all nodes that have it; each node writes a journal of its own there.
package objects

import (
	"context"
	"log/slog"
	"regexp"
	"strconv"
	"sync"
	"time"

	"nomadlike/nomadlike/client/workspace"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

const (
	ownDir       = ".nomadlike"
	uploadPrefix = "up-"
	donePrefix   = "done-"
	gonePrefix   = "gone-"
	treeDir      = "tree"
	manifestFile = "manifest"
	journalFile  = "journal-" // with the node's id behind it

	leastFree   = 512 << 20          // bytes that stay free on a storage
	uploadsOpen = 16                 // whose state is kept in memory
	worksMax    = 8                  // versions that are finished or verified at once
	workWait    = 5 * time.Second    // that one question waits for something that takes long
	closeWait   = 5 * time.Second    // for what goes on when the node stops
	workKept    = time.Minute        // for which the end of it is remembered
	uploadOld   = 8 * 24 * time.Hour // after it nobody goes on with an upload: its record is gone
	indexesKept = 4                  // of manifests that are read from
)

// Config says which storages there are.
type Config struct {
	NodeID   string
	Storages []workspace.Storage
	Log      *slog.Logger
	Now      func() time.Time
	// FreeBytes returns the free space of a directory; nil asks its file system.
	FreeBytes func(dir string) (uint64, error)
	LeastFree uint64 // bytes that stay free; 0: 512 MiB
}

// Store is the bytes of named data on the storages of a node. Any goroutine may use it.
type Store struct {
	config  Config
	stop    context.CancelFunc
	running context.Context // of what goes on after a question was answered

	mu struct {
		sync.Mutex
		uploads map[string]*upload // by place and id
		works   map[string]*work
		ending  []*work                      // that nobody is told of any more
		left    map[string]map[string]leftAt // by kind and storage, then by upload: at the last sweep
		tallies map[string]*tally            // of uploads whose files come one by one, by place and id
		indexes []*index                     // the one used last is the last
	}
	working sync.WaitGroup
}

// New returns the store of a node's storages. Close ends what it has begun.
func New(config Config) *Store {
	if config.FreeBytes == nil {
		config.FreeBytes = freeBytes
	}
	if config.LeastFree == 0 {
		config.LeastFree = leastFree
	}
	s := &Store{config: config}
	s.running, s.stop = context.WithCancel(context.Background())
	s.mu.uploads, s.mu.works, s.mu.tallies = make(map[string]*upload), make(map[string]*work), make(map[string]*tally)
	s.mu.left = make(map[string]map[string]leftAt)
	return s
}

// Close ends what goes on still; a storage that does not answer holds it up for a short
// while only. What was sent stays, and a later upload goes on with it.
func (s *Store) Close() {
	s.stop()
	ended := make(chan struct{})
	go func() {
		s.working.Wait()
		close(ended)
	}()
	timer := time.NewTimer(closeWait)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, u := range s.mu.uploads {
		delete(s.mu.uploads, key)
		if u.dropped = true; u.users == 0 {
			u.close()
		}
	}
}

// version is where a version of an object lies.
type version struct {
	place    workspace.Place
	name     string // of its manifest's file
	readOnly bool   // the storage is
	digest   tree.Digest
}

var uploadID = regexp.MustCompile(`^[0-9A-Za-z-]{8,64}$`)

// versionOf finds a version in the node's storages. Whoever asks is a server; what it
// passes on was typed by people all the same.
func (s *Store) versionOf(p *structs.DataPlace, number int) (version, error) {
	for _, name := range []string{p.Project, p.Name} {
		if id := structs.NameProblem(name); id != "" {
			return version{}, structs.NewError(structs.CodeInvalid, id, "name", clip(name), "max", structs.NameLengthMax)
		}
	}
	if number < 1 {
		return version{}, structs.NewError(structs.CodeInvalid, "objects.number", "number", number)
	}
	ref := []structs.DataRef{{Name: p.Name, Version: number, Storage: p.Storage}}
	job := &structs.Job{Project: p.Project, User: p.Owner}
	switch p.Kind {
	case structs.StorageDataset:
		job.Datasets = ref
	case structs.StorageModel:
		job.Models = ref
	case structs.StorageAlgorithm:
		job.Algorithms = ref
	default:
		return version{}, structs.NewError(structs.CodeInvalid, "objects.kind", "kind", clip(p.Kind))
	}
	places, err := workspace.Plan(s.config.Storages, job, 0)
	if err != nil {
		return version{}, err
	}
	v := version{place: places[0], name: p.Name + "." + strconv.Itoa(number) + ".tree", digest: tree.Digest(p.Digest)}
	if v.place.Remote {
		return version{}, structs.NewError(structs.CodeConflict, "objects.remote", "storage", v.place.Storage)
	}
	for i := range s.config.Storages {
		if s.config.Storages[i].Name == v.place.Storage {
			v.readOnly = s.config.Storages[i].ReadOnly
		}
	}
	return v, nil
}

func clip(text string) string { return text[:min(len(text), 80)] }

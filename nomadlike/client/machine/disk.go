package machine

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/retry"
	"nomadlike/nomadlike/client/words"
	"nomadlike/nomadlike/structs"
)

// This file looks whether the node can still write where it keeps its records
// and the directories and logs of its tasks. A node without room takes no new
// work: every start would fail there, and be quicker about it than a node where
// it succeeds.

// diskEvery is how often the node looks; it looks at each start as well.
const diskEvery = 2 * time.Second

// Names of the faults of disks, before the place that they are about.
const (
	faultDiskSpace  = "disk/space"
	faultDiskInodes = "disk/inodes"
	faultDiskWrite  = "disk/write"
)

// DiskBounds say when a node takes no new work for want of room where it keeps
// its records and the files of its tasks, and when it takes work again. Zero
// values mean the defaults, which depend on the size of the file system: the
// lesser of DiskSpaceMin and a fiftieth, of DiskInodesMin and a hundredth, and
// twice as much to come back.
type DiskBounds struct {
	SpaceMin   int64 // free bytes under which no new work comes
	SpaceBack  int64 // free bytes at which it comes again
	InodesMin  int64 // free inodes under which no new work comes
	InodesBack int64 // free inodes at which it comes again
}

// Greatest defaults of DiskBounds.
const (
	DiskSpaceMin  = 1 << 30
	DiskInodesMin = 10_000
)

// Of completes the bounds for a file system. Pure.
func (b DiskBounds) Of(size, inodes int64) DiskBounds {
	b.SpaceMin = cmp.Or(b.SpaceMin, min(DiskSpaceMin, size/50))
	b.InodesMin = cmp.Or(b.InodesMin, min(DiskInodesMin, inodes/100))
	b.SpaceBack = max(cmp.Or(b.SpaceBack, 2*b.SpaceMin), b.SpaceMin)
	b.InodesBack = max(cmp.Or(b.InodesBack, 2*b.InodesMin), b.InodesMin)
	return b
}

// FileSystem is what a look at the file system below a directory has shown.
type FileSystem struct {
	place    string // "" for the data directory, else what a fault's name ends in
	path     string
	Size     int64 // bytes
	Free     int64 // bytes, for others than root
	Inodes   int64 // 0: the file system has no fixed number of them
	left     int64 // free inodes
	readOnly bool
	err      error // of the look, or of a trial to write
}

// faultsOf says what is wrong with a file system; before reports whether a fault
// of a name was there at the last look. Pure.
func (r *FileSystem) faultsOf(bounds DiskBounds, before func(name string) bool) []structs.NodeFault {
	var all []structs.NodeFault
	add := func(name string, reason *structs.Reason) {
		all = append(all, structs.NodeFault{Name: r.name(name), Unfit: true, Reason: reason})
	}
	switch {
	case r.err != nil:
		add(faultDiskWrite, structs.NewReason("client.disk_write", "path", r.path, "cause", words.Cause(r.err)))
	case r.readOnly:
		add(faultDiskWrite, structs.NewReason("client.disk_write", "path", r.path, "cause", unix.EROFS.Error()))
	}
	if r.Size <= 0 {
		return all // nothing is known of it
	}
	b := bounds.Of(r.Size, r.Inodes)
	least := b.SpaceMin
	if before(r.name(faultDiskSpace)) {
		least = b.SpaceBack
	}
	if r.Free < least {
		add(faultDiskSpace, structs.NewReason("client.disk_space", "path", r.path, "free", words.Roughly(r.Free),
			"least", words.Roughly(b.SpaceMin), "back", words.Roughly(b.SpaceBack)))
	}
	least = b.InodesMin
	if before(r.name(faultDiskInodes)) {
		least = b.InodesBack
	}
	if r.Inodes > 0 && r.left < least {
		add(faultDiskInodes, structs.NewReason("client.disk_inodes", "path", r.path, "free", r.left, "least", b.InodesMin, "back", b.InodesBack))
	}
	return all
}

// Name is the name of a fault of this place.
func (r *FileSystem) name(fault string) string {
	if r.place == "" {
		return fault
	}
	return fault + ":" + r.place
}

// diskWatch remembers from look to look which places are unhealthy.
type diskWatch struct {
	looking sync.Mutex // one look at a time, so that the newest is told last
	mu      struct {
		sync.Mutex
		told    map[string]*structs.Reason // faults, as they were first told
		suspect bool                       // a start failed: the next looks try to write
	}
}

// step takes what a look has shown. A fault keeps the figures with which it was
// first told: they change all the time, and each change would be a registration.
func (w *diskWatch) step(bounds DiskBounds, rooms []FileSystem) []structs.NodeFault {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.mu.told
	w.mu.told = make(map[string]*structs.Reason)
	var all []structs.NodeFault
	for i := range rooms {
		for _, fault := range rooms[i].faultsOf(bounds, func(name string) bool { return before[name] != nil }) {
			if was := before[fault.Name]; was != nil && was.ID == fault.Reason.ID && was.Params["cause"] == fault.Reason.Params["cause"] {
				fault.Reason = was
			}
			w.mu.told[fault.Name] = fault.Reason
			all = append(all, fault)
		}
	}
	return all
}

// suspect has the next looks try to write until that succeeds everywhere: a
// quota, and a disk that answers with errors, show in no figure.
func (w *diskWatch) suspect() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.suspect = true
}

// tries reports whether the next look tries to write.
func (w *diskWatch) tries() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.suspect
}

// tried notes how the trials went.
func (w *diskWatch) tried(well bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.suspect = !well
}

// Disks watches the file systems on which the node keeps its records and the files
// of its tasks. Any goroutine may use it.
type Disks struct {
	dataDir string
	allocs  string // the directory of the allocations
	bounds  DiskBounds
	node    *Registration
	log     *slog.Logger
	watch   diskWatch
}

// NewDisks makes a watch that has not looked yet.
func NewDisks(dataDir, allocs string, bounds DiskBounds, node *Registration, log *slog.Logger) *Disks {
	return &Disks{dataDir: dataDir, allocs: allocs, bounds: bounds, node: node, log: log}
}

// places are the directories that a node must be able to write: its own, and that
// of its allocations if that is on another file system.
func (d *Disks) places() []FileSystem {
	places := []FileSystem{{path: d.dataDir}}
	if at := deviceOf(d.allocs); at != 0 && at != deviceOf(d.dataDir) {
		places = append(places, FileSystem{place: filepath.Base(d.allocs), path: d.allocs})
	}
	return places
}

func deviceOf(path string) uint64 {
	var stat unix.Stat_t
	if unix.Stat(path, &stat) != nil {
		return 0 // the look itself will say what is wrong
	}
	return stat.Dev
}

// Look tells the servers what is wrong with the node's disks.
func (d *Disks) Look() {
	d.watch.looking.Lock()
	defer d.watch.looking.Unlock()
	rooms, tries := d.places(), d.watch.tries()
	for i := range rooms {
		rooms[i].look()
		if tries && rooms[i].err == nil && !rooms[i].readOnly {
			rooms[i].err = tryToWrite(rooms[i].path)
		}
	}
	if tries {
		well := true
		for i := range rooms {
			well = well && rooms[i].err == nil
		}
		d.watch.tried(well)
	}
	faults := d.watch.step(d.bounds, rooms)
	for i := range faults {
		if !d.node.HasFault(faults[i].Name) {
			d.log.Error("no new work comes here: the disk is unhealthy", "fault", faults[i].Name, logkey.Reason, faults[i].Reason)
		}
	}
	d.node.SetFaults(faultsOfDisks, faults)
}

// Suspect has the next looks try to write: a start has failed.
func (d *Disks) Suspect() { d.watch.suspect() }

// Watch looks until ctx is cancelled, after the first look, and calls also after
// each look.
func (d *Disks) Watch(ctx context.Context, also func()) {
	for retry.Sleep(ctx, diskEvery) {
		d.Look()
		also()
	}
}

// Room returns what is free where the node keeps its records: bytes, and files.
func (d *Disks) Room() (free, left int64) {
	room := LookAt(d.dataDir)
	return room.Free, room.left
}

// LookAt reads the figures of the file system below a directory.
func LookAt(path string) FileSystem {
	r := FileSystem{path: path}
	r.look()
	return r
}

// Look reads the figures of the file system.
func (r *FileSystem) look() {
	var stat unix.Statfs_t
	if err := unix.Statfs(r.path, &stat); err != nil {
		r.err = err
		return
	}
	block := stat.Bsize
	r.Size, r.Free = blocks(stat.Blocks, block), blocks(stat.Bavail, block)
	r.Inodes, r.left = blocks(stat.Files, 1), blocks(stat.Ffree, 1)
	r.readOnly = stat.Flags&unix.ST_RDONLY != 0
}

// blocks is n times size, or the greatest number there is.
func blocks(n uint64, size int64) int64 {
	if size <= 0 || n > uint64(math.MaxInt64/size) {
		return math.MaxInt64
	}
	return int64(n) * size
}

// tryToWrite makes a small file and removes it.
func tryToWrite(dir string) error {
	file, err := os.CreateTemp(dir, ".trial-*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	_, err = file.Write(make([]byte, 4096))
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

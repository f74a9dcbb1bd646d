package client

import (
	"cmp"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"nomadlike/internal/logkey"
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

// of completes the bounds for a file system. Pure.
func (b DiskBounds) of(size, inodes int64) DiskBounds {
	b.SpaceMin = cmp.Or(b.SpaceMin, min(DiskSpaceMin, size/50))
	b.InodesMin = cmp.Or(b.InodesMin, min(DiskInodesMin, inodes/100))
	b.SpaceBack = max(cmp.Or(b.SpaceBack, 2*b.SpaceMin), b.SpaceMin)
	b.InodesBack = max(cmp.Or(b.InodesBack, 2*b.InodesMin), b.InodesMin)
	return b
}

// diskRoom is what a look at the file system below a directory has shown.
type diskRoom struct {
	place    string // "" for the data directory, else what a fault's name ends in
	path     string
	size     int64 // bytes
	free     int64 // bytes, for others than root
	inodes   int64 // 0: the file system has no fixed number of them
	left     int64 // free inodes
	readOnly bool
	err      error // of the look, or of a trial to write
}

// faultsOf says what is wrong with a file system; before reports whether a fault
// of a name was there at the last look. Pure.
func (r *diskRoom) faultsOf(bounds DiskBounds, before func(name string) bool) []structs.NodeFault {
	var all []structs.NodeFault
	add := func(name string, reason *structs.Reason) {
		all = append(all, structs.NodeFault{Name: r.name(name), Unfit: true, Reason: reason})
	}
	switch {
	case r.err != nil:
		add(faultDiskWrite, structs.NewReason("client.disk_write", "path", r.path, "cause", plainCause(r.err)))
	case r.readOnly:
		add(faultDiskWrite, structs.NewReason("client.disk_write", "path", r.path, "cause", unix.EROFS.Error()))
	}
	if r.size <= 0 {
		return all // nothing is known of it
	}
	b := bounds.of(r.size, r.inodes)
	least := b.SpaceMin
	if before(r.name(faultDiskSpace)) {
		least = b.SpaceBack
	}
	if r.free < least {
		add(faultDiskSpace, structs.NewReason("client.disk_space", "path", r.path, "free", roughly(r.free),
			"least", roughly(b.SpaceMin), "back", roughly(b.SpaceBack)))
	}
	least = b.InodesMin
	if before(r.name(faultDiskInodes)) {
		least = b.InodesBack
	}
	if r.inodes > 0 && r.left < least {
		add(faultDiskInodes, structs.NewReason("client.disk_inodes", "path", r.path, "free", r.left, "least", b.InodesMin, "back", b.InodesBack))
	}
	return all
}

// roughly is a size for people.
func roughly(bytes int64) string {
	unit := structs.KiB
	if bytes >= 10*structs.MiB {
		unit = structs.MiB
	}
	return structs.FormatSize(bytes / unit * unit)
}

// name is the name of a fault of this place.
func (r *diskRoom) name(fault string) string {
	if r.place == "" {
		return fault
	}
	return fault + ":" + r.place
}

// diskWatch remembers from look to look which places are not well.
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
func (w *diskWatch) step(bounds DiskBounds, rooms []diskRoom) []structs.NodeFault {
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

// diskPlaces are the directories that a node must be able to write: its own, and
// that of its allocations if that is on another file system.
func (c *Client) diskPlaces() []diskRoom {
	places := []diskRoom{{path: c.config.DataDir}}
	if at := deviceOf(c.files.allocs()); at != 0 && at != deviceOf(c.config.DataDir) {
		places = append(places, diskRoom{place: filepath.Base(c.files.allocs()), path: c.files.allocs()})
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

// lookAtDisks tells the servers what is wrong with the node's disks.
func (c *Client) lookAtDisks() {
	c.disks.looking.Lock()
	defer c.disks.looking.Unlock()
	rooms, tries := c.diskPlaces(), c.disks.tries()
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
		c.disks.tried(well)
	}
	faults := c.disks.step(c.config.Disk, rooms)
	for i := range faults {
		if !c.hasFault(faults[i].Name) {
			c.log.Error("no new work comes here: the disk is unhealthy", "fault", faults[i].Name, logkey.Reason, faults[i].Reason)
		}
	}
	c.noteFaults(faultsOfDisks, faults)
}

// watchDisks looks until ctx is cancelled, after the first look; it also sees
// when the time out of service after starts that failed is over.
func (c *Client) watchDisks(ctx context.Context) {
	for sleep(ctx, diskEvery) {
		c.lookAtDisks()
		c.lookAtStarts()
		c.keepGuard()
	}
}

// look reads the figures of the file system.
func (r *diskRoom) look() {
	var stat unix.Statfs_t
	if err := unix.Statfs(r.path, &stat); err != nil {
		r.err = err
		return
	}
	block := stat.Bsize
	r.size, r.free = blocks(stat.Blocks, block), blocks(stat.Bavail, block)
	r.inodes, r.left = blocks(stat.Files, 1), blocks(stat.Ffree, 1)
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

// hasFault reports whether the node has registered a fault of a name.
func (c *Client) hasFault(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.mu.node.Faults {
		if c.mu.node.Faults[i].Name == name {
			return true
		}
	}
	return false
}

// diskFigures are the room of the data directory, for whoever measures.
func (c *Client) diskFigures() (free, left int64) {
	room := diskRoom{path: c.config.DataDir}
	room.look()
	return room.free, room.left
}

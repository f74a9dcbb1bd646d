package run

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/alloc"
	"nomadlike/nomadlike/client/loop"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// Retention says how long the directories of ended allocations are kept.
// What is over any of the three bounds goes, oldest first. Zero values mean
// the defaults.
type Retention struct {
	Allocs int           // how many
	Age    time.Duration // since their end
	Bytes  int64         // on disk, together
}

// Defaults of Retention.
const (
	KeepAllocsDefault = 1000
	KeepAgeDefault    = 24 * time.Hour
	KeepBytesDefault  = 20 << 30
)

// keepAtLeast is how long an ended allocation stays whatever its size, so
// that people can see why it failed.
const keepAtLeast = 10 * time.Minute

func (r Retention) withDefaults() Retention {
	if r.Allocs <= 0 {
		r.Allocs = KeepAllocsDefault
	}
	if r.Age <= 0 {
		r.Age = KeepAgeDefault
	}
	if r.Bytes <= 0 {
		r.Bytes = KeepBytesDefault
	}
	return r
}

// Ended is an allocation that has ended, and what its directory holds.
type Ended struct {
	AllocID string
	At      structs.UnixNano
	Bytes   int64
	Unheard bool // its last report waits for a server: it stays
}

// Expired chooses the ended allocations whose directories have to go, oldest
// first. It is pure; the order of ended does not matter.
func Expired(ended []Ended, now structs.UnixNano, keep Retention) []string {
	newest := slices.Clone(ended)
	slices.SortFunc(newest, func(a, b Ended) int {
		switch {
		case a.At != b.At && a.At > b.At, a.At == b.At && a.AllocID < b.AllocID:
			return -1
		case a.AllocID == b.AllocID:
			return 0
		}
		return 1
	})
	var expired []string
	kept, bytes := 0, int64(0)
	for _, e := range newest {
		age := now.Sub(e.At)
		over := kept >= keep.Allocs || age > keep.Age || bytes+e.Bytes > keep.Bytes && age > keepAtLeast
		if over && !e.Unheard {
			expired = append(expired, e.AllocID)
			continue
		}
		kept++
		bytes += e.Bytes
	}
	slices.Reverse(expired)
	return expired
}

// sweepMax bounds the directories removed in one sweep.
const sweepMax = 256

// findStrays asks the drivers for tasks that have no business here: what an
// earlier agent had asked for may be executed after the first look.
func (x *Runs) findStrays(work context.Context) {
	for name, d := range x.Drivers {
		lister, ok := d.(driver.Lister)
		if !ok {
			continue
		}
		x.Work.Go(func() {
			ctx, cancel := context.WithTimeout(work, listTimeout)
			defer cancel()
			handles, err := lister.List(ctx)
			if err != nil {
				return // the next look may see more
			}
			x.Inbox.Post(func(l *loop.Loop) {
				for _, handle := range handles {
					if x.Hooks.Own(handle.TaskID) {
						continue
					}
					state, known := l.State(allocOf(handle.TaskID))
					_, found := x.strays[handle.TaskID]
					if found || known && state.Phase != alloc.PhaseEnded || known && structs.At(x.Now()).Sub(state.EndedAt) < loop.SeldomEvery {
						continue
					}
					x.Log.Warn("stray task is found", logkey.TaskID, handle.TaskID, logkey.Driver, name)
					x.destroyStray(work, stray{driver: name, handle: handle})
				}
			})
		})
	}
}

// Sweep measures the directories of ended allocations and removes those that
// are not kept, in a goroutine of its own; one sweep at a time.
func (x *Runs) Sweep(work context.Context, l *loop.Loop) {
	if x.sweeping {
		return
	}
	x.findStrays(work)
	var ended []Ended
	var settled []string // which nobody will hold any more
	live, reading := make(map[string]bool), make(map[string]bool)
	for _, s := range l.States() {
		reading[s.AllocID] = s.Phase != alloc.PhaseEnded
		if s.Phase == alloc.PhaseEnded && !x.Holds.Has(s.AllocID) {
			ended = append(ended, Ended{AllocID: s.AllocID, At: s.EndedAt, Unheard: !s.Acked})
			if s.Acked && structs.At(x.Now()).Sub(s.EndedAt) > loop.SeldomEvery {
				settled = append(settled, s.AllocID)
			}
		}
		live[s.AllocID] = true
	}
	x.sweeping = true
	sizes := maps.Clone(x.sizes)
	x.Work.Go(func() {
		sweepLinks(x.SharedDir)
		for _, id := range settled {
			x.Holds.DropState(work, id)
		}
		x.Preparer.Data.Sweep(reading)
		x.Preparer.Code.Sweep()
		expired := x.expired(work, ended, live, sizes)
		for _, id := range expired {
			if work.Err() != nil {
				return
			}
			x.Rooms.Free(id)
			for _, dir := range []string{x.Layout.Alloc(id), x.Layout.RecordsOf(id)} {
				x.forgetSecrets(id)
				if err := os.RemoveAll(dir); err != nil {
					x.Log.Warn("remove ended allocation", logkey.AllocID, id, logkey.Error, err)
				}
			}
		}
		x.Inbox.Post(func(l *loop.Loop) {
			x.sweeping, x.sizes = false, sizes
			for _, id := range expired {
				l.Forget(id)
			}
		})
	})
}

// expired measures what lies on the disk; directories that no state knows of
// count as ended when they were last changed. sizes holds what was measured
// before: what has ended does not grow.
func (x *Runs) expired(work context.Context, ended []Ended, live map[string]bool, sizes map[string]int64) []string {
	listed := maps.Clone(live)
	for _, dir := range []string{x.Layout.Allocs(), x.Layout.Records()} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			x.Log.Warn("list allocations", logkey.Error, err)
			return nil
		}
		for _, entry := range entries {
			if info, err := entry.Info(); err == nil && !listed[entry.Name()] {
				ended = append(ended, Ended{AllocID: entry.Name(), At: structs.At(info.ModTime())})
				listed[entry.Name()] = true
			}
		}
	}
	for i := range ended {
		if work.Err() != nil {
			return nil
		}
		id := ended[i].AllocID
		if _, known := sizes[id]; !known {
			sizes[id] = diskUsage(x.Layout.Alloc(id)) + diskUsage(x.Layout.RecordsOf(id))
		}
		ended[i].Bytes = sizes[id]
	}
	expired := Expired(ended, structs.At(x.Now()), x.Keep)
	expired = expired[:min(len(expired), sweepMax)]
	for _, id := range expired {
		delete(sizes, id)
	}
	return expired
}

// sweepLinks removes links of the shared directory that lead nowhere: their
// agent was killed before it could.
func sweepLinks(shared string) {
	if shared == "" {
		return
	}
	links, err := filepath.Glob(filepath.Join(shared, "*", "*"))
	if err != nil {
		return // a bad pattern: the directory has special characters in its name
	}
	for _, link := range links {
		if _, err := os.Stat(link); errors.Is(err, fs.ErrNotExist) {
			_ = os.Remove(link)               // tried again in the next sweep
			_ = os.Remove(filepath.Dir(link)) // refused while there are other links
		}
	}
}

// diskUsage sums the sizes of the files below a directory; links are not
// followed.
func diskUsage(dir string) int64 {
	var total int64
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
				return nil
			}
			return err
		}
		if entry.Type().IsRegular() {
			if info, err := entry.Info(); err == nil {
				total += info.Size()
			}
		}
		return nil
	})
	if err != nil {
		return total
	}
	return total
}

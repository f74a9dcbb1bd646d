package client

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
// earlier agent had asked for may be carried out after the first look.
func (c *Client) findStrays(work context.Context) {
	for name, d := range c.config.Drivers {
		lister, ok := d.(driver.Lister)
		if !ok {
			continue
		}
		c.work.Go(func() {
			ctx, cancel := context.WithTimeout(work, listTimeout)
			defer cancel()
			handles, err := lister.List(ctx)
			if err != nil {
				return // the next look may see more
			}
			c.post(func() {
				for _, handle := range handles {
					if c.ownHookTask(handle.TaskID) {
						continue
					}
					state, known := c.loop.table.State(allocOf(handle.TaskID))
					_, found := c.loop.strays[handle.TaskID]
					if found || known && state.Phase != alloc.PhaseEnded || known && c.now().Sub(state.EndedAt) < sweepEvery {
						continue
					}
					c.log.Warn("stray task is found", logkey.TaskID, handle.TaskID, logkey.Driver, name)
					c.destroyStray(work, stray{driver: name, handle: handle})
				}
			})
		})
	}
}

// sweep measures the directories of ended allocations and removes those that
// are not kept, in a goroutine of its own; one sweep at a time.
func (c *Client) sweep(work context.Context) {
	if c.loop.sweeping {
		return
	}
	c.findStrays(work)
	var ended []Ended
	var settled []string // which nobody will hold any more
	live, reading := make(map[string]bool), make(map[string]bool)
	for _, s := range c.loop.table.States() {
		reading[s.AllocID] = s.Phase != alloc.PhaseEnded
		if s.Phase == alloc.PhaseEnded && c.loop.holds[s.AllocID] == nil {
			ended = append(ended, Ended{AllocID: s.AllocID, At: s.EndedAt, Unheard: !s.Acked})
			if s.Acked && c.now().Sub(s.EndedAt) > sweepEvery {
				settled = append(settled, s.AllocID)
			}
		}
		live[s.AllocID] = true
	}
	c.loop.sweeping = true
	sizes := maps.Clone(c.loop.sizes)
	c.work.Go(func() {
		sweepLinks(c.config.SharedDir)
		for _, id := range settled {
			c.dropLeft(work, id)
		}
		c.sweepData(reading)
		expired := c.expired(work, ended, live, sizes)
		for _, id := range expired {
			if work.Err() != nil {
				return
			}
			c.freeRoom(id)
			for _, dir := range []string{c.files.alloc(id), c.files.recordsOf(id)} {
				if err := os.RemoveAll(dir); err != nil {
					c.log.Warn("remove ended allocation", logkey.AllocID, id, logkey.Error, err)
				}
			}
		}
		c.post(func() {
			c.loop.sweeping, c.loop.sizes = false, sizes
			for _, id := range expired {
				if c.loop.table.Forget(id) {
					c.loop.unsaved[id] = true
				}
			}
		})
	})
}

// expired measures what lies on the disk; directories that no state knows of
// count as ended when they were last changed. sizes holds what was measured
// before: what has ended does not grow.
func (c *Client) expired(work context.Context, ended []Ended, live map[string]bool, sizes map[string]int64) []string {
	listed := maps.Clone(live)
	for _, dir := range []string{c.files.allocs(), c.files.records()} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			c.log.Warn("list allocations", logkey.Error, err)
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
			sizes[id] = diskUsage(c.files.alloc(id)) + diskUsage(c.files.recordsOf(id))
		}
		ended[i].Bytes = sizes[id]
	}
	expired := Expired(ended, c.now(), c.config.Keep)
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

package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"nomadlike/nomadlike/history"
	"nomadlike/nomadlike/structs"
)

var errGone = errors.New("the machine is off")

// frailDisk is a disk in memory that loses what was not synced when it is turned off, or
// fails to write.
type frailDisk struct {
	names  map[string]*inode // as they are now
	stays  map[string]*inode // as they are after a crash
	until  int               // changes that are still done; then it is off
	full   bool              // nothing more is written
	chance func(n int) int   // 0 to n-1
}

type inode struct {
	data   []byte
	synced []byte
}

func newFrailDisk(chance func(int) int) *frailDisk {
	return &frailDisk{names: map[string]*inode{}, stays: map[string]*inode{}, until: 1 << 30, chance: chance}
}

// change reports whether one more change is done.
func (d *frailDisk) change() error {
	if d.until == 0 {
		return errGone
	}
	d.until--
	return nil
}

// crash turns it off and on: what was synced is there, and any part of what was not.
func (d *frailDisk) crash() {
	for name := range maps.Keys(d.names) { // a rename or a new file may have come through
		if d.stays[name] != d.names[name] && d.chance(2) == 0 {
			d.stays[name] = d.names[name]
		}
	}
	for name := range maps.Keys(d.stays) {
		if d.names[name] == nil && d.chance(2) == 0 {
			delete(d.stays, name)
		}
	}
	d.names = maps.Clone(d.stays)
	seen := map[*inode]bool{}
	for _, node := range d.names {
		if seen[node] {
			continue
		}
		seen[node] = true
		if kept := len(node.synced); len(node.data) >= kept && string(node.data[:kept]) == string(node.synced) {
			node.data = node.data[:kept+d.chance(len(node.data)-kept+1)]
		} else {
			node.data = slices.Clone(node.synced)
		}
		node.synced = slices.Clone(node.data)
	}
	d.until, d.full = 1<<30, false
}

func (d *frailDisk) list(string) (map[string]int64, error) {
	sizes := map[string]int64{}
	for name, node := range d.names {
		sizes[name] = int64(len(node.data))
	}
	return sizes, nil
}

func (d *frailDisk) open(path string, flag int) (file, error) {
	name := filepath.Base(path)
	node := d.names[name]
	if node == nil {
		if flag&os.O_CREATE == 0 {
			return nil, fs.ErrNotExist
		}
		if err := d.change(); err != nil {
			return nil, err
		}
		node = &inode{}
		d.names[name] = node
	}
	if flag&os.O_TRUNC != 0 {
		node.data = nil
	}
	return &frailFile{disk: d, node: node}, nil
}

func (d *frailDisk) write(path string, data []byte) error {
	out, err := d.open(path+tempSuffix, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	if _, err := out.Write(data); err != nil {
		return err
	}
	if err := out.Sync(); err != nil {
		return err
	}
	if err := d.rename(path+tempSuffix, path); err != nil {
		return err
	}
	return d.syncDir("")
}

func (d *frailDisk) rename(from, to string) error {
	if err := d.change(); err != nil {
		return err
	}
	d.names[filepath.Base(to)] = d.names[filepath.Base(from)]
	delete(d.names, filepath.Base(from))
	return nil
}

func (d *frailDisk) remove(path string) error {
	if err := d.change(); err != nil {
		return err
	}
	delete(d.names, filepath.Base(path))
	return nil
}

func (d *frailDisk) syncDir(string) error {
	if err := d.change(); err != nil {
		return err
	}
	d.stays = maps.Clone(d.names)
	return nil
}

type frailFile struct {
	disk *frailDisk
	node *inode
	at   int64
}

func (f *frailFile) Read(p []byte) (int, error) {
	if f.at >= int64(len(f.node.data)) {
		return 0, io.EOF
	}
	n := copy(p, f.node.data[f.at:])
	f.at += int64(n)
	return n, nil
}

func (f *frailFile) ReadAt(p []byte, at int64) (int, error) {
	if at > int64(len(f.node.data)) {
		return 0, io.EOF
	}
	n := copy(p, f.node.data[at:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *frailFile) Write(p []byte) (int, error) {
	full := f.disk.full
	if f.disk.change() != nil {
		full = true
	}
	part := len(p)
	if full {
		part = f.disk.chance(len(p))
	}
	f.node.data = append(slices.Clone(f.node.data[:f.at]), p[:part]...)
	f.at += int64(part)
	if full {
		return part, errGone
	}
	return part, nil
}

func (f *frailFile) Seek(at int64, _ int) (int64, error) {
	f.at = at
	return at, nil
}

func (f *frailFile) Truncate(size int64) error {
	f.node.data = slices.Clone(f.node.data[:size])
	return nil
}

func (f *frailFile) Sync() error {
	if err := f.disk.change(); err != nil {
		return err
	}
	f.node.synced = slices.Clone(f.node.data)
	return nil
}

func (f *frailFile) Close() error { return nil }

// madeUp is the rows of an entry: none, one, or several, always the same for an index.
func madeUp(index uint64) []structs.HistoryRow {
	var rows []structs.HistoryRow
	for i := range int(index*7) % 4 {
		end := structs.At(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)).Add(time.Duration(index) * 5 * time.Hour)
		rows = append(rows, structs.HistoryRow{
			Index: index, Ordinal: i, Kind: structs.HistoryHolding, JobID: fmt.Sprint("job-", index), User: "ann", Project: fmt.Sprint("p", index%3),
			Tags: []string{"a", fmt.Sprint(index)}, Cards: structs.QuotaUsage{"nvidia/gpu/A100": int64(index % 8)}, Start: end.Add(-time.Hour), End: end, Infra: index%2 == 0,
		})
	}
	return rows
}

func told(t *rapid.T, s *Store) []structs.HistoryRow {
	var rows []structs.HistoryRow
	err := s.View().Each(context.Background(), 0, 0, func(part history.Columns) error {
		switch part := part.(type) {
		case *history.Segment:
			all, err := part.All()
			rows = append(rows, all...)
			return err
		case history.Loose:
			rows = append(rows, part...)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// twinServer is a server as its history sees it: a log that goes on, snapshots of the
// state, and a disk that may be turned off at any write.
type twinServer struct {
	disk     *frailDisk
	store    *Store
	applied  uint64
	snapshot uint64 // of the state: entries up to it are forgotten by the log
}

func openTwin(t *rapid.T, disk *frailDisk) *Store {
	s, err := open(Config{Dir: "/", Keep: 100 * 365 * 24 * time.Hour, SizeMax: 1 << 40, Now: time.Now, Log: slog.New(slog.DiscardHandler)}, disk)
	if err != nil {
		t.Fatal(err)
	}
	s.most = 40
	return s
}

// TestNoneTwiceNoneLost runs three servers over one log, turns them off at any change of
// their disks, fills disks, lets servers be away until they come back by a snapshot, damages
// files, and has them repair themselves from each other: at the end each has the same rows.
func TestNoneTwiceNoneLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		chance := func(n int) int {
			if n <= 1 {
				return 0
			}
			return rapid.IntRange(0, n-1).Draw(t, "chance")
		}
		end := uint64(0)
		servers := make([]*twinServer, 3)
		for i := range servers {
			disk := newFrailDisk(chance)
			servers[i] = &twinServer{disk: disk, store: openTwin(t, disk)}
		}
		start := func(s *twinServer) {
			s.disk.crash()
			s.store = openTwin(t, s.disk)
			s.applied = s.snapshot
			if s.snapshot > 0 {
				s.store.Restored(s.snapshot)
			}
		}
		apply := func(s *twinServer, to uint64) {
			for s.applied < to {
				first, last := s.applied+1, min(to, s.applied+1+uint64(chance(3)))
				var rows []structs.HistoryRow
				for index := first; index <= last; index++ {
					rows = append(rows, madeUp(index)...)
				}
				s.store.Add(last, rows)
				s.applied = last
			}
		}
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			s := servers[chance(len(servers))]
			switch chance(8) {
			case 0, 1:
				end += uint64(1 + chance(10))
			case 2, 3:
				apply(s, end)
			case 4: // it is killed at some change of its disk
				s.disk.until = chance(12)
				apply(s, end)
				if s.store.Sync() == nil {
					s.snapshot = s.applied
				}
				start(s)
			case 5:
				s.disk.full = chance(2) == 0
				apply(s, end)
				if s.store.Sync() == nil {
					s.snapshot = s.applied
				}
				s.disk.full = false
			case 6: // it was away, and comes back by another one's snapshot
				if other := servers[chance(len(servers))]; other.snapshot > s.applied {
					s.store.Restored(other.snapshot)
					s.applied, s.snapshot = other.snapshot, other.snapshot
				}
			case 7: // a byte of a segment changes, and somebody reads
				other := servers[1+chance(2)]
				if s = servers[0]; other.applied < s.applied || len(other.store.Gaps()) > 0 {
					break // nobody else has what would be lost
				}
				for _, name := range slices.Sorted(maps.Keys(s.disk.names)) {
					if node := s.disk.names[name]; filepath.Ext(name) == segmentSuffix {
						node.data[chance(len(node.data))] ^= 1
						node.synced = slices.Clone(node.data)
						break
					}
				}
				told(t, s.store)
			}
		}
		var want []structs.HistoryRow
		for index := uint64(1); index <= end; index++ {
			want = append(want, madeUp(index)...)
		}
		for _, s := range servers {
			apply(s, end)
			if err := s.store.Sync(); err != nil {
				t.Fatal(err)
			}
		}
		told(t, servers[0].store) // notices what is damaged
		repair(t, servers)
		for i, s := range servers {
			got := told(t, s.store)
			if gaps := s.store.Gaps(); len(gaps) > 0 {
				t.Fatalf("server %d lacks %v", i, gaps)
			}
			if !slices.EqualFunc(got, want, same) {
				t.Fatalf("server %d has %d rows, the log made %d", i, len(got), len(want))
			}
			start(s)
			s.store.Restored(s.snapshot)
			apply(s, end)
			if got := told(t, s.store); !slices.EqualFunc(got, want, same) {
				t.Fatalf("server %d has %d rows after a start, the log made %d", i, len(got), len(want))
			}
		}
	})
}

func same(x, y structs.HistoryRow) bool {
	return x.Index == y.Index && x.Ordinal == y.Ordinal && x.JobID == y.JobID && x.End == y.End && x.Infra == y.Infra &&
		structs.CardsText(x.Cards) == structs.CardsText(y.Cards) && slices.Equal(x.Tags, y.Tags)
}

// repair has servers close their gaps from each other.
func repair(t *rapid.T, servers []*twinServer) {
	for range 20 {
		for _, s := range servers {
			for _, gap := range s.store.Gaps() {
				for _, other := range servers {
					part, err := other.store.Part(context.Background(), gap.After, gap.Until)
					if err != nil {
						t.Fatal(err)
					}
					if part.Until > part.After {
						if err := s.store.Fill(part.After, part.Until, part.Rows); err != nil {
							t.Fatal(err)
						}
						break
					}
				}
			}
		}
	}
}

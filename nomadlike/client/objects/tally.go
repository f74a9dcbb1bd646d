package objects

import (
	"context"
	"io/fs"
	"os"
	"strings"
	"sync"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

// tally is what a node remembers of such an upload between requests. Its file system is
// the judge of the rest.
type tally struct {
	info fs.FileInfo // of up-ID: another one by that name has another tally

	sync.Mutex
	loaded bool
	count  int
	bytes  int64
	folds  bool              // the file system takes capitals for small letters
	folded map[string]string // where it does: names in small letters
	dirs   map[string]bool   // that are on the disk
	busy   map[string]bool   // files that somebody sends
	closed bool              // a manifest is being made
}

// tallyOf is what is remembered of the upload in a directory.
func (s singles) tallyOf(key string, info fs.FileInfo) *tally {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.mu.tallies[key]; t != nil && os.SameFile(t.info, info) {
		return t
	}
	for key, t := range s.mu.tallies {
		if len(s.mu.tallies) >= uploadsOpen && t.idle() {
			delete(s.mu.tallies, key)
		}
	}
	t := &tally{info: info, dirs: map[string]bool{}, busy: map[string]bool{}, folded: map[string]string{}}
	s.mu.tallies[key] = t
	return t
}

func (t *tally) idle() bool {
	if !t.TryLock() {
		return false
	}
	defer t.Unlock()
	return len(t.busy) == 0 && !t.closed
}

// load counts what is there, once.
func (u *filesUpload) load() error {
	u.tally.Lock()
	defer u.tally.Unlock()
	if u.tally.loaded {
		return nil
	}
	var err error
	if u.tally.folds, err = foldsCase(u.dir); err != nil {
		return err
	}
	err = u.each(func(_ string, p *part) error {
		u.tally.add(p)
		return nil
	})
	u.tally.loaded = err == nil
	return err
}

func (t *tally) add(p *part) {
	if !p.Dir {
		t.count++
	}
	t.bytes += p.Size
	if t.folds {
		t.folded[strings.ToLower(p.Path)] = p.Path
	}
}

func (t *tally) remove(p *part) {
	if !p.Dir {
		t.count--
	}
	t.bytes -= p.Size
	delete(t.folded, strings.ToLower(p.Path))
}

// enter takes a file for one sender; the function that it returns gives it back.
func (u *filesUpload) enter(id, name string) (func(), error) {
	t := u.tally
	t.Lock()
	defer t.Unlock()
	_, err := u.dir.Lstat(manifestFile)
	switch {
	case t.closed, err == nil:
		return nil, structs.NewError(structs.CodeConflict, "objects.files_closed")
	case t.busy[id]:
		return nil, structs.NewError(structs.CodeUnavailable, "objects.file_busy", "path", name)
	}
	t.busy[id] = true
	return func() {
		t.Lock()
		defer t.Unlock()
		delete(t.busy, id)
	}, nil
}

// reserve counts a new file, within what was announced.
func (u *filesUpload) reserve(p *part, ask *structs.DataAsk) error {
	t := u.tally
	t.Lock()
	defer t.Unlock()
	if other, taken := t.folded[strings.ToLower(p.Path)]; taken {
		return structs.NewError(structs.CodeInvalid, "objects.twins", "name", other, "other", p.Path, "storage", u.door.place.Storage)
	}
	if !p.Dir && t.count+1 > ask.Files || t.bytes+p.Size > ask.Bytes {
		return structs.NewError(structs.CodeTooLarge, "objects.over_announced", "path", p.Path, "files", ask.Files, "size", structs.FormatSize(ask.Bytes))
	}
	if t.count >= tree.EntriesMax {
		return structs.NewError(structs.CodeTooLarge, "tree.too_many", "max", tree.EntriesMax)
	}
	t.add(p)
	return nil
}

// shut keeps senders away while a manifest is made.
func (u *filesUpload) shut(ctx context.Context) (func(), error) {
	t := u.tally
	t.Lock()
	defer t.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if t.closed || len(t.busy) > 0 {
		return nil, structs.NewError(structs.CodeUnavailable, "objects.files_busy", "count", max(len(t.busy), 1))
	}
	t.closed = true
	return func() {
		t.Lock()
		defer t.Unlock()
		t.closed = false
	}, nil
}

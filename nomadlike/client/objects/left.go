package objects

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/words"
	"nomadlike/nomadlike/client/workspace"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

// Uploads that nobody goes on with are found by walking the directories of a storage in
// which versions lie. Only servers know which of them live, so a sweep has two steps:
//
//	left    lists uploads to which nothing has come for a while
//	clear   removes one of them, of which a server has seen that its log has it no more
//
// A version that was made of an upload, and never entered the log, goes with it. The
// version goes first and the upload last: whatever is cut off is found again.
const (
	leftIdle = time.Hour // without anything that came, an upload is not listed before
	leftMax  = 1_000     // uploads of one answer
)

// leftAt is the directory in which an upload lies that a sweep has found.
type leftAt struct{ root, below string }

// leavings is the part of a store that looks for what uploads have left.
type leavings struct{ *Store }

// left lists the uploads of one kind on a storage that nobody goes on with, and removes
// what a removal has left that was cut off.
func (s leavings) left(ctx context.Context, p *structs.DataPlace, done *atomic.Int64) (*structs.DataReply, error) {
	storage := workspace.NamedStorage(s.config.Storages, p.Storage, p.Kind)
	if storage == nil {
		return nil, structs.NewError(structs.CodeUnavailable, "client.storage_missing", "storage", p.Storage, "kind", p.Kind)
	}
	reply, found := &structs.DataReply{Done: true}, make(map[string]leftAt)
	if storage.ReadOnly {
		return reply, nil
	}
	err := walkParents(ctx, storage.ParentLevels(p.Kind), func(at leftAt) {
		done.Add(1)
		for _, id := range s.leftIn(at) {
			if len(reply.List) < leftMax {
				found[id] = at
				reply.List = append(reply.List, structs.DataFile{ID: id})
			}
		}
	})
	if err != nil {
		return nil, structs.NewError(structs.CodeUnavailable, "client.storage_away", "storage", p.Storage, "cause", words.Cause(err)).Because(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.left[p.Kind+"/"+p.Storage] = found
	return reply, nil
}

// leftIn lists the uploads in one directory to which nothing has come for a while.
func (s leavings) leftIn(at leftAt) (ids []string) {
	d, err := openLeft(at)
	if err != nil {
		return nil // there are none, or it is not ours
	}
	defer d.close()
	names, err := namesIn(d.own)
	if err != nil {
		return nil
	}
	now := s.config.Now()
	for _, name := range names {
		kind, id, _ := strings.Cut(name, "-")
		switch {
		case kind+"-" != uploadPrefix && kind+"-" != donePrefix && kind+"-" != gonePrefix, !quiet(d, name, now):
		case kind+"-" == gonePrefix:
			if err := removeTree(d.own, name); err != nil {
				s.config.Log.Warn("what is left of a removal was not removed", logkey.Path, d.place.Path, logkey.Error, err)
			}
		case uploadID.MatchString(id) && !slices.Contains(ids, id) && quiet(d, uploadPrefix+id, now):
			ids = append(ids, id)
		}
	}
	return ids
}

// quiet reports whether nothing has come to what has a name for a while.
func quiet(d *door, name string, now time.Time) bool {
	last := lastChange(d, name)
	return last.IsZero() || now.Sub(last) >= leftIdle
}

func namesIn(root *os.Root) ([]string, error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(-1)
	slices.Sort(names)
	return names, errors.Join(err, dir.Close())
}

// openLeft opens a directory in which versions lie, without a version in mind.
func openLeft(at leftAt) (*door, error) {
	d := &door{version: version{place: workspace.Place{Root: at.root, Path: path.Join(at.root, at.below)}}}
	var err error
	if d.parent, err = descend(at.root, at.below, false); err != nil {
		return nil, err
	}
	if d.own, err = openOwn(d.parent, false); err != nil {
		_ = d.parent.Close() // it was opened to look into
		return nil, err
	}
	return d, nil
}

// walkParents visits every directory in which versions may lie. One that cannot be read is
// passed over, but for those that all the others lie in.
func walkParents(ctx context.Context, levels []workspace.Level, visit func(leftAt)) error {
	root := "/"
	for len(levels) > 0 && levels[0].Name != "" && !levels[0].Below {
		root, levels = path.Join(root, levels[0].Name), levels[1:]
	}
	if _, err := os.Stat(root); err != nil {
		return err
	}
	return walkLevels(ctx, leftAt{root, "."}, levels, visit)
}

func walkLevels(ctx context.Context, at leftAt, levels []workspace.Level, visit func(leftAt)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(levels) == 0 {
		visit(at)
		return nil
	}
	level := &levels[0]
	for _, name := range dirsAt(at, level) {
		next := leftAt{path.Join(at.root, name), "."}
		if level.Below {
			next = leftAt{at.root, path.Join(at.below, name)}
		}
		if err := walkLevels(ctx, next, levels[1:], visit); err != nil {
			return err
		}
	}
	return nil
}

// dirsAt lists the directories that fit a level.
func dirsAt(at leftAt, level *workspace.Level) (names []string) {
	if level.Name != "" {
		return []string{level.Name}
	}
	dir, err := descend(at.root, at.below, false)
	if err != nil {
		return nil
	}
	defer dir.Close()
	const atOnce = 1_000
	for {
		entries, err := dir.ReadDir(atOnce)
		for _, entry := range entries {
			isDir := entry.IsDir()
			if !isDir && !level.Below && entry.Type()&fs.ModeSymlink != 0 { // an administrator's
				info, err := os.Stat(path.Join(at.root, entry.Name()))
				isDir = err == nil && info.IsDir()
			}
			if isDir && entry.Name() != ownDir && level.Fits(entry.Name()) {
				names = append(names, entry.Name())
			}
		}
		if err != nil || len(entries) == 0 {
			if err != nil && !errors.Is(err, io.EOF) {
				return nil
			}
			return names
		}
	}
}

// clear removes an upload that the log has no more, and with End also what was made of it:
// it has never been a version there. Of a version that is named the upload is removed as it
// is; one that a sweep has found only when nothing has come for it meanwhile. It is asked
// until it is done.
func (s leavings) clear(ctx context.Context, ask *structs.DataAsk) (*structs.DataReply, error) {
	id := ask.Upload
	if !uploadID.MatchString(id) {
		return nil, unknownUpload(id)
	}
	if !s.endWorks(ctx, id) {
		return &structs.DataReply{}, nil
	}
	d, err := s.doorOfLeft(ask)
	if structs.CodeOf(err) == structs.CodeNotFound || d == nil && err == nil {
		return &structs.DataReply{Done: true}, nil
	}
	if err != nil {
		return nil, err
	}
	defer d.close()
	up := uploadPrefix + id
	if ask.Place.Version == 0 && !quiet(d, up, s.config.Now()) {
		return &structs.DataReply{Done: true}, nil
	}
	s.mu.Lock()
	delete(s.mu.tallies, d.place.Path+" "+id)
	s.mu.Unlock()
	if dir, err := d.own.OpenRoot(up); err == nil {
		defer dir.Close()
		if _, err := dir.Lstat(lockFile); err == nil { // of nodes that share the storage
			unlock, err := lockOf(dir)
			if err != nil {
				return nil, d.failed(err)
			}
			defer unlock()
		}
	}
	if leaf, err := readSmall(d.own, donePrefix+id, partMax); err == nil && d.leaf == "" && path.Base(string(leaf)) == string(leaf) && string(leaf) != ".." {
		d.leaf = string(leaf)
	}
	if ask.End {
		if err := d.removeMade(id); err != nil {
			return nil, d.failed(err)
		}
	}
	gone := gonePrefix + up
	if err := removeTree(d.own, gone); err != nil {
		return nil, d.failed(err)
	}
	if err := d.own.Rename(up, gone); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, d.failed(err)
	}
	if err := errors.Join(removeTree(d.own, gone), d.unmark(id)); err != nil {
		return nil, d.failed(err)
	}
	return &structs.DataReply{Done: true}, nil
}

// doorOfLeft opens where an upload lies: beside the version that the question names, or
// where a sweep has found it; nil where none has.
func (s leavings) doorOfLeft(ask *structs.DataAsk) (*door, error) {
	p := &ask.Place
	if p.Version > 0 {
		v, err := s.versionOf(p, p.Version)
		if err != nil {
			return nil, err
		}
		return s.open(v, false)
	}
	s.mu.Lock()
	at, found := s.mu.left[p.Kind+"/"+p.Storage][ask.Upload]
	s.mu.Unlock()
	if !found {
		return nil, nil // nothing is to be done
	}
	d, err := openLeft(at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // likewise
	}
	if err != nil {
		return nil, structs.NewError(structs.CodeUnavailable, "objects.failed", "storage", p.Storage, "path", path.Join(at.root, at.below), "cause", words.Cause(err)).Because(err)
	}
	d.place.Storage = p.Storage
	return d, nil
}

// noteMade says, before a version has its name, of which upload it is made.
func (d *door) noteMade(id string, digest tree.Digest) error {
	return errors.Join(place(d.own, donePrefix+id, []byte(d.leaf)), place(d.own, d.name+madeSuffix, []byte(id+" "+string(digest))))
}

// unmark forgets that an upload is a version on the disk.
func (d *door) unmark(id string) error {
	if err := d.own.Remove(donePrefix + id); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// removeMade removes what was made of an upload, and its list of files.
func (d *door) removeMade(id string) error {
	names, err := namesIn(d.own)
	if err != nil {
		return err
	}
	for _, made := range names {
		name, isMade := strings.CutSuffix(made, madeSuffix)
		if !isMade || d.name != "" && d.name != name {
			continue
		}
		data, err := readSmall(d.own, made, partMax)
		from, digest, _ := strings.Cut(string(data), " ")
		if err != nil || from != id {
			continue
		}
		list, err := readSmall(d.own, name, tree.ManifestSizeMax)
		if errors.Is(err, fs.ErrNotExist) || err == nil && string(tree.DigestOf(list)) != digest { // its making did not come that far
			if err := d.own.Remove(made); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		of := *d
		if of.name = name; of.leaf == "" {
			continue
		}
		return of.removeVersion()
	}
	return nil
}

// endWorks ends what goes on for an upload, and reports whether it has ended.
func (s leavings) endWorks(ctx context.Context, id string) bool {
	s.mu.Lock()
	var going []*work
	for key, w := range s.mu.works {
		if w.upload == id {
			w.cancel()
			going = append(going, w)
			delete(s.mu.works, key) // who begins it again is not told of this end
		}
	}
	s.mu.ending = append(s.mu.ending, going...)
	going = slices.Clone(s.mu.ending)
	s.mu.Unlock()
	timer := time.NewTimer(workWait)
	defer timer.Stop()
	for _, w := range going {
		if w.upload != id {
			continue
		}
		select {
		case <-w.ended:
		case <-timer.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.ending = slices.DeleteFunc(s.mu.ending, func(w *work) bool {
		select {
		case <-w.ended:
			return true
		default:
			return false
		}
	})
	return true
}

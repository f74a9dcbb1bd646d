package objects

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"nomadlike/nomadlike/client/words"
	"nomadlike/nomadlike/client/workspace"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

const (
	sealedFile = "sealed" // in an upload: the digest of the version that was made of it
	lockFile   = "lock"   // likewise: nodes that share the storage take turns
)

// take makes a version of what a job wrote, and is asked until it says that it is done:
// after any error, and by another server, it begins again or says what came of it.
//
//	1 up-ID/tree-NODE   each file as a clone, a name of the same file, or a copy
//	2 scan              digests of what lies there, with what was not to be there removed
//	3 up-ID/sealed      the digest, on the disk
//	4 NAME.N.tree       the manifest
//	5 PARENT/N          the name
//
// What is killed before 3 begins anew; after it the digest tells whether what has the
// version's name is it.
func take(ctx context.Context, s *Store, ask *structs.DataAsk, done, all *atomic.Int64) (*structs.DataReply, error) {
	if ask.From == nil {
		return nil, structs.NewError(structs.CodeInvalid, "objects.question", "what", clip(ask.What))
	}
	v, err := s.versionOf(&ask.Place, ask.Place.Version)
	if err != nil {
		return nil, err
	}
	d, err := s.open(v, true)
	if err != nil {
		return nil, err
	}
	defer d.close()
	d.sweep(s.config.Now(), ask.Upload, s.config.Log)
	if err := d.own.Mkdir(uploadPrefix+ask.Upload, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, v.failed(err)
	}
	dir, err := d.own.OpenRoot(uploadPrefix + ask.Upload)
	if err != nil {
		return nil, v.failed(err)
	}
	defer dir.Close()
	unlock, err := lockOf(dir)
	if err != nil {
		return nil, v.failed(err)
	}
	defer unlock()
	if reply, err := d.taken(dir); reply != nil || err != nil {
		return reply, err
	}
	source, name, err := outputOf(s.config.Storages, ask.From)
	if err != nil {
		return nil, err
	}
	defer source.Close()
	tk := &taking{store: s, door: d, dir: dir, id: ask.Upload, ctx: ctx, done: done, all: all, leaf: treeDir + "-" + s.config.NodeID, share: ask.From.Ended}
	reply, err := tk.make(source, name)
	if err != nil {
		return nil, v.failed(err)
	}
	return reply, nil
}

// lockOf keeps other nodes, which share the storage, from making the same version at
// once. Where the file system has no locks there is nobody to wait for.
func lockOf(dir *os.Root) (unlock func(), err error) {
	file, err := dir.OpenFile(lockFile, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		_ = file.Close()
		return nil, structs.NewError(structs.CodeUnavailable, "objects.taking")
	}
	return func() { _ = file.Close() }, nil // closing gives the lock back
}

// outputOf opens what a job wrote: a directory, or the one file name of it.
func outputOf(storages []workspace.Storage, from *structs.DataOutput) (root *os.Root, name string, err error) {
	places, err := workspace.Plan(storages, &structs.Job{
		Project: from.Project, User: from.User, Output: from.Output, OutputStorage: from.Storage,
	}, 0)
	if err != nil {
		return nil, "", err
	}
	place := &places[0]
	if !structs.BelowPath(from.Output) || from.Path != "" && !structs.BelowPath(from.Path) {
		return nil, "", structs.NewError(structs.CodeInvalid, "objects.place", "storage", place.Storage, "path", clip(from.Output))
	}
	if info, err := os.Stat(place.Given); err != nil || !info.IsDir() {
		return nil, "", structs.NewError(structs.CodeUnavailable, "client.storage_away", "storage", place.Storage, "cause", words.Cause(err))
	}
	wanted := path.Join(place.Path, from.Path)
	failed := func(err error) error {
		code := structs.CodeUnavailable
		if missing(err) || errors.Is(err, syscall.ELOOP) || strings.Contains(err.Error(), "escapes") {
			code = structs.CodeNotFound
		}
		return structs.NewError(code, "objects.output_gone", "storage", place.Storage, "path", wanted, "cause", words.Cause(err)).Because(err)
	}
	below, err := filepath.Rel(place.Root, wanted)
	if err != nil {
		return nil, "", failed(err)
	}
	top, err := os.OpenRoot(place.Root)
	if err != nil {
		return nil, "", failed(err)
	}
	defer top.Close()
	info, err := top.Lstat(below)
	if err == nil && info.Mode().IsRegular() {
		name, below = path.Base(below), path.Dir(below)
	}
	if err == nil {
		root, err = top.OpenRoot(below)
	}
	if err != nil {
		return nil, "", failed(err)
	}
	return root, name, nil
}

// taken is what is to be said of a version that was made already; nil: it was not.
func (d *door) taken(dir *os.Root) (*structs.DataReply, error) {
	sealed, err := readSmall(dir, sealedFile, 1<<10)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // not made
	}
	if err != nil {
		return nil, d.failed(err)
	}
	there, err := d.there()
	if err != nil || !there {
		return nil, err
	}
	data, err := readSmall(d.own, d.name, tree.ManifestSizeMax)
	if errors.Is(err, fs.ErrNotExist) || err == nil && string(tree.DigestOf(data)) != string(sealed) {
		return nil, nil // what is there is another's
	}
	if err != nil {
		return nil, d.failed(err)
	}
	m, err := tree.Decode(data)
	if err != nil {
		return nil, err
	}
	if version, err := stepInto(d.parent, d.leaf, false, 0); err == nil { // it had to be written to for its new name
		if err := errors.Join(version.Chmod(0o555), version.Close()); err != nil {
			return nil, d.failed(err)
		}
	}
	return &structs.DataReply{Done: true, Files: m.Files(), Bytes: m.Bytes(), All: m.Bytes(), Digest: string(sealed)}, nil
}

// make brings everything together, digests it and gives it its name.
func (t *taking) make(source *os.Root, name string) (*structs.DataReply, error) {
	if err := removeTree(t.dir, t.leaf); err != nil {
		return nil, err
	}
	if err := t.dir.Mkdir(t.leaf, 0o700); err != nil {
		return nil, err
	}
	to, err := t.dir.OpenRoot(t.leaf)
	if err != nil {
		return nil, err
	}
	defer to.Close()
	if err := t.gather(source, to, name); err != nil {
		return nil, err
	}
	m, err := t.digest(to)
	if err != nil {
		return nil, err
	}
	for i := len(m.Entries) - 1; i >= 0; i-- {
		if entry := &m.Entries[i]; entry.Kind == tree.KindDir {
			if err := to.Chmod(entry.Path, os.FileMode(entry.Mode)); err != nil {
				return nil, err
			}
		}
	}
	if err := syncAll(to); err != nil {
		return nil, err
	}
	return t.seal(&m)
}

// digest finds the digests of what was gathered, and removes what an ignore file of it
// leaves out.
func (t *taking) digest(to *os.Root) (tree.Manifest, error) {
	at, err := to.Open(".")
	if err != nil {
		return tree.Manifest{}, err
	}
	defer at.Close()
	m, left, err := tree.Scan(t.ctx, fmt.Sprintf("/proc/self/fd/%d", at.Fd()), tree.Options{Data: true, Progress: func(read, all int64) {
		t.done.Store(read)
		t.all.Store(all)
	}})
	if err != nil {
		return tree.Manifest{}, err
	}
	for i := range left {
		if err := removeTree(to, left[i].Path); err != nil {
			return tree.Manifest{}, err
		}
	}
	if m.Files() == 0 {
		return tree.Manifest{}, structs.NewError(structs.CodeConflict, "objects.take_empty")
	}
	return m, nil
}

// seal sets the name of what is whole.
func (t *taking) seal(m *tree.Manifest) (*structs.DataReply, error) {
	data := m.Encode()
	digest := tree.DigestOf(data)
	if err := place(t.dir, sealedFile, []byte(digest)); err != nil {
		return nil, err
	}
	there, err := t.door.there()
	if err != nil {
		return nil, err
	}
	if there {
		if _, err := t.door.own.Lstat(t.door.name); err != nil {
			return nil, t.inTheWay()
		}
		if err := t.door.setAside(); err != nil { // of an object that is gone
			return nil, err
		}
	}
	if err := t.door.noteMade(t.id, digest); err != nil {
		return nil, err
	}
	if err := place(t.door.own, t.door.name, data); err != nil {
		return nil, err
	}
	from, err := t.dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer from.Close()
	if err := rename(from, t.leaf, t.door.parent, t.door.leaf); err != nil {
		if errors.Is(err, syscall.EEXIST) {
			return nil, t.inTheWay()
		}
		return nil, err
	}
	reply, err := t.door.taken(t.dir)
	if err == nil && reply == nil {
		err = t.inTheWay()
	}
	if err != nil {
		return nil, err
	}
	reply.Copied = t.copied
	return reply, nil
}

func (t *taking) inTheWay() error {
	return structs.NewError(structs.CodeConflict, "objects.in_the_way", "storage", t.door.place.Storage, "path", t.door.place.Path)
}

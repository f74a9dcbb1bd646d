package objects

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"sync/atomic"
	"syscall"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

// What a finish brings to the disk before it says so in the journal.
const (
	batchFiles = 2_000
	batchBytes = 256 << 20
)

// finisher makes a version of an upload.
type finisher struct {
	*upload
	ctx     context.Context // of this one run
	done    *atomic.Int64   // bytes looked at
	buffer  []byte
	batch   []int // entries that are whole, and not on the disk yet
	bytes   int64
	lacking int // chunks that have to be sent
}

// finish makes a version of what was sent. It may be asked again after any error and at
// any time, and goes on where it was.
func (s *Store) finish(ctx context.Context, p *structs.DataPlace, id string, done, all *atomic.Int64) (*structs.DataReply, error) {
	v, err := s.versionOf(p, p.Version)
	if err != nil {
		return nil, err
	}
	u, err := s.upload(ctx, p, id)
	if structs.CodeOf(err) == structs.CodeNotFound {
		return s.finished(v, id) // it may have been cut off after its end
	}
	if err != nil {
		return nil, err
	}
	defer s.release(u)
	all.Store(u.manifest.Bytes())
	f := &finisher{upload: u, ctx: ctx, done: done, buffer: make([]byte, tree.ChunkSizeMax)}
	if err := f.fillAll(); err != nil {
		return nil, v.failed(err)
	}
	if f.lacking > 0 {
		return nil, structs.NewError(structs.CodeConflict, "code.incomplete", "missing", f.lacking)
	}
	if err := f.seal(); err != nil {
		return nil, v.failed(err)
	}
	return s.finished(v, id)
}

// finished returns what is to be said of a version that has its name, and removes what
// is left of its upload, but for its mark: that stays until the log has the version.
func (s *Store) finished(v version, id string) (*structs.DataReply, error) {
	d, err := s.open(v, false)
	if structs.CodeOf(err) == structs.CodeNotFound {
		return nil, unknownUpload(id)
	}
	if err != nil {
		return nil, err
	}
	defer d.close()
	there, err := d.there()
	if err != nil {
		return nil, v.failed(err)
	}
	data, err := readSmall(d.own, v.name, tree.ManifestSizeMax)
	if errors.Is(err, fs.ErrNotExist) || err == nil && (!there || tree.DigestOf(data) != v.digest) {
		return nil, unknownUpload(id)
	}
	if err != nil {
		return nil, v.failed(err)
	}
	m, err := tree.Decode(data)
	if err != nil {
		return nil, err
	}
	if dir, err := stepInto(d.parent, d.leaf, false, 0); err == nil { // it had to be written to for its new name
		err = errors.Join(dir.Chmod(0o555), dir.Close())
		if err != nil {
			return nil, v.failed(err)
		}
	}
	if err := removeTree(d.own, uploadPrefix+id); err != nil {
		return nil, v.failed(err)
	}
	return &structs.DataReply{Done: true, Files: m.Files(), Bytes: m.Bytes(), All: m.Bytes()}, nil
}

// fillAll makes all files whole, as far as their bytes are here.
func (f *finisher) fillAll() error {
	for i := range f.manifest.Entries {
		if err := f.ctx.Err(); err != nil {
			return err
		}
		entry := &f.manifest.Entries[i]
		f.upload.mu.Lock()
		filled := f.upload.mu.filled[i]
		f.upload.mu.Unlock()
		if filled || entry.Kind != tree.KindFile {
			f.done.Add(entry.Size())
			continue
		}
		if err := f.fill(i, entry); err != nil {
			return err
		}
		if len(f.batch) >= batchFiles || f.bytes >= batchBytes {
			if err := f.flush(); err != nil {
				return err
			}
		}
	}
	return f.flush()
}

// flush has whole files reach the disk, and says so in the journal.
func (f *finisher) flush() error {
	if len(f.batch) == 0 {
		return nil
	}
	if err := syncAll(f.tree); err != nil {
		return err
	}
	batch := f.batch
	f.batch, f.bytes = nil, 0
	return f.note(recordFile, batch)
}

// fill makes one file whole.
func (f *finisher) fill(i int, entry *tree.Entry) error {
	before := f.done.Load()
	if from, there := f.base.same(entry); there && !f.begun(i, entry) {
		linked, err := f.link(entry, from, f.buffer, func(n int64) { f.done.Add(n) })
		if err != nil {
			return err
		}
		if linked {
			f.batch = append(f.batch, i)
			return nil
		}
		f.done.Store(before)
	}
	file, err := writable(f.tree, entry.Path)
	if err != nil {
		return err
	}
	lacking, err := f.copyInto(file, i, entry)
	if err == nil && lacking == 0 {
		if err = file.Truncate(entry.Size()); err == nil {
			err = file.Chmod(os.FileMode(entry.Mode))
		}
		f.batch, f.bytes = append(f.batch, i), f.bytes+entry.Size()
	}
	f.lacking += lacking
	f.done.Store(before + entry.Size())
	return errors.Join(err, file.Close())
}

// begun reports whether chunks have come whose first spots are in a file.
func (f *finisher) begun(i int, entry *tree.Entry) bool {
	f.upload.mu.Lock()
	defer f.upload.mu.Unlock()
	offset := int64(0)
	for _, chunk := range entry.Chunks {
		if c := f.index[chunk.Digest]; f.upload.mu.have[c] && f.spots[c] == (spot{i, offset}) {
			return true
		}
		offset += chunk.Size
	}
	return false
}

// copyInto brings to a file what was not sent for it: from where the same chunk came to,
// or from the earlier version. It reports how many chunks have to be sent.
func (f *finisher) copyInto(file *os.File, i int, entry *tree.Entry) (lacking int, err error) {
	var from openSource
	defer from.close()
	offset := int64(0)
	for _, chunk := range entry.Chunks {
		if err := f.ctx.Err(); err != nil {
			return lacking, err
		}
		c := f.index[chunk.Digest]
		at := spot{i, offset}
		f.upload.mu.Lock()
		have := f.upload.mu.have[c]
		f.upload.mu.Unlock()
		offset += chunk.Size
		f.done.Add(chunk.Size)
		if have && f.spots[c] == at {
			continue
		}
		var data []byte
		var err error
		if have {
			data, err = from.read(f.tree, f.manifest.Entries[f.spots[c].entry].Path, f.spots[c].offset, chunk, f.buffer)
			if err != nil {
				f.batch = slices.DeleteFunc(f.batch, func(whole int) bool { return whole == f.spots[c].entry })
				if err := f.lost(c); err != nil {
					return lacking, err
				}
			}
		}
		if (!have || err != nil) && f.base.has(chunk.Digest) {
			there, _ := f.base.spot(chunk.Digest)
			data, err = from.read(f.base.root, f.base.manifest.Entries[there.entry].Path, there.offset, chunk, f.buffer)
			if err != nil {
				f.base.forget(chunk.Digest)
			}
			have = true
		}
		if !have || err != nil {
			lacking++
			continue
		}
		if _, err := file.WriteAt(data, at.offset); err != nil {
			return lacking, err
		}
	}
	return lacking, nil
}

// openSource keeps the file open that was read last.
type openSource struct {
	root *os.Root
	name string
	file *os.File
}

func (o *openSource) read(root *os.Root, name string, offset int64, chunk tree.Chunk, buffer []byte) ([]byte, error) {
	if o.file == nil || o.root != root || o.name != name {
		o.close()
		file, _, err := openRegular(root, name)
		if err != nil {
			return nil, err
		}
		o.root, o.name, o.file = root, name, file
	}
	return readChunk(o.file, offset, chunk, buffer)
}

func (o *openSource) close() {
	if o.file != nil {
		_ = o.file.Close() // it was read
		o.file = nil
	}
}

// seal makes a version of a tree whose files are whole: with its links, its permissions
// and its name.
func (f *finisher) seal() error {
	for i := range f.manifest.Entries {
		entry := &f.manifest.Entries[i]
		if entry.Kind != tree.KindLink {
			continue
		}
		if err := f.tree.Symlink(entry.Target, entry.Path); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	for i := len(f.manifest.Entries) - 1; i >= 0; i-- {
		if entry := &f.manifest.Entries[i]; entry.Kind == tree.KindDir {
			if err := f.tree.Chmod(entry.Path, os.FileMode(entry.Mode)); err != nil {
				return err
			}
		}
	}
	if err := syncAll(f.tree); err != nil {
		return err
	}
	if err := f.makeWay(); err != nil {
		return err
	}
	if err := f.door.noteMade(f.id, f.door.digest); err != nil {
		return err
	}
	if err := place(f.door.own, f.door.name, f.manifest.Encode()); err != nil {
		return err
	}
	from, err := f.dir.Open(".")
	if err != nil {
		return err
	}
	defer from.Close()
	if err := rename(from, treeDir, f.door.parent, f.door.leaf); err != nil {
		if errors.Is(err, syscall.EEXIST) {
			return f.inTheWay()
		}
		return err
	}
	return nil
}

func (f *finisher) inTheWay() error {
	return structs.NewError(structs.CodeConflict, "objects.in_the_way", "storage", f.door.place.Storage, "path", f.door.place.Path)
}

// makeWay moves aside what has the version's name and was made for a version of that
// number: of an object that is gone. What somebody else has put there stays.
func (f *finisher) makeWay() error {
	there, err := f.door.there()
	if err != nil || !there {
		return err
	}
	if _, err := f.door.own.Lstat(f.door.name); err != nil {
		return f.inTheWay()
	}
	return f.door.setAside()
}

// setAside takes a version's name away from its directory, and removes that.
func (d *door) setAside() error {
	own, err := d.own.Open(".")
	if err != nil {
		return err
	}
	defer own.Close()
	name := gonePrefix + path.Base(d.name)
	if err := removeTree(d.own, name); err != nil {
		return err
	}
	if dir, err := stepInto(d.parent, d.leaf, false, 0); err == nil {
		err = errors.Join(dir.Chmod(0o755), dir.Close()) // or else it cannot be moved
		if err != nil {
			return err
		}
	}
	if err := rename(d.parent, d.leaf, own, name); err != nil {
		return err
	}
	return removeTree(d.own, name)
}

func ours(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// links is how many names a file has.
func links(info os.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && info.Mode().IsRegular() {
		return uint64(stat.Nlink)
	}
	return 1
}

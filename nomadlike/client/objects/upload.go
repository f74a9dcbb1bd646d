package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

// spot is where a chunk begins: in which entry of a manifest, at which byte.
type spot struct {
	entry  int
	offset int64
}

// upload is a version that is being sent: what is to come, and what has come. All of it
// can be read again from the disk.
type upload struct {
	door     *door
	id       string
	dir      *os.Root // up-ID
	tree     *os.Root // the version to be, in it
	info     fs.FileInfo
	manifest tree.Manifest
	chunks   []tree.Chunk
	spots    []spot              // of each chunk the first
	index    map[tree.Digest]int // of a chunk in chunks
	base     *base               // nil: there is no earlier version

	loaded  chan struct{} // closed when the disk was read
	err     error         // of that
	users   int           // of Store.mu
	dropped bool          // of Store.mu: the last of its users closes it

	mu struct {
		sync.Mutex
		have    []bool // chunks that are at their first spot, on the disk
		filled  []bool // entries that are whole, on the disk
		journal *os.File
	}
}

func (u *upload) close() {
	if u.mu.journal != nil {
		_ = u.mu.journal.Close() // what counts was synced
	}
	for _, root := range []*os.Root{u.tree, u.dir} {
		if root != nil {
			_ = root.Close()
		}
	}
	if u.base != nil {
		_ = u.base.root.Close()
	}
	if u.door != nil {
		u.door.close()
	}
}

func unknownUpload(id string) error {
	return structs.NewError(structs.CodeNotFound, "objects.no_upload", "upload", clip(id))
}

// upload returns what is known of an upload whose manifest is here. The caller calls
// release with it.
func (s *Store) upload(ctx context.Context, p *structs.DataPlace, id string) (*upload, error) {
	if !uploadID.MatchString(id) {
		return nil, unknownUpload(id)
	}
	v, err := s.versionOf(p, p.Version)
	if err != nil {
		return nil, err
	}
	key := v.place.Path + " " + id
	for {
		u, fresh := s.enter(key, id)
		if fresh {
			u.err = s.load(u, v, p)
			close(u.loaded)
		}
		select { // a storage may not answer: who waits for it does not hold up others
		case <-u.loaded:
		case <-ctx.Done():
			s.release(u)
			return nil, ctx.Err()
		}
		if u.err != nil {
			s.drop(key, u)
			s.release(u)
			return nil, u.err
		}
		if now, err := u.door.own.Stat(uploadPrefix + id); err == nil && os.SameFile(now, u.info) {
			if u.door.digest == v.digest {
				return u, nil
			}
			s.release(u)
			return nil, structs.NewError(structs.CodeConflict, "objects.other_tree", "digest", v.digest.Short())
		}
		s.drop(key, u) // it was finished, or is another one by now
		s.release(u)
	}
}

// enter returns the upload of a key for one more user. A fresh one is to be loaded.
func (s *Store) enter(key, id string) (u *upload, fresh bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u := s.mu.uploads[key]; u != nil {
		u.users++
		return u, false
	}
	for key, u := range s.mu.uploads {
		if len(s.mu.uploads) >= uploadsOpen && u.users == 0 {
			delete(s.mu.uploads, key)
			u.close()
		}
	}
	u = &upload{id: id, users: 1, loaded: make(chan struct{})}
	s.mu.uploads[key] = u
	return u, true
}

// drop forgets what is known of an upload; the last of its users closes it.
func (s *Store) drop(key string, u *upload) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.uploads[key] == u {
		delete(s.mu.uploads, key)
	}
	u.dropped = true
}

func (s *Store) release(u *upload) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u.users--; u.users == 0 && u.dropped {
		u.close()
	}
}

// load reads an upload from the disk.
func (s *Store) load(u *upload, v version, p *structs.DataPlace) error {
	d, err := s.open(v, false)
	if structs.CodeOf(err) == structs.CodeNotFound {
		return unknownUpload(u.id)
	}
	if err != nil {
		return err
	}
	u.door = d
	if u.info, err = d.own.Lstat(uploadPrefix + u.id); err == nil {
		u.dir, err = d.own.OpenRoot(uploadPrefix + u.id)
	}
	var data []byte
	if err == nil {
		data, err = readSmall(u.dir, manifestFile, tree.ManifestSizeMax)
	}
	if err == nil && tree.DigestOf(data) != v.digest {
		return structs.NewError(structs.CodeConflict, "objects.other_tree", "digest", v.digest.Short())
	}
	if err == nil {
		u.manifest, err = tree.Decode(data)
	}
	if err == nil {
		u.tree, err = u.dir.OpenRoot(treeDir)
	}
	if errors.Is(err, fs.ErrNotExist) { // without a tree it has its name already: only Finish has something to do
		return unknownUpload(u.id)
	}
	if err != nil {
		return v.failed(err)
	}
	u.chunks, u.spots, u.index = chunksOf(&u.manifest)
	u.mu.have, u.mu.filled = make([]bool, len(u.chunks)), make([]bool, len(u.manifest.Entries))
	if err := u.readJournals(s.config.NodeID); err != nil {
		return v.failed(err)
	}
	u.base = s.baseOf(p)
	return nil
}

// chunksOf lists the chunks of a manifest, each once, with its first spot.
func chunksOf(m *tree.Manifest) (chunks []tree.Chunk, spots []spot, index map[tree.Digest]int) {
	index = make(map[tree.Digest]int)
	for i := range m.Entries {
		offset := int64(0)
		for _, chunk := range m.Entries[i].Chunks {
			if _, known := index[chunk.Digest]; !known {
				index[chunk.Digest] = len(chunks)
				chunks, spots = append(chunks, chunk), append(spots, spot{i, offset})
			}
			offset += chunk.Size
		}
	}
	return chunks, spots, index
}

func readSmall(root *os.Root, name string, most int64) ([]byte, error) {
	file, err := root.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && int64(len(data)) > most {
		err = structs.NewError(structs.CodeTooLarge, "tree.manifest_too_large", "max", most)
	}
	return data, err
}

// begin takes a piece of the manifest of an upload. The last one makes the upload: from
// then on chunks are taken. A manifest that is there already is not taken again.
func (s *Store) begin(ask *structs.DataAsk) error {
	if !uploadID.MatchString(ask.Upload) {
		return unknownUpload(ask.Upload)
	}
	v, err := s.versionOf(&ask.Place, ask.Place.Version)
	if err != nil {
		return err
	}
	if !v.digest.Valid() {
		return structs.NewError(structs.CodeInvalid, "code.digest", "digest", clip(ask.Place.Digest))
	}
	if ask.Offset < 0 || ask.Offset+int64(len(ask.Data)) > tree.ManifestSizeMax {
		return structs.NewError(structs.CodeTooLarge, "tree.manifest_too_large", "max", tree.ManifestSizeMax)
	}
	d, err := s.open(v, true)
	if err != nil {
		return err
	}
	defer d.close()
	d.sweep(s.config.Now(), ask.Upload, s.config.Log)
	if err := d.own.Mkdir(uploadPrefix+ask.Upload, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return v.failed(err)
	}
	dir, err := d.own.OpenRoot(uploadPrefix + ask.Upload)
	if err != nil {
		return v.failed(err)
	}
	defer dir.Close()
	if known(dir, v.digest) {
		d.touch(ask.Upload, s.config.Now())
		return nil
	}
	if err := writeAt(dir, manifestFile+".part", ask.Offset, ask.Data); err != nil {
		return v.failed(err)
	}
	if !ask.End {
		return nil
	}
	data, err := readSmall(dir, manifestFile+".part", tree.ManifestSizeMax)
	if err != nil {
		return v.failed(err)
	}
	if tree.DigestOf(data) != v.digest {
		if known(dir, v.digest) { // another sender was faster
			return nil
		}
		_ = dir.Remove(manifestFile + ".part") // the next one begins anew
		return structs.NewError(structs.CodeInvalid, "objects.manifest_digest", "digest", v.digest.Short())
	}
	m, err := tree.Decode(data)
	if err != nil {
		return err
	}
	if err := settled(&m); err != nil {
		return err
	}
	if err := s.room(d, m.Bytes()-s.shared(&ask.Place, &m)); err != nil {
		return err
	}
	if a, b, ok := m.Twins(); ok {
		if one, err := foldsCase(dir); err != nil || one {
			return errors.Join(err, structs.NewError(structs.CodeInvalid, "objects.twins", "name", a, "other", b, "storage", v.place.Storage))
		}
	}
	if err := makeDirs(dir, &m); err != nil {
		return v.failed(err)
	}
	if err := errors.Join(place(dir, manifestFile, data), syncDir(d.own, ".")); err != nil {
		return v.failed(err)
	}
	_ = dir.Remove(manifestFile + ".part")
	return nil
}

// touch says that an upload is gone on with: no sweep takes it for one that is left.
func (d *door) touch(id string, now time.Time) {
	_ = d.own.Chtimes(uploadPrefix+id, now, now) // what comes next says it, too
}

// known reports whether an upload has its manifest.
func known(dir *os.Root, digest tree.Digest) bool {
	data, err := readSmall(dir, manifestFile, tree.ManifestSizeMax)
	return err == nil && tree.DigestOf(data) == digest
}

// settled refuses a manifest whose permissions are not those that data has.
func settled(m *tree.Manifest) error {
	for i := range m.Entries {
		if entry := &m.Entries[i]; entry.Mode != entry.SettledMode() {
			return structs.NewError(structs.CodeInvalid, "objects.mode", "path", entry.Path, "mode", fmt.Sprintf("%04o", entry.Mode))
		}
	}
	return nil
}

// foldsCase reports whether the file system takes names for one that differ in capitals
// only.
func foldsCase(dir *os.Root) (bool, error) {
	if err := writeAt(dir, "capitals", 0, nil); err != nil {
		return false, err
	}
	_, err := dir.Lstat("CAPITALS")
	return err == nil, dir.Remove("capitals")
}

// makeDirs makes the directories of a tree, open until it is whole.
func makeDirs(dir *os.Root, m *tree.Manifest) error {
	for i := -1; i < len(m.Entries); i++ {
		name := treeDir
		if i >= 0 {
			if m.Entries[i].Kind != tree.KindDir {
				continue
			}
			name = path.Join(treeDir, m.Entries[i].Path)
		}
		if err := dir.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

func writeAt(root *os.Root, name string, offset int64, data []byte) error {
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(data, offset)
	return errors.Join(err, file.Close())
}

// room refuses what does not fit the file system of a door.
func (s *Store) room(d *door, more int64) error {
	free, err := s.config.FreeBytes(fmt.Sprintf("/proc/self/fd/%d", d.parent.Fd()))
	least := s.config.LeastFree + uint64(max(more, 0))
	if err == nil && free < least { // where nothing is known of it, the write fails
		return structs.NewError(structs.CodeUnavailable, "objects.no_room", "storage", d.place.Storage, "path", d.place.Path,
			"size", structs.FormatSize(more), "free", structs.FormatSize(int64(free)), "least", structs.FormatSize(int64(s.config.LeastFree)))
	}
	return nil
}

// missing lists which of some chunks have to be sent, by their place in the list.
func (u *upload) missing(asked []structs.CodeChunk) ([]int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	var lacking []int
	for i, chunk := range asked {
		at, ours := u.index[tree.Digest(chunk.Digest)]
		if !ours {
			return nil, structs.NewError(structs.CodeInvalid, "objects.not_of_tree", "digest", clip(chunk.Digest))
		}
		if !u.mu.have[at] && !u.base.has(tree.Digest(chunk.Digest)) {
			lacking = append(lacking, i)
		}
	}
	return lacking, nil
}

// put keeps chunks; data is their bytes, one after the other. They are on the disk when
// it returns. Where the bytes of one are others than its digest says nothing is kept.
func (s *Store) put(u *upload, chunks []structs.CodeChunk, data []byte) error {
	type piece struct {
		at   int
		data []byte
	}
	var pieces []piece
	bytes, left := int64(0), data
	for i, chunk := range chunks {
		at, ours := u.index[tree.Digest(chunk.Digest)]
		switch {
		case !ours:
			return structs.NewError(structs.CodeInvalid, "objects.not_of_tree", "digest", clip(chunk.Digest))
		case chunk.Size != u.chunks[at].Size || chunk.Size > int64(len(left)), tree.DigestOf(left[:chunk.Size]) != u.chunks[at].Digest:
			return structs.NewError(structs.CodeInvalid, "code.wrong_digest", "digest", u.chunks[at].Digest.Short(), "at", i+1)
		}
		pieces, left, bytes = append(pieces, piece{at, left[:chunk.Size]}), left[chunk.Size:], bytes+chunk.Size
	}
	if len(left) > 0 {
		return structs.NewError(structs.CodeInvalid, "code.body_broken")
	}
	if err := s.room(u.door, bytes); err != nil {
		return err
	}
	var written []int
	files := make(map[int]bool)
	open := openFiles{root: u.tree}
	defer open.close()
	for _, piece := range pieces {
		u.mu.Lock()
		have := u.mu.have[piece.at]
		u.mu.Unlock()
		if have {
			continue
		}
		spot := u.spots[piece.at]
		file, err := open.write(u.manifest.Entries[spot.entry].Path)
		if err == nil {
			_, err = file.WriteAt(piece.data, spot.offset)
		}
		if err != nil {
			return u.door.failed(err)
		}
		written = append(written, piece.at)
		files[spot.entry] = true
	}
	if len(written) == 0 {
		return nil
	}
	err := open.sync(len(files))
	if err == nil {
		err = u.note(recordChunk, written)
	}
	if err != nil {
		return u.door.failed(err)
	}
	return nil
}

// openFiles keeps the file open that was written to last: chunks come in their order.
type openFiles struct {
	root *os.Root
	name string
	file *os.File
}

// write returns a file to be written.
func (o *openFiles) write(name string) (*os.File, error) {
	if o.file != nil && o.name == name {
		return o.file, nil
	}
	o.close()
	file, err := writable(o.root, name)
	if err != nil {
		return nil, err
	}
	o.file, o.name = file, name
	return file, nil
}

// writable opens a file of a version that is not made yet. One that is an earlier
// version's, too, is made anew: that stays as it is.
func writable(root *os.Root, name string) (*os.File, error) {
	info, err := root.Lstat(name)
	switch {
	case err != nil:
	case links(info) > 1:
		err = root.Remove(name)
	case info.Mode().IsRegular() && info.Mode().Perm()&0o200 == 0: // it was whole, and the journal was not told
		err = root.Chmod(name, 0o600)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return root.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
}

// sync has what was written to so many files reach the disk.
func (o *openFiles) sync(files int) error {
	if files == 1 && o.file != nil {
		return errors.Join(o.file.Sync(), syncDir(o.root, path.Dir(o.name)))
	}
	return syncAll(o.root)
}

func (o *openFiles) close() {
	if o.file != nil {
		_ = o.file.Close() // what counts was synced
		o.file = nil
	}
}

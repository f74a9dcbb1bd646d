package objects

import (
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

// base is an earlier version of an object. What its files hold is believed when it has
// been compared with its digests.
type base struct {
	root     *os.Root
	manifest tree.Manifest
	files    map[string]int // entries of the same bytes, by contentOf
	paths    map[string]int

	mu    sync.Mutex
	spots map[tree.Digest]spot
}

// baseOf opens the version that a place names as the earlier one; nil: there is none, or
// nothing of it can be used.
func (s *Store) baseOf(p *structs.DataPlace) *base {
	if p.Base < 1 || p.Base == p.Version {
		return nil
	}
	earlier := *p
	earlier.Digest = "" // whatever it is: each chunk is compared
	v, err := s.versionOf(&earlier, p.Base)
	if err != nil {
		return nil
	}
	d, err := s.open(v, false)
	if err != nil {
		return nil
	}
	defer d.close()
	data, err := readSmall(d.own, v.name, tree.ManifestSizeMax)
	if err != nil {
		return nil
	}
	m, err := tree.Decode(data)
	if err != nil {
		return nil
	}
	root, err := d.openVersion()
	if err != nil {
		return nil
	}
	b := &base{root: root, manifest: m, spots: make(map[tree.Digest]spot), files: make(map[string]int), paths: make(map[string]int)}
	for i := range m.Entries {
		entry := &m.Entries[i]
		if entry.Kind != tree.KindFile {
			continue
		}
		b.paths[entry.Path] = i
		b.files[contentOf(entry)] = i
		offset := int64(0)
		for _, chunk := range entry.Chunks {
			if _, known := b.spots[chunk.Digest]; !known {
				b.spots[chunk.Digest] = spot{i, offset}
			}
			offset += chunk.Size
		}
	}
	return b
}

// contentOf tells files apart by their bytes and by whether they can be run.
func contentOf(entry *tree.Entry) string {
	sum := sha256.New()
	for _, chunk := range entry.Chunks {
		sum.Write([]byte(chunk.Digest))
	}
	return strconv.FormatUint(uint64(entry.Mode), 8) + string(sum.Sum(nil))
}

func (b *base) has(digest tree.Digest) bool {
	if b == nil {
		return false
	}
	_, there := b.spot(digest)
	return there
}

func (b *base) spot(digest tree.Digest) (spot, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at, there := b.spots[digest]
	return at, there
}

// same is the file of the earlier version that has the bytes of an entry, rather that of
// the same name.
func (b *base) same(entry *tree.Entry) (*tree.Entry, bool) {
	if b == nil {
		return nil, false
	}
	if i, there := b.paths[entry.Path]; there && contentOf(&b.manifest.Entries[i]) == contentOf(entry) {
		return &b.manifest.Entries[i], true
	}
	i, there := b.files[contentOf(entry)]
	if !there {
		return nil, false
	}
	return &b.manifest.Entries[i], true
}

// forget has a chunk sent whose bytes are others than they were.
func (b *base) forget(digest tree.Digest) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.spots, digest)
}

// shared is how many bytes of a manifest an earlier version has.
func (s *Store) shared(p *structs.DataPlace, m *tree.Manifest) (sum int64) {
	b := s.baseOf(p)
	if b == nil {
		return 0
	}
	defer b.root.Close()
	for i := range m.Entries {
		if _, there := b.same(&m.Entries[i]); there {
			sum += m.Entries[i].Size()
		}
	}
	return sum
}

// errOtherBytes says that a file does not have the bytes that its manifest says.
var errOtherBytes = errors.New("the file has other bytes than its manifest says")

// openRegular opens a file to read it: never through a link, and nothing that would hold
// the agent up.
func openRegular(root *os.Root, name string) (*os.File, os.FileInfo, error) {
	file, err := root.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNotRegular
	}
	if err != nil {
		_ = file.Close()
		return nil, nil, err
	}
	return file, info, nil
}

// readChunk reads a chunk into a buffer of at least its size, and compares it.
func readChunk(file *os.File, offset int64, chunk tree.Chunk, buffer []byte) ([]byte, error) {
	data := buffer[:chunk.Size]
	if _, err := file.ReadAt(data, offset); errors.Is(err, io.EOF) {
		return nil, errOtherBytes
	} else if err != nil {
		return nil, err
	}
	if tree.DigestOf(data) != chunk.Digest {
		return nil, errOtherBytes
	}
	return data, nil
}

// link has an entry be the same file as one of the earlier version: the bytes of that
// are compared first, and it must be the agent's own, that nobody may write.
func (u *upload) link(entry, from *tree.Entry, buffer []byte, read func(int64)) (bool, error) {
	file, info, err := openRegular(u.base.root, from.Path)
	if err != nil {
		return false, nil // it is sent again
	}
	defer file.Close()
	if info.Size() != entry.Size() || uint32(info.Mode().Perm()) != entry.Mode || !ours(info) {
		return false, nil
	}
	offset := int64(0)
	for _, chunk := range entry.Chunks {
		if _, err := readChunk(file, offset, chunk, buffer); err != nil {
			u.base.forget(chunk.Digest)
			return false, nil // likewise
		}
		offset += chunk.Size
		read(chunk.Size)
	}
	dir, err := u.tree.Open(path.Dir(entry.Path))
	if err != nil {
		return false, err
	}
	defer dir.Close()
	name := path.Base(entry.Path)
	if err := unix.Unlinkat(int(dir.Fd()), name, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return false, err
	}
	// The file that was compared, whatever has its name by now.
	err = unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(int(file.Fd())), int(dir.Fd()), name, unix.AT_SYMLINK_FOLLOW)
	return err == nil, nil // where it cannot be linked it is copied
}

package objects

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync/atomic"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

// index is the manifest of a version that is read from.
type index struct {
	digest   tree.Digest
	data     []byte
	manifest tree.Manifest
	chunks   []tree.Chunk
	spots    []spot
	at       map[tree.Digest]int
}

// indexOf returns the manifest of a version, which has the digest that the servers know.
func (s *Store) indexOf(d *door) (*index, error) {
	s.mu.Lock()
	for i, known := range s.mu.indexes {
		if known.digest == d.digest {
			s.mu.indexes = append(append(s.mu.indexes[:i:i], s.mu.indexes[i+1:]...), known)
			s.mu.Unlock()
			return known, nil
		}
	}
	s.mu.Unlock()
	data, err := readSmall(d.own, d.name, tree.ManifestSizeMax)
	if err != nil {
		return nil, d.failed(err)
	}
	if tree.DigestOf(data) != d.digest {
		return nil, structs.NewError(structs.CodeConflict, "objects.manifest_other", "storage", d.place.Storage, "path", d.place.Path)
	}
	made := &index{digest: d.digest, data: data}
	if made.manifest, err = tree.Decode(data); err != nil {
		return nil, err
	}
	made.chunks, made.spots, made.at = chunksOf(&made.manifest)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.indexes = append(s.mu.indexes, made); len(s.mu.indexes) > indexesKept {
		s.mu.indexes = s.mu.indexes[1:]
	}
	return made, nil
}

// openKnown opens a version with what its manifest says. The caller closes the door.
func (s *Store) openKnown(p *structs.DataPlace) (*door, *index, error) {
	v, err := s.versionOf(p, p.Version)
	if err != nil {
		return nil, nil, err
	}
	d, err := s.open(v, false)
	if err != nil {
		return nil, nil, err
	}
	known, err := s.indexOf(d)
	if err != nil {
		d.close()
		return nil, nil, err
	}
	return d, known, nil
}

// list returns a piece of the manifest of a version.
func (s *Store) list(p *structs.DataPlace, offset int64) (*structs.DataReply, error) {
	d, known, err := s.openKnown(p)
	if err != nil {
		return nil, err
	}
	defer d.close()
	if offset < 0 || offset > int64(len(known.data)) {
		offset = int64(len(known.data))
	}
	rest := known.data[offset:]
	return &structs.DataReply{Data: rest[:min(len(rest), structs.DataAskBytesMax)], Total: int64(len(known.data))}, nil
}

// read returns chunks of a version, one after the other, whose bytes were compared.
func (s *Store) read(p *structs.DataPlace, wanted []structs.CodeChunk) (*structs.DataReply, error) {
	d, known, err := s.openKnown(p)
	if err != nil {
		return nil, err
	}
	defer d.close()
	sum := int64(0)
	for _, chunk := range wanted {
		at, ours := known.at[tree.Digest(chunk.Digest)]
		if !ours || known.chunks[at].Size != chunk.Size {
			return nil, structs.NewError(structs.CodeInvalid, "objects.not_of_tree", "digest", clip(chunk.Digest))
		}
		sum += chunk.Size
	}
	if sum > structs.DataAskBytesMax {
		return nil, structs.NewError(structs.CodeTooLarge, "code.body_too_large", "chunks", structs.DataAskChunksMax, "max", structs.DataAskBytesMax)
	}
	root, err := d.openVersion()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var from openSource
	defer from.close()
	data := make([]byte, sum)
	rest := data
	for _, chunk := range wanted {
		at := known.at[tree.Digest(chunk.Digest)]
		name := known.manifest.Entries[known.spots[at].entry].Path
		_, err := from.read(root, name, known.spots[at].offset, known.chunks[at], rest)
		if errors.Is(err, errOtherBytes) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotRegular) {
			return nil, structs.NewError(structs.CodeConflict, "objects.damaged", "name", name, "storage", d.place.Storage, "path", d.place.Path)
		}
		if err != nil {
			return nil, d.failed(err)
		}
		rest = rest[chunk.Size:]
	}
	return &structs.DataReply{Data: data}, nil
}

// verifier compares a version with its manifest.
type verifier struct {
	*index
	root   *os.Root
	done   *atomic.Int64
	reply  structs.DataReply
	buffer []byte
}

// verify reads all of a version.
func (s *Store) verify(ctx context.Context, p *structs.DataPlace, done, all *atomic.Int64) (*structs.DataReply, error) {
	d, known, err := s.openKnown(p)
	if err != nil {
		return nil, err
	}
	defer d.close()
	all.Store(known.manifest.Bytes())
	root, err := d.openVersion()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	check := &verifier{index: known, root: root, done: done, buffer: make([]byte, tree.ChunkSizeMax)}
	children := childrenOf(&known.manifest)
	if err := check.extras(".", children["."]); err != nil {
		return nil, d.failed(err)
	}
	for i := range known.manifest.Entries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		entry := &known.manifest.Entries[i]
		what, err := check.look(ctx, entry)
		if err == nil && what == "" && entry.Kind == tree.KindDir {
			err = check.extras(entry.Path, children[entry.Path])
		}
		if err != nil {
			return nil, d.failed(err)
		}
		check.wrong(entry.Path, what)
	}
	reply := check.reply
	reply.Done, reply.Files, reply.Bytes, reply.All = true, known.manifest.Files(), known.manifest.Bytes(), known.manifest.Bytes()
	return &reply, nil
}

// childrenOf lists the names in each directory of a manifest.
func childrenOf(m *tree.Manifest) map[string]map[string]bool {
	children := map[string]map[string]bool{".": {}}
	for i := range m.Entries {
		entry := &m.Entries[i]
		if entry.Kind == tree.KindDir {
			children[entry.Path] = make(map[string]bool)
		}
		children[path.Dir(entry.Path)][path.Base(entry.Path)] = true
	}
	return children
}

func (c *verifier) wrong(name, what string) {
	if what == "" {
		return
	}
	if c.reply.Wrongs++; len(c.reply.Wrong) < structs.DataWrongMax {
		c.reply.Wrong = append(c.reply.Wrong, structs.DataWrong{Path: name, What: what})
	}
}

// extras tells the names in a directory that are not of the version.
func (c *verifier) extras(dir string, known map[string]bool) error {
	opened, err := c.root.Open(dir)
	if err != nil {
		return err
	}
	defer opened.Close()
	names, err := opened.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !known[name] {
			c.wrong(path.Join(dir, name), structs.DataExtra)
		}
	}
	return nil
}

// look compares one name. An error is one of the disk; "" means that all is well.
func (c *verifier) look(ctx context.Context, entry *tree.Entry) (what string, err error) {
	before := c.done.Load()
	defer func() { c.done.Store(before + entry.Size()) }()
	info, err := c.root.Lstat(entry.Path)
	if missing(err) {
		return structs.DataGone, nil
	}
	if err != nil {
		return "", err
	}
	switch entry.Kind {
	case tree.KindDir:
		if !info.IsDir() {
			return structs.DataChanged, nil
		}
	case tree.KindLink:
		if target, err := c.root.Readlink(entry.Path); err != nil || target != entry.Target {
			return structs.DataChanged, nil // it is no link
		}
	case tree.KindFile:
		return c.compare(ctx, entry)
	}
	return "", nil
}

// missing reports whether an error says that a name, or a directory above it, is not there.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || err != nil && strings.Contains(err.Error(), "not a directory")
}

func (c *verifier) compare(ctx context.Context, entry *tree.Entry) (what string, err error) {
	file, info, err := openRegular(c.root, entry.Path)
	if missing(err) {
		return structs.DataGone, nil
	}
	if errors.Is(err, errNotRegular) {
		return structs.DataChanged, nil
	}
	if err != nil {
		return "", err
	}
	defer file.Close()
	if info.Size() != entry.Size() {
		return structs.DataChanged, nil
	}
	offset := int64(0)
	for _, chunk := range entry.Chunks {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		_, err := readChunk(file, offset, chunk, c.buffer)
		if errors.Is(err, errOtherBytes) {
			return structs.DataChanged, nil
		}
		if err != nil {
			return "", err
		}
		offset += chunk.Size
		c.done.Add(chunk.Size)
	}
	return "", nil
}

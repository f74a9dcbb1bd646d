package parcel

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

const treeSizeMax = tree.ManifestSizeMax

// codeCheck follows the entries of the code and compares each with what the manifest of
// the tree says, whose digest is the code's name.
type codeCheck struct {
	manifest tree.Manifest
	next     int // entry that must come
	current  *tree.Entry
	chunk    int // of current, that is being read
	left     int64
	sum      hash.Hash
	bad      bool
}

// openCode reads the manifest of the code. A nil codeCheck takes no code.
func openCode(data []byte, promised *Code) (*codeCheck, error) {
	if promised == nil || string(tree.DigestOf(data)) != promised.Tree {
		return nil, structs.NewError(structs.CodeInvalid, "parcel.code", "path", TreeName)
	}
	m, err := tree.Decode(data)
	if err != nil {
		return nil, err
	}
	return &codeCheck{manifest: m}, nil
}

// begin takes the next entry, which must be the tree's next one.
func (c *codeCheck) begin(below string, e *Entry) error {
	refused := structs.NewError(structs.CodeInvalid, "parcel.code", "path", shown(e.Path))
	if c == nil || c.next == len(c.manifest.Entries) {
		return refused
	}
	want := &c.manifest.Entries[c.next]
	c.next++
	kinds := map[tree.Kind]Kind{tree.KindFile: KindFile, tree.KindDir: KindDir, tree.KindLink: KindLink}
	if want.Path != below || kinds[want.Kind] != e.Kind || want.Mode != e.Mode || want.Target != e.Target || want.Size() != e.Size {
		return refused
	}
	c.current, c.chunk, c.bad, c.sum, c.left = want, 0, false, sha256.New(), 0
	if len(want.Chunks) > 0 {
		c.left = want.Chunks[0].Size
	}
	return nil
}

// write takes bytes of the current entry's file.
func (c *codeCheck) write(data []byte) {
	for len(data) > 0 && c.chunk < len(c.current.Chunks) {
		part := data[:min(int64(len(data)), c.left)]
		c.sum.Write(part)
		c.left -= int64(len(part))
		data = data[len(part):]
		if c.left > 0 {
			return
		}
		if "sha256:"+hex.EncodeToString(c.sum.Sum(nil)) != string(c.current.Chunks[c.chunk].Digest) {
			c.bad = true
		}
		c.sum.Reset()
		if c.chunk++; c.chunk < len(c.current.Chunks) {
			c.left = c.current.Chunks[c.chunk].Size
		}
	}
}

// finish reports whether the current entry's bytes are the tree's.
func (c *codeCheck) finish() bool { return !c.bad && c.chunk == len(c.current.Chunks) }

// whole reports whether all of the tree was there.
func (c *codeCheck) whole() bool { return c != nil && c.next == len(c.manifest.Entries) }

// Package tree is a directory as it was at one moment: its names, permissions and
// links in a Manifest, and its bytes in chunks that are known by their digests.
//
// Flow: Scan reads a directory and judges what stays behind; a manifest is encoded,
// and its digest is the name of the whole; who lacks chunks takes them one by one;
// Unpack writes the directory again and believes no byte that it has not verified.
//
// Limits: no owners and no times travel, of modes only the permission bits. A
// manifest is hostile until Decode or Check has accepted it.
package tree

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"nomadlike/nomadlike/structs"
)

// Bounds of every tree. What a project may send in all is bounded elsewhere.
const (
	NameMax         = 255                    // bytes of one name, as on Linux
	PathMax         = 4096                   // bytes of a path, and of what a link says
	EntriesMax      = 100_000                // files, directories and links of one tree
	ChunkSizeMax    = 8 << 20                // bytes
	ManifestSizeMax = 32 << 20               // bytes of an encoded manifest
	BytesMaxDefault = structs.CodeMaxDefault // bytes of all files, where nobody says otherwise
)

// Digest is "sha256:" and 64 hexadecimal digits.
type Digest string

const digestPrefix = "sha256:"

// DigestOf is the digest of data.
func DigestOf(data []byte) Digest { return digestFrom(sha256.Sum256(data)) }

func digestFrom(sum [sha256.Size]byte) Digest {
	return Digest(digestPrefix + hex.EncodeToString(sum[:]))
}

// Valid reports whether d is spelled as digests are: in lower case, and whole.
func (d Digest) Valid() bool {
	_, ok := d.raw()
	return ok
}

// raw returns the bytes that d spells.
func (d Digest) raw() (sum [sha256.Size]byte, ok bool) {
	digits, ok := strings.CutPrefix(string(d), digestPrefix)
	if !ok || len(digits) != 2*sha256.Size || strings.Trim(digits, "0123456789abcdef") != "" {
		return sum, false
	}
	_, err := hex.Decode(sum[:], []byte(digits))
	return sum, err == nil
}

// Short is what people are shown of a digest: its first 12 digits.
func (d Digest) Short() string {
	digits := strings.TrimPrefix(string(d), digestPrefix)
	return digits[:min(len(digits), 12)]
}

// Chunk is a run of bytes of a file: at least one, at most ChunkSizeMax.
type Chunk struct {
	Digest Digest `json:"digest"`
	Size   int64  `json:"size"` // bytes
}

// Kind is what an entry is.
type Kind uint8

// The kinds of entries. Nothing else travels.
const (
	KindFile Kind = 1
	KindDir  Kind = 2
	KindLink Kind = 3 // a symbolic link that stays within its tree
)

// Entry is one name of a tree.
type Entry struct {
	Path   string  // below the tree's root, with "/" between names; any bytes but NUL
	Kind   Kind    // a file, a directory or a link
	Mode   uint32  // permission bits; 0 of a link
	Chunks []Chunk // of a file, in order; none of an empty one
	Target string  // of a link: what it says
}

// Size is how many bytes the entry's file has.
func (e *Entry) Size() int64 {
	var sum int64
	for i := range e.Chunks {
		sum += e.Chunks[i].Size
	}
	return sum
}

// Manifest lists a tree: entries in the order of their paths' bytes, every directory
// among them, the root not.
type Manifest struct {
	Entries []Entry
}

// Files is how many files and links the tree has.
func (m Manifest) Files() int {
	count := 0
	for i := range m.Entries {
		if m.Entries[i].Kind != KindDir {
			count++
		}
	}
	return count
}

// Bytes is how many bytes the tree's files have together.
func (m Manifest) Bytes() int64 {
	var sum int64
	for i := range m.Entries {
		sum += m.Entries[i].Size()
	}
	return sum
}

// Chunks lists the chunks that the tree consists of, each once, in the order in which
// they are first needed.
func (m Manifest) Chunks() []Chunk {
	seen := make(map[Digest]bool)
	var chunks []Chunk
	for i := range m.Entries {
		for _, chunk := range m.Entries[i].Chunks {
			if !seen[chunk.Digest] {
				seen[chunk.Digest] = true
				chunks = append(chunks, chunk)
			}
		}
	}
	return chunks
}

// Digest is the name of the whole tree: two trees have the same one when every name,
// mode, link and byte is the same.
func (m Manifest) Digest() Digest { return DigestOf(m.Encode()) }

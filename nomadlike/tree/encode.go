package tree

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"nomadlike/nomadlike/structs"
)

// header begins every encoded manifest. A changed form has another number.
const header = "nomadlike tree 1\n"

// Encode spells the manifest in bytes. One tree has one spelling: after the header the
// number of entries, and of each its kind, mode and path, then the chunks of a file
// (their number, and of each its size and the 32 bytes of its digest) or what a link
// says. Numbers are unsigned varints; texts begin with their length. The manifest is
// one that Check accepts.
func (m Manifest) Encode() []byte {
	size := len(header) + binary.MaxVarintLen64
	for i := range m.Entries {
		entry := &m.Entries[i]
		size += 16 + len(entry.Path) + len(entry.Target) + len(entry.Chunks)*(4+sha256.Size)
	}
	data := append(make([]byte, 0, size), header...)
	data = binary.AppendUvarint(data, uint64(len(m.Entries)))
	for i := range m.Entries {
		entry := &m.Entries[i]
		data = append(data, byte(entry.Kind))
		data = binary.AppendUvarint(data, uint64(entry.Mode))
		data = appendText(data, entry.Path)
		switch entry.Kind {
		case KindFile:
			data = binary.AppendUvarint(data, uint64(len(entry.Chunks)))
			for _, chunk := range entry.Chunks {
				sum, ok := chunk.Digest.raw()
				if !ok || chunk.Size < 0 {
					panic(fmt.Sprintf("tree: %q has a chunk %q of %d bytes", entry.Path, chunk.Digest, chunk.Size))
				}
				data = binary.AppendUvarint(data, uint64(chunk.Size))
				data = append(data, sum[:]...)
			}
		case KindLink:
			data = appendText(data, entry.Target)
		}
	}
	return data
}

func appendText(data []byte, text string) []byte {
	return append(binary.AppendUvarint(data, uint64(len(text))), text...)
}

// Decode reads what Encode wrote, and believes nothing: data may come from anybody.
// What it returns has passed Check and spells the same bytes again.
func Decode(data []byte) (Manifest, error) {
	if len(data) > ManifestSizeMax {
		return Manifest{}, structs.NewError(structs.CodeTooLarge, "tree.manifest_too_large", "max", ManifestSizeMax)
	}
	rest, ok := bytes.CutPrefix(data, []byte(header))
	if !ok {
		return Manifest{}, unreadable("header")
	}
	in := &reader{rest: rest}
	count := in.number(EntriesMax)
	m := Manifest{Entries: make([]Entry, 0, min(count, uint64(len(rest)/4)))}
	for range count {
		if in.bad {
			break
		}
		m.Entries = append(m.Entries, in.entry())
	}
	if in.bad || len(in.rest) > 0 {
		return Manifest{}, unreadable("entries")
	}
	if err := m.Check(); err != nil {
		return Manifest{}, err
	}
	if !bytes.Equal(m.Encode(), data) { // a number written longer than it need be
		return Manifest{}, unreadable("spelling")
	}
	return m, nil
}

func unreadable(part string) error {
	return structs.NewError(structs.CodeInvalid, "tree.manifest_unreadable", "part", part)
}

// reader takes an encoded manifest apart. After the first thing that cannot be, it is
// bad and returns zeroes.
type reader struct {
	rest []byte
	bad  bool
}

func (r *reader) entry() Entry {
	entry := Entry{Kind: Kind(r.byte()), Mode: uint32(r.number(0o777)), Path: r.text()}
	switch entry.Kind {
	case KindFile:
		count := r.number(uint64(len(r.rest) / (1 + sha256.Size)))
		if count > 0 {
			entry.Chunks = make([]Chunk, 0, count)
		}
		for range count {
			size := int64(r.number(ChunkSizeMax))
			entry.Chunks = append(entry.Chunks, Chunk{Digest: r.digest(), Size: size})
		}
	case KindDir:
	case KindLink:
		entry.Target = r.text()
	default:
		r.bad = true
	}
	return entry
}

func (r *reader) byte() byte {
	if len(r.rest) == 0 {
		r.bad = true
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

func (r *reader) number(most uint64) uint64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 || n > most {
		r.bad, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

func (r *reader) take(n int) []byte {
	if n > len(r.rest) {
		r.bad, r.rest = true, nil
		return nil
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *reader) text() string { return string(r.take(int(r.number(PathMax)))) }

func (r *reader) digest() Digest {
	var sum [sha256.Size]byte
	copy(sum[:], r.take(sha256.Size))
	return digestFrom(sum)
}

package staging

import (
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

// Bounds of a piece. Small versions have small ones, so that there is something for every
// node to fetch first.
const (
	pieceLeast  = 256 << 10
	pieceMost   = 4 << 20
	piecesAbout = 1024
	pieceChunks = 512
)

// spot is one place of a chunk in a tree.
type spot struct {
	file   int // number among the files of the tree
	entry  int
	chunk  int   // number among the chunks of the file
	offset int64 // in the file
}

// pieces cut a tree into what one node hands another at a time: runs of chunks in the
// order of the tree. They follow from the manifest alone, so all nodes number them alike.
type pieces struct {
	manifest tree.Manifest
	spots    []spot
	first    []int // spot with which each piece begins, and at the end their number
	bytes    []int64
}

func cut(m tree.Manifest) *pieces {
	p := &pieces{manifest: m}
	aim, file := min(max(m.Bytes()/piecesAbout, pieceLeast), pieceMost), 0
	for i := range m.Entries {
		entry := &m.Entries[i]
		if entry.Kind != tree.KindFile {
			continue
		}
		offset := int64(0)
		for at, chunk := range entry.Chunks {
			last := len(p.first) - 1
			if last < 0 || p.bytes[last]+chunk.Size > aim || len(p.spots)-p.first[last] == pieceChunks {
				p.first, p.bytes, last = append(p.first, len(p.spots)), append(p.bytes, 0), last+1
			}
			p.spots = append(p.spots, spot{file, i, at, offset})
			p.bytes[last] += chunk.Size
			offset += chunk.Size
		}
		file++
	}
	p.first = append(p.first, len(p.spots))
	return p
}

// count is how many pieces there are.
func (p *pieces) count() int { return len(p.bytes) }

// of lists the places of a piece's chunks.
func (p *pieces) of(piece int) []spot { return p.spots[p.first[piece]:p.first[piece+1]] }

func (p *pieces) chunk(s spot) tree.Chunk { return p.manifest.Entries[s.entry].Chunks[s.chunk] }

func (p *pieces) path(s spot) string { return p.manifest.Entries[s.entry].Path }

// chunks lists what a piece consists of, as storages are asked for it.
func (p *pieces) chunks(piece int) []structs.CodeChunk {
	var list []structs.CodeChunk
	for _, s := range p.of(piece) {
		chunk := p.chunk(s)
		list = append(list, structs.CodeChunk{Digest: string(chunk.Digest), Size: chunk.Size})
	}
	return list
}

// whole reports whether data is a piece: every chunk of it has the digest that the
// manifest says.
func (p *pieces) whole(piece int, data []byte) bool {
	if int64(len(data)) != p.bytes[piece] {
		return false
	}
	for _, s := range p.of(piece) {
		chunk := p.chunk(s)
		if tree.DigestOf(data[:chunk.Size]) != chunk.Digest {
			return false
		}
		data = data[chunk.Size:]
	}
	return true
}

// bits are a set of pieces.
type bits []byte

func newBits(count int) bits { return make(bits, (count+7)/8) }

func (b bits) has(i int) bool { return i/8 < len(b) && b[i/8]&(1<<(i%8)) != 0 }

func (b bits) set(i int) { b[i/8] |= 1 << (i % 8) }

// byte is eight of them.
func (b bits) byte(at int) byte {
	if at >= len(b) {
		return 0
	}
	return b[at]
}

// one is 1 for a piece that is in the set.
func (b bits) one(i int) int {
	if b.has(i) {
		return 1
	}
	return 0
}

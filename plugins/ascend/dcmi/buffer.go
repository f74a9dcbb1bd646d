package dcmi

import (
	"encoding/binary"
	"strings"
)

// buffer takes a result of the library: larger than any structure of its
// interface that is asked for here.
type buffer [bufferLen]byte

func (b *buffer) u32(offset int) uint32 { return binary.NativeEndian.Uint32(b[offset:]) }

func (b *buffer) i32(offset int) int { return int(int32(b.u32(offset))) }

func (b *buffer) u64(offset int) uint64 { return binary.NativeEndian.Uint64(b[offset:]) }

// text reads a C string of at most length bytes, without what cannot be
// printed.
func (b *buffer) text(offset, length int) string {
	raw := b[offset : offset+length]
	for i, c := range raw {
		if c == 0 {
			raw = raw[:i]
			break
		}
	}
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, string(raw)))
}

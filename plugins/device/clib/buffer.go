package clib

import (
	"encoding/binary"
	"strings"
)

// BufferLen is the size of a Buffer.
const BufferLen = 1024

// Buffer takes the result of a call; most structures are far smaller.
type Buffer [BufferLen]byte

// U32 reads an unsigned int.
func (b *Buffer) U32(offset int) uint32 { return Bytes(b[:]).U32(offset) }

// I32 reads an int.
func (b *Buffer) I32(offset int) int { return Bytes(b[:]).I32(offset) }

// U64 reads an unsigned long long.
func (b *Buffer) U64(offset int) uint64 { return Bytes(b[:]).U64(offset) }

// Text reads a C string, see Bytes.Text.
func (b *Buffer) Text(offset, length int) string { return Bytes(b[:]).Text(offset, length) }

// PutU32 writes an unsigned int.
func (b *Buffer) PutU32(offset int, value uint32) { Bytes(b[:]).PutU32(offset, value) }

// Bytes takes the result of a call that is larger than a Buffer.
type Bytes []byte

// U32 reads an unsigned int.
func (b Bytes) U32(offset int) uint32 { return binary.NativeEndian.Uint32(b[offset:]) }

// I32 reads an int.
func (b Bytes) I32(offset int) int { return int(int32(b.U32(offset))) }

// U64 reads an unsigned long long.
func (b Bytes) U64(offset int) uint64 { return binary.NativeEndian.Uint64(b[offset:]) }

// PutU32 writes an unsigned int.
func (b Bytes) PutU32(offset int, value uint32) { binary.NativeEndian.PutUint32(b[offset:], value) }

// Text reads a C string of at most length bytes, without what cannot be
// printed.
func (b Bytes) Text(offset, length int) string {
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

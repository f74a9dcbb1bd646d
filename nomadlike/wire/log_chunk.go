package wire

import (
	"encoding/binary"
	"io"

	"nomadlike/nomadlike/structs"
)

// LogChunkOverhead bounds the bytes of an encoded chunk beside its data.
const LogChunkOverhead = 64

// The major types of CBOR that a chunk is made of, and its keys in their order.
const (
	majorUint  = 0 << 5
	majorInt   = 1 << 5
	majorBytes = 2 << 5
	majorText  = 3 << 5
	majorMap   = 5 << 5
	cborTrue   = 0xf5

	keyEOF    = "eof"
	keyData   = "data"
	keyOffset = "offset"
)

// AppendLogChunk appends to dst what Marshal returns for a chunk. Logs are the
// one thing of which an agent sends gigabytes: their bytes are copied once.
func AppendLogChunk(dst []byte, chunk *structs.LogChunk) []byte {
	fields := byte(1)
	if chunk.EOF {
		fields++
	}
	if len(chunk.Data) > 0 {
		fields++
	}
	dst = append(dst, majorMap|fields)
	if chunk.EOF {
		dst = append(appendKey(dst, keyEOF), cborTrue)
	}
	if len(chunk.Data) > 0 {
		dst = append(appendHead(appendKey(dst, keyData), majorBytes, uint64(len(chunk.Data))), chunk.Data...)
	}
	dst = appendKey(dst, keyOffset)
	if chunk.Offset < 0 {
		return appendHead(dst, majorInt, uint64(-1-chunk.Offset))
	}
	return appendHead(dst, majorUint, uint64(chunk.Offset))
}

func appendKey(dst []byte, key string) []byte {
	return append(append(dst, majorText|byte(len(key))), key...)
}

func appendHead(dst []byte, major byte, n uint64) []byte {
	switch {
	case n < 24:
		return append(dst, major|byte(n))
	case n <= 0xff:
		return append(dst, major|24, byte(n))
	case n <= 0xffff:
		return binary.BigEndian.AppendUint16(append(dst, major|25), uint16(n))
	case n <= 0xffffffff:
		return binary.BigEndian.AppendUint32(append(dst, major|26), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(dst, major|27), n)
}

// ReadLogChunk reads what AppendLogChunk wrote, of size bytes, into chunk, whose
// data it overwrites in place where that has room. False: these bytes are not
// such a chunk, and Unmarshal says what they are; chunk is undefined then.
func ReadLogChunk(from interface {
	io.Reader
	io.ByteReader
}, size int, chunk *structs.LogChunk,
) bool {
	r := chunkReader{from: from, left: size}
	*chunk = structs.LogChunk{Data: chunk.Data[:0]}
	fields := int(r.byte()) - majorMap
	if fields >= 2 && fields <= 3 && r.key(keyEOF) {
		chunk.EOF = r.byte() == cborTrue
		r.bad = r.bad || !chunk.EOF
		fields--
	}
	if fields == 2 && r.key(keyData) {
		chunk.Data = r.bytes(chunk.Data)
		fields--
	}
	if fields != 1 || !r.key(keyOffset) {
		return false
	}
	offset := r.head(majorUint)
	chunk.Offset = int64(offset)
	return !r.bad && r.left == 0 && chunk.Offset >= 0
}

// chunkReader reads the parts of a chunk; bad is set by the first that is not
// as AppendLogChunk writes it.
type chunkReader struct {
	from interface {
		io.Reader
		io.ByteReader
	}
	left   int
	bad    bool
	peeked int // 1 + the byte that key read and did not want
}

func (r *chunkReader) byte() byte {
	if r.peeked > 0 {
		b := byte(r.peeked - 1)
		r.peeked = 0
		return b
	}
	b, err := r.from.ReadByte()
	r.left--
	r.bad = r.bad || err != nil || r.left < 0
	return b
}

// key reads a key, when the next one is as long: keys of a chunk all differ in length.
func (r *chunkReader) key(key string) bool {
	head := r.byte()
	if head != majorText|byte(len(key)) {
		r.peeked = 1 + int(head)
		return false
	}
	for i := range len(key) {
		r.bad = r.bad || r.byte() != key[i]
	}
	return !r.bad
}

// head reads a number in its shortest form.
func (r *chunkReader) head(major byte) uint64 {
	first := r.byte()
	n := uint64(first &^ 0xe0)
	if first&0xe0 != major || n > 27 {
		r.bad = true
		return 0
	}
	if n < 24 {
		return n
	}
	length := 1 << (n - 24)
	n = 0
	for range length {
		n = n<<8 | uint64(r.byte())
	}
	r.bad = r.bad || len(appendHead(nil, 0, n)) != 1+length
	return n
}

// bytes reads a byte string into memory that is there, or new.
func (r *chunkReader) bytes(into []byte) []byte {
	n := r.head(majorBytes)
	if r.bad || n == 0 || n > uint64(max(r.left, 0)) {
		r.bad = true
		return into[:0]
	}
	if uint64(cap(into)) < n {
		into = make([]byte, n)
	}
	into = into[:n]
	_, err := io.ReadFull(r.from, into)
	r.left -= int(n)
	r.bad = r.bad || err != nil
	return into
}

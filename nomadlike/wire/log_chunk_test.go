package wire

import (
	"bytes"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"nomadlike/nomadlike/structs"
)

func drawChunk(t *rapid.T) *structs.LogChunk {
	size := rapid.SampledFrom([]int{0, 1, 23, 24, 255, 256, 65535, 65536, 100_000}).Draw(t, "size")
	chunk := &structs.LogChunk{
		Offset: rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{0, 23, 24, 255, 256, math.MaxUint32, math.MaxUint32 + 1, math.MaxInt64})).Draw(t, "offset"),
		EOF:    rapid.Bool().Draw(t, "eof"),
	}
	if size > 0 {
		chunk.Data = bytes.Repeat([]byte{rapid.Byte().Draw(t, "byte")}, size)
	}
	return chunk
}

// The short way writes the bytes of the long one, and reads them.
func TestLogChunkIsItsCBOR(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		chunk := drawChunk(t)
		want, err := Marshal(chunk)
		if err != nil {
			t.Fatal(err)
		}
		got := AppendLogChunk(nil, chunk)
		if !bytes.Equal(got, want) {
			t.Fatalf("%x, not %x", got[:min(len(got), 40)], want[:min(len(want), 40)])
		}
		if len(got) > len(chunk.Data)+LogChunkOverhead {
			t.Fatalf("%d bytes for %d", len(got), len(chunk.Data))
		}
		read := &structs.LogChunk{Data: []byte("of the chunk before"), EOF: true, Offset: 7}
		if ok := ReadLogChunk(bytes.NewReader(got), len(got), read); ok != (chunk.Offset >= 0) {
			t.Fatalf("read: %v", ok)
		} else if ok && !cmp.Equal(read.Data, chunk.Data, cmp.Comparer(bytes.Equal)) || ok && (read.Offset != chunk.Offset || read.EOF != chunk.EOF) {
			t.Fatalf("offset %d of %d, eof %v of %v, %d bytes of %d", read.Offset, chunk.Offset, read.EOF, chunk.EOF, len(read.Data), len(chunk.Data))
		}
	})
}

// What the short way takes, the long one takes too, and reads the same in it.
func TestLogChunkTakesNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := AppendLogChunk(nil, drawChunk(t))
		data = data[:min(len(data), 300)]
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			at := rapid.IntRange(0, min(len(data)-1, 30)).Draw(t, "at")
			switch rapid.IntRange(0, 2).Draw(t, "how") {
			case 0:
				data[at] = rapid.Byte().Draw(t, "byte")
			case 1:
				data = append(data, rapid.Byte().Draw(t, "more"))
			default:
				data = append(data[:at:at], data[min(at+1, len(data)-1):]...)
			}
		}
		short, long := new(structs.LogChunk), new(structs.LogChunk)
		if !ReadLogChunk(bytes.NewReader(data), len(data), short) {
			return
		}
		if err := Unmarshal(data, long); err != nil {
			t.Fatalf("%x: the long way refuses: %v", data, err)
		}
		if long.Offset != short.Offset || long.EOF != short.EOF || !bytes.Equal(long.Data, short.Data) {
			t.Fatalf("%x: %+v, not %+v", data, short, long)
		}
	})
}

func BenchmarkLogChunk(b *testing.B) {
	chunk := &structs.LogChunk{Offset: 1 << 29, Data: bytes.Repeat([]byte("a line of a log\n"), 8<<10)}
	b.Run("generic", func(b *testing.B) {
		b.SetBytes(int64(len(chunk.Data)))
		for b.Loop() {
			data, err := Marshal(chunk)
			if err != nil {
				b.Fatal(err)
			}
			if err := Unmarshal(data, new(structs.LogChunk)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("short", func(b *testing.B) {
		b.SetBytes(int64(len(chunk.Data)))
		var data []byte
		read := new(structs.LogChunk)
		for b.Loop() {
			data = AppendLogChunk(data[:0], chunk)
			if !ReadLogChunk(bytes.NewReader(data), len(data), read) {
				b.Fatal("not read")
			}
		}
	})
}

package rpc

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/mem"
	"pgregory.net/rapid"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// codecUnmarshal decodes data as it comes from gRPC: in pieces.
func codecUnmarshal(data []byte, v any) error {
	half := len(data) / 2
	pieces := mem.BufferSlice{mem.SliceBuffer(data[:half]), mem.SliceBuffer(data[half:])}
	return codec{}.Unmarshal(pieces, v)
}

func TestCodecKeepsNothingOfItsInput(t *testing.T) {
	encoded, err := codec{}.Marshal(&echo{Text: "hello", Data: []byte("data")})
	if err != nil {
		t.Fatal(err)
	}
	data := encoded.Materialize()
	got := new(echo)
	if err := codecUnmarshal(data, got); err != nil {
		t.Fatal(err)
	}
	whole := new(echo)
	if err := (codec{}).Unmarshal(mem.BufferSlice{mem.SliceBuffer(data)}, whole); err != nil {
		t.Fatal(err)
	}
	clear(data) // gRPC reuses its buffers
	want := &echo{Text: "hello", Data: []byte("data")}
	if diff := cmp.Diff(want, got) + cmp.Diff(want, whole); diff != "" {
		t.Error(diff)
	}
}

// However gRPC cuts the bytes of a log into pieces, the same chunk comes out,
// in memory that is used again; and what was sent is not in memory that is.
func TestCodecOfLogs(t *testing.T) {
	again := new(structs.LogChunk)
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom([]int{0, 1, 1000, logBufferWorth, logBufferSize - wire.LogChunkOverhead, logBufferSize}).Draw(t, "size")
		want := &structs.LogChunk{Offset: rapid.Int64Min(0).Draw(t, "offset"), EOF: rapid.Bool().Draw(t, "eof")}
		for i := range size {
			want.Data = append(want.Data, byte(i*7))
		}
		encoded, err := codec{}.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		data := encoded.Materialize()
		encoded.Free()
		if whole, err := wire.Marshal(want); err != nil || !bytes.Equal(whole, data) {
			t.Fatalf("%d bytes, not %d: %v", len(data), len(whole), err)
		}
		var pieces mem.BufferSlice
		rest := data
		for _, cut := range rapid.SliceOfN(rapid.IntRange(0, len(data)), 0, 5).Draw(t, "cuts") {
			cut = min(cut, len(rest))
			pieces, rest = append(pieces, mem.SliceBuffer(rest[:cut])), rest[cut:]
		}
		pieces = append(pieces, mem.SliceBuffer(rest))
		memory := cap(again.Data)
		*again = structs.LogChunk{Data: again.Data[:0]}
		if err := (codec{}).Unmarshal(pieces, again); err != nil {
			t.Fatal(err)
		}
		if memory >= size && cap(again.Data) != memory {
			t.Fatalf("%d bytes of memory became %d", memory, cap(again.Data))
		}
		clear(data)
		if again.Offset != want.Offset || again.EOF != want.EOF || !bytes.Equal(again.Data, want.Data) {
			t.Fatalf("offset %d of %d, eof %v of %v, %d bytes of %d", again.Offset, want.Offset, again.EOF, want.EOF, len(again.Data), size)
		}
	})
}

package rpc

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/mem"
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

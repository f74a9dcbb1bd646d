package rpc

import (
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// codec puts Go structs on gRPC streams as canonical CBOR. wire bounds what
// is decoded; gRPC itself bounds a message's bytes before that.
type codec struct{}

var _ encoding.CodecV2 = codec{}

// Name becomes the content subtype, application/grpc+cbor.
func (codec) Name() string { return "cbor" }

// Marshal encodes one message.
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	data, err := wire.Marshal(v)
	if err != nil {
		return nil, err
	}
	return mem.BufferSlice{mem.SliceBuffer(data)}, nil
}

// Unmarshal decodes one message; nothing of data is kept, unless v is a
// *frame, which keeps the bytes for later.
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	if f, ok := v.(*frame); ok {
		data.Ref()
		f.data = data
		return nil
	}
	return decode(data, v)
}

func decode(data mem.BufferSlice, v any) error {
	buffer := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buffer.Free()
	return wire.Unmarshal(buffer.ReadOnlyData(), v)
}

// frame is a message that has arrived but is not decoded. Servers receive
// frames, because gRPC answers a failed decoding on its own, in its own
// words; so we decode afterwards, and the sender gets a *structs.Error.
type frame struct {
	data mem.BufferSlice
}

// into decodes the frame, once, and gives its bytes back to gRPC.
func (f *frame) into(v any) error {
	defer f.data.Free()
	if err := decode(f.data, v); err != nil {
		return structs.NewError(structs.CodeInvalid, "rpc.bad_message", "cause", err.Error()).Because(err)
	}
	return nil
}

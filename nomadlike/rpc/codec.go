package rpc

import (
	"sync"

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
	if chunk, ok := v.(*structs.LogChunk); ok && len(chunk.Data) <= logBufferSize-wire.LogChunkOverhead {
		return marshalChunk(chunk), nil
	}
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
	if chunk, ok := v.(*structs.LogChunk); ok {
		from := data.Reader()
		read := wire.ReadLogChunk(from, data.Len(), chunk)
		_ = from.Close() // always nil
		if read {
			return nil
		}
		*chunk = structs.LogChunk{}
	}
	return decode(data, v)
}

// Chunks of logs are encoded into buffers that are used again once gRPC has
// sent them. Small ones, as of a log that is followed, are not worth one.
const (
	logBufferSize  = 256 << 10 // bytes
	logBufferWorth = 16 << 10
)

// logBuffers is a mem.BufferPool of buffers of logBufferSize.
type logBuffers struct{ free sync.Pool }

var logBuffersShared = &logBuffers{free: sync.Pool{New: func() any {
	buffer := make([]byte, 0, logBufferSize)
	return &buffer
}}}

// Get returns an empty buffer with room for length bytes, at most logBufferSize.
func (l *logBuffers) Get(int) *[]byte { return l.free.Get().(*[]byte) }

// Put takes a buffer back.
func (l *logBuffers) Put(buffer *[]byte) {
	*buffer = (*buffer)[:0]
	l.free.Put(buffer)
}

func marshalChunk(chunk *structs.LogChunk) mem.BufferSlice {
	size := len(chunk.Data) + wire.LogChunkOverhead
	if size < logBufferWorth {
		return mem.BufferSlice{mem.SliceBuffer(wire.AppendLogChunk(make([]byte, 0, size), chunk))}
	}
	buffer := logBuffersShared.Get(size)
	*buffer = wire.AppendLogChunk(*buffer, chunk)
	return mem.BufferSlice{mem.NewBuffer(buffer, logBuffersShared)}
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

// into decodes the frame, once, and hands its bytes back to gRPC.
func (f *frame) into(v any) error {
	defer f.data.Free()
	if err := decode(f.data, v); err != nil {
		return structs.NewError(structs.CodeInvalid, "rpc.bad_message", "cause", err.Error()).Because(err)
	}
	return nil
}

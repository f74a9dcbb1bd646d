// Package wire turns nouns into bytes and back: Raft commands, snapshots and
// RPC bodies. The form is canonical CBOR (RFC 8949 §4.2.1, core deterministic
// encoding), so equal values are equal bytes on every server, which the state
// hash relies on, and a reader needs no schema to look inside.
//
// Flow: structs values in, bytes out; decoding is bounded in size, nesting
// and element counts because peers and disks may be hostile or broken.
//
// Limits: no compression, no I/O. The diary of protocol versions is in
// version.go.
package wire

import (
	"errors"
	"fmt"
	"sync"

	"github.com/fxamacker/cbor/v2"

	"nomadlike/nomadlike/structs"
)

// Bounds on what a decoder accepts.
const (
	MessageSizeMax = 16 << 20 // bytes of one message or log entry
	nestingMax     = 64
	arrayLengthMax = 1 << 20
	mapLengthMax   = 1 << 20
)

// modes builds the encoder and decoder once, at first use, so that starting
// a process that never speaks the wire form costs nothing.
var modes = sync.OnceValue(func() (m struct {
	enc    cbor.EncMode
	dec    cbor.DecMode
	strict cbor.DecMode
},
) {
	enc, err := cbor.CoreDetEncOptions().EncMode()
	if err != nil {
		panic(fmt.Sprintf("build CBOR encoder: %v", err))
	}
	options := cbor.DecOptions{
		DupMapKey:        cbor.DupMapKeyEnforcedAPF,
		MaxNestedLevels:  nestingMax,
		MaxArrayElements: arrayLengthMax,
		MaxMapPairs:      mapLengthMax,
		IndefLength:      cbor.IndefLengthForbidden,
		TagsMd:           cbor.TagsForbidden,
	}
	dec, err := options.DecMode()
	if err != nil {
		panic(fmt.Sprintf("build CBOR decoder: %v", err))
	}
	options.ExtraReturnErrors = cbor.ExtraDecErrorUnknownField
	strict, err := options.DecMode()
	if err != nil {
		panic(fmt.Sprintf("build CBOR decoder: %v", err))
	}
	m.enc, m.dec, m.strict = enc, dec, strict
	return m
})

// Marshal returns the canonical bytes of v. Any goroutine may call it.
func Marshal(v any) ([]byte, error) {
	data, err := modes().enc.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	if len(data) > MessageSizeMax {
		return nil, fmt.Errorf("encode %T: %d bytes are over the limit of %d", v, len(data), MessageSizeMax)
	}
	return data, nil
}

// Unmarshal reads the bytes of one value into v, a pointer. It refuses
// trailing bytes, duplicate keys, tags, and anything over the bounds above.
func Unmarshal(data []byte, v any) error { return decode(modes().dec, data, v) }

// UnmarshalWhole is Unmarshal for what is stored: a field that v does not have is
// an *UnknownFieldError. What one replica keeps another must not drop.
func UnmarshalWhole(data []byte, v any) error {
	err := decode(modes().strict, data, v)
	var unknown *cbor.UnknownFieldError
	if errors.As(err, &unknown) {
		return &UnknownFieldError{Type: fmt.Sprintf("%T", v), Fields: unknownFields(data, v)}
	}
	return err
}

// Decoder is Unmarshal or UnmarshalWhole.
type Decoder func(data []byte, v any) error

// DecoderOf returns the decoder for what a version of the protocol wrote: of those
// that did not say which one they were, fields may be gone since.
func DecoderOf(protocol int) Decoder {
	if protocol == 0 {
		return Unmarshal
	}
	return UnmarshalWhole
}

func decode(mode cbor.DecMode, data []byte, v any) error {
	if len(data) > MessageSizeMax {
		return fmt.Errorf("decode %T: %d bytes are over the limit of %d", v, len(data), MessageSizeMax)
	}
	makeRoom(len(data))
	if err := mode.Unmarshal(data, v); err != nil {
		return fmt.Errorf("decode %T: %w", v, err)
	}
	return nil
}

// EncodeCommand makes a log entry: body is the struct that belongs to kind,
// now and by are the proposer's.
func EncodeCommand(kind structs.CommandKind, now structs.UnixNano, by string, body any) ([]byte, error) {
	bytes, err := Marshal(body)
	if err != nil {
		return nil, err
	}
	return Marshal(&structs.Command{Kind: kind, Now: now, By: by, Body: bytes, Protocol: ProtocolVersion})
}

// DecodeCommand reads the envelope of a log entry; the body is decoded by
// whoever knows the kind.
func DecodeCommand(data []byte) (*structs.Command, error) {
	command := new(structs.Command)
	if err := Unmarshal(data, command); err != nil {
		return nil, err
	}
	if command.Kind == 0 {
		return nil, fmt.Errorf("decode command: kind is missing")
	}
	return command, nil
}

package metrics

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
)

// Bounds of event files.
const (
	recordMax       = 64 << 20 // bytes of one record, images included
	eventValuesMax  = 256      // values of one event
	recordHeadBytes = 12
	recordTailBytes = 4
)

// errDamaged is returned for an event file that cannot be read on.
var errDamaged = errors.New("event file is damaged")

// castagnoli is the table of CRC32C.
var castagnoli = sync.OnceValue(func() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) })

// masked is a checksum as TFRecord files hold it.
func masked(data []byte) uint32 {
	sum := crc32.Checksum(data, castagnoli())
	return (sum>>15 | sum<<17) + 0xa282ead8
}

// recordLength reads the head of a record, recordHeadBytes long.
func recordLength(head []byte) (int, error) {
	length := binary.LittleEndian.Uint64(head)
	if masked(head[:8]) != binary.LittleEndian.Uint32(head[8:]) || length > recordMax {
		return 0, errDamaged
	}
	return int(length), nil
}

// nextRecord returns the first record of data and its length with head and tail;
// size 0 means that it is not there in whole yet.
func nextRecord(data []byte) (record []byte, size int, err error) {
	if len(data) < recordHeadBytes {
		return nil, 0, nil
	}
	length, err := recordLength(data[:recordHeadBytes])
	if err != nil {
		return nil, 0, err
	}
	size = recordHeadBytes + length + recordTailBytes
	if len(data) < size {
		return nil, 0, nil
	}
	record = data[recordHeadBytes : recordHeadBytes+length]
	if masked(record) != binary.LittleEndian.Uint32(data[recordHeadBytes+length:]) {
		return nil, 0, errDamaged
	}
	return record, size, nil
}

// event is what is taken of one Event of TensorBoard.
type event struct {
	WallTime float64 // seconds since 1970
	Step     int64
	Values   []observation
}

// Fields of the messages Event, Summary, Summary.Value and TensorProto.
const (
	eventWallTime, eventStep, eventSummary      = 1, 2, 5
	summaryValue                                = 1
	valueTag, valueSimple, valueTensor          = 1, 2, 8
	tensorType, tensorContent                   = 1, 4
	tensorFloats, tensorDoubles, tensorInts     = 5, 6, 7
	tensorInt64s, tensorHalves                  = 10, 13
	typeFloat, typeDouble, typeInt32, typeInt64 = 1, 2, 3, 9
	typeBfloat16, typeHalf                      = 14, 19
)

// fields calls f for every field of a message: with the number of a varint or
// fixed field, or the bytes of a long one.
func fields(message []byte, f func(number protowire.Number, bits uint64, data []byte) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return errDamaged
		}
		message = message[n:]
		var bits uint64
		var data []byte
		switch kind {
		case protowire.VarintType:
			bits, n = protowire.ConsumeVarint(message)
		case protowire.Fixed32Type:
			var b uint32
			b, n = protowire.ConsumeFixed32(message)
			bits = uint64(b)
		case protowire.Fixed64Type:
			bits, n = protowire.ConsumeFixed64(message)
		case protowire.BytesType:
			data, n = protowire.ConsumeBytes(message)
		default:
			n = protowire.ConsumeFieldValue(number, kind, message)
		}
		if n < 0 {
			return errDamaged
		}
		message = message[n:]
		if err := f(number, bits, data); err != nil {
			return err
		}
	}
	return nil
}

// decodeEvent reads the scalars of one record.
func decodeEvent(record []byte) (event, error) {
	var e event
	err := fields(record, func(number protowire.Number, bits uint64, data []byte) error {
		switch number {
		case eventWallTime:
			e.WallTime = math.Float64frombits(bits)
		case eventStep:
			e.Step = int64(bits)
		case eventSummary:
			return fields(data, func(number protowire.Number, _ uint64, data []byte) error {
				if number != summaryValue || data == nil || len(e.Values) == eventValuesMax {
					return nil
				}
				name, value, ok, err := decodeValue(data)
				if ok {
					e.Values = append(e.Values, observation{Name: name, Value: value})
				}
				return err
			})
		}
		return nil
	})
	for i := range e.Values {
		e.Values[i].Step = max(e.Step, 0)
	}
	return e, err
}

// decodeValue reads one value of a summary; ok is false when it is no scalar.
func decodeValue(message []byte) (name string, value float64, ok bool, err error) {
	err = fields(message, func(number protowire.Number, bits uint64, data []byte) error {
		switch {
		case number == valueTag && data != nil:
			name = string(data)
		case number == valueSimple && data == nil:
			value, ok = float64(math.Float32frombits(uint32(bits))), true
		case number == valueTensor && data != nil:
			scalar, isScalar, err := decodeTensor(data)
			if isScalar {
				value, ok = scalar, true
			}
			return err
		}
		return nil
	})
	return name, value, ok && err == nil, err
}

// decodeTensor reads a tensor of one number. Numbers are in a field of their
// type, packed or not, or as raw bytes.
func decodeTensor(message []byte) (value float64, ok bool, err error) {
	kind, numbers := uint64(0), 0
	var content []byte
	take := func(v float64) { value, numbers = v, numbers+1 }
	err = fields(message, func(number protowire.Number, bits uint64, data []byte) error {
		switch number {
		case tensorType:
			kind = bits
		case tensorContent:
			content = data
		case tensorFloats:
			return packed(data, bits, 4, func(b uint64) { take(float64(math.Float32frombits(uint32(b)))) })
		case tensorDoubles:
			return packed(data, bits, 8, func(b uint64) { take(math.Float64frombits(b)) })
		case tensorInts, tensorInt64s:
			return packed(data, bits, 0, func(b uint64) { take(float64(int64(b))) })
		case tensorHalves:
			return packed(data, bits, 0, func(b uint64) { take(halfOf(kind, uint16(b))) })
		}
		return nil
	})
	if err != nil {
		return 0, false, err
	}
	if numbers == 0 {
		return raw(kind, content)
	}
	return value, numbers == 1, nil
}

// packed yields the numbers of a field that is packed (data) or not (bits); width
// is their bytes, 0 for varints.
func packed(data []byte, bits uint64, width int, f func(uint64)) error {
	if data == nil {
		f(bits)
		return nil
	}
	for len(data) > 0 {
		var n int
		switch width {
		case 4:
			var b uint32
			b, n = protowire.ConsumeFixed32(data)
			bits = uint64(b)
		case 8:
			bits, n = protowire.ConsumeFixed64(data)
		default:
			bits, n = protowire.ConsumeVarint(data)
		}
		if n < 0 {
			return errDamaged
		}
		f(bits)
		data = data[n:]
	}
	return nil
}

// raw reads a tensor's content that is one number.
func raw(kind uint64, content []byte) (float64, bool, error) {
	switch {
	case kind == typeFloat && len(content) == 4:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(content))), true, nil
	case kind == typeDouble && len(content) == 8:
		return math.Float64frombits(binary.LittleEndian.Uint64(content)), true, nil
	case kind == typeInt32 && len(content) == 4:
		return float64(int32(binary.LittleEndian.Uint32(content))), true, nil
	case kind == typeInt64 && len(content) == 8:
		return float64(int64(binary.LittleEndian.Uint64(content))), true, nil
	case (kind == typeBfloat16 || kind == typeHalf) && len(content) == 2:
		return halfOf(kind, binary.LittleEndian.Uint16(content)), true, nil
	}
	return 0, false, nil
}

// halfOf is a number of two bytes.
func halfOf(kind uint64, bits uint16) float64 {
	if kind == typeBfloat16 {
		return float64(math.Float32frombits(uint32(bits) << 16))
	}
	sign, exponent, fraction := 1-2*float64(bits>>15), int(bits>>10&0x1f), float64(bits&0x3ff)
	switch exponent {
	case 0:
		return sign * math.Ldexp(fraction, -24)
	case 0x1f:
		if fraction == 0 {
			return math.Inf(int(sign))
		}
		return math.NaN()
	}
	return sign * math.Ldexp(1+fraction/1024, exponent-15)
}

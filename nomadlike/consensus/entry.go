package consensus

import (
	"encoding/binary"
	"errors"
	"io"
	"time"

	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
)

// entryCodecID names the encoding in every segment header of the log. A change
// of the encoding needs a new number.
const entryCodecID = wal.FirstExternalCodecID + 0x4e4d4c01

var errEntryChecksum = errors.New("log entry fails its checksum")

// entryCodec encodes log entries with a CRC-32C in front, since raft-wal
// verifies nothing when it reads an entry back.
type entryCodec struct{}

var _ wal.Codec = entryCodec{}

// ID implements wal.Codec.
func (entryCodec) ID() uint64 { return entryCodecID }

// Encode implements wal.Codec: CRC, then index, term, type, append time, and
// extensions and data with their lengths.
func (entryCodec) Encode(entry *raft.Log, w io.Writer) error {
	buf := make([]byte, 4, 4+5*binary.MaxVarintLen64+1+len(entry.Data)+len(entry.Extensions))
	buf = binary.AppendUvarint(buf, entry.Index)
	buf = binary.AppendUvarint(buf, entry.Term)
	buf = append(buf, byte(entry.Type))
	var appended int64
	if !entry.AppendedAt.IsZero() {
		appended = entry.AppendedAt.UnixNano()
	}
	buf = binary.AppendVarint(buf, appended)
	buf = binary.AppendUvarint(buf, uint64(len(entry.Extensions)))
	buf = append(buf, entry.Extensions...)
	buf = binary.AppendUvarint(buf, uint64(len(entry.Data)))
	buf = append(buf, entry.Data...)
	binary.LittleEndian.PutUint32(buf, crcOf(buf[4:]))
	_, err := w.Write(buf)
	return err
}

// Decode implements wal.Codec. The entry shares no bytes with data.
func (entryCodec) Decode(data []byte, entry *raft.Log) error {
	if len(data) < 4 || crcOf(data[4:]) != binary.LittleEndian.Uint32(data) {
		return errEntryChecksum
	}
	rest := entryReader{data: data[4:]}
	*entry = raft.Log{
		Index: rest.uvarint(),
		Term:  rest.uvarint(),
		Type:  raft.LogType(rest.octet()),
	}
	if appended := rest.varint(); appended != 0 {
		entry.AppendedAt = time.Unix(0, appended)
	}
	entry.Extensions = rest.bytes()
	entry.Data = rest.bytes()
	if rest.bad || len(rest.data) != 0 {
		return errors.New("log entry is malformed")
	}
	return nil
}

// entryReader takes fields off an entry and remembers the first failure.
type entryReader struct {
	data []byte
	bad  bool
}

func (r *entryReader) skip(n int) {
	if n <= 0 || n > len(r.data) {
		r.bad, r.data = true, nil
		return
	}
	r.data = r.data[n:]
}

func (r *entryReader) uvarint() uint64 {
	value, n := binary.Uvarint(r.data)
	r.skip(n)
	return value
}

func (r *entryReader) varint() int64 {
	value, n := binary.Varint(r.data)
	r.skip(n)
	return value
}

func (r *entryReader) octet() byte {
	if len(r.data) == 0 {
		r.bad = true
		return 0
	}
	value := r.data[0]
	r.data = r.data[1:]
	return value
}

func (r *entryReader) bytes() []byte {
	length := r.uvarint()
	if r.bad || length > uint64(len(r.data)) {
		r.bad = true
		return nil
	}
	if length == 0 {
		return nil
	}
	value := append([]byte(nil), r.data[:length]...)
	r.data = r.data[length:]
	return value
}

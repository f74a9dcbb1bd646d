package consensus

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	"github.com/hashicorp/raft"
)

// A snapshot, on disk and in an operator's archive:
//
//	"nomadlike-snapshot\n" | header length u32 | header JSON | body | body length u64 | SHA-256
//
// Numbers are big-endian; the hash covers all bytes before it.
const (
	archiveMagic     = "nomadlike-snapshot\n"
	archiveFormat    = 1
	archiveTrailer   = 8 + sha256.Size
	archiveHeaderMax = 1 << 20
)

// Meta describes a snapshot.
type Meta struct {
	Format             int       `json:"format"`
	ClusterID          string    `json:"cluster_id"`
	ServerID           string    `json:"server_id"` // that wrote it
	Index              uint64    `json:"index"`     // of the last entry it holds
	Term               uint64    `json:"term"`
	CreatedAt          time.Time `json:"created_at"`
	ConfigurationIndex uint64    `json:"configuration_index"`
	Peers              []Peer    `json:"peers"`

	BodyBytes int64  `json:"-"` // length of the state inside
	SHA256    string `json:"-"` // of the whole archive, hex
}

// archiveWriter writes one archive.
type archiveWriter struct {
	to     io.Writer
	hash   hash.Hash
	length uint64
}

// newArchiveWriter writes the header; what is written then is the body.
func newArchiveWriter(to io.Writer, meta Meta) (*archiveWriter, error) {
	header, err := json.Marshal(meta)
	if err != nil {
		return nil, fmt.Errorf("encode snapshot header: %w", err)
	}
	if len(header) > archiveHeaderMax {
		return nil, fmt.Errorf("encode snapshot header: %d bytes are too many", len(header))
	}
	w := &archiveWriter{to: to, hash: sha256.New()}
	head := append([]byte(archiveMagic), binary.BigEndian.AppendUint32(nil, uint32(len(header)))...)
	if err := w.put(append(head, header...)); err != nil {
		return nil, err
	}
	return w, nil
}

func (w *archiveWriter) put(data []byte) error {
	w.hash.Write(data)
	if _, err := w.to.Write(data); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	return nil
}

// Write adds to the body.
func (w *archiveWriter) Write(data []byte) (int, error) {
	if err := w.put(data); err != nil {
		return 0, err
	}
	w.length += uint64(len(data))
	return len(data), nil
}

// finish writes the trailer.
func (w *archiveWriter) finish() error {
	if err := w.put(binary.BigEndian.AppendUint64(nil, w.length)); err != nil {
		return err
	}
	if _, err := w.to.Write(w.hash.Sum(nil)); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	return nil
}

// InspectSnapshot reads a whole archive, checks it, and reports what it is. An
// archive that is not intact is refused with ErrBadSnapshot.
func InspectSnapshot(r io.Reader) (Meta, error) { return readArchive(r, io.Discard) }

// ReadArchive copies the state inside an archive to body, and checks the whole.
// What body got is to be trusted only when the error is nil.
func ReadArchive(r io.Reader, body io.Writer) (Meta, error) { return readArchive(r, body) }

// readArchive copies the body of an archive to body, and checks it. What body
// got is to be trusted only when the error is nil.
func readArchive(r io.Reader, body io.Writer) (Meta, error) {
	sum := sha256.New()
	meta, err := readArchiveHeader(io.TeeReader(r, sum))
	if err != nil {
		return Meta{}, err
	}
	// The last bytes read are held back: they may be the trailer.
	var held []byte
	buf := make([]byte, 256<<10)
	for {
		n, err := r.Read(buf)
		held = append(held, buf[:n]...)
		if over := len(held) - archiveTrailer; over > 0 {
			sum.Write(held[:over])
			if _, err := body.Write(held[:over]); err != nil {
				return Meta{}, fmt.Errorf("copy snapshot: %w", err)
			}
			meta.BodyBytes += int64(over)
			held = append(held[:0], held[over:]...)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Meta{}, fmt.Errorf("read snapshot: %w", err)
		}
	}
	if len(held) < archiveTrailer {
		return Meta{}, fmt.Errorf("%w: truncated", ErrBadSnapshot)
	}
	sum.Write(held[:8])
	switch {
	case !bytes.Equal(sum.Sum(nil), held[8:]):
		return Meta{}, fmt.Errorf("%w: truncated or changed, its SHA-256 does not match", ErrBadSnapshot)
	case binary.BigEndian.Uint64(held) != uint64(meta.BodyBytes):
		return Meta{}, fmt.Errorf("%w: truncated", ErrBadSnapshot)
	}
	meta.SHA256 = hex.EncodeToString(held[8:])
	return meta, nil
}

// readArchiveHeader reads up to the body. The header alone proves nothing: only
// the hash at the end does.
func readArchiveHeader(r io.Reader) (Meta, error) {
	var head [len(archiveMagic) + 4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return Meta{}, badArchive(err)
	}
	if string(head[:len(archiveMagic)]) != archiveMagic {
		return Meta{}, fmt.Errorf("%w: it does not begin as one", ErrBadSnapshot)
	}
	length := binary.BigEndian.Uint32(head[len(archiveMagic):])
	if length > archiveHeaderMax {
		return Meta{}, fmt.Errorf("%w: its header has %d bytes", ErrBadSnapshot, length)
	}
	header := make([]byte, length)
	if _, err := io.ReadFull(r, header); err != nil {
		return Meta{}, badArchive(err)
	}
	var meta Meta
	if err := json.Unmarshal(header, &meta); err != nil {
		return Meta{}, fmt.Errorf("%w: its header is malformed", ErrBadSnapshot)
	}
	if meta.Format != archiveFormat {
		return Meta{}, fmt.Errorf("%w: format %d, and this version reads format %d", ErrBadSnapshot, meta.Format, archiveFormat)
	}
	return meta, nil
}

func badArchive(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: truncated", ErrBadSnapshot)
	}
	return fmt.Errorf("read snapshot: %w", err)
}

// raftMeta returns raft's view of a snapshot.
func (m Meta) raftMeta(id string) *raft.SnapshotMeta {
	return &raft.SnapshotMeta{
		Version:            1,
		ID:                 id,
		Index:              m.Index,
		Term:               m.Term,
		Configuration:      raftConfiguration(m.Peers),
		ConfigurationIndex: m.ConfigurationIndex,
		Size:               m.BodyBytes,
	}
}

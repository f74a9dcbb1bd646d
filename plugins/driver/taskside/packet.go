//go:build linux

package taskside

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"time"
)

// Types of packets of the protocol, version 3 (draft-ietf-secsh-filexfer-02).
const (
	packetInit     = 1
	packetVersion  = 2
	packetOpen     = 3
	packetClose    = 4
	packetRead     = 5
	packetWrite    = 6
	packetLstat    = 7
	packetFstat    = 8
	packetSetstat  = 9
	packetFsetstat = 10
	packetOpendir  = 11
	packetReaddir  = 12
	packetRemove   = 13
	packetMkdir    = 14
	packetRmdir    = 15
	packetRealpath = 16
	packetStat     = 17
	packetRename   = 18
	packetReadlink = 19
	packetSymlink  = 20
	packetStatus   = 101
	packetHandle   = 102
	packetData     = 103
	packetName     = 104
	packetAttrs    = 105
	packetExtended = 200
	packetReplied  = 201
)

// Codes of packetStatus.
const (
	statusOK          = 0
	statusEOF         = 1
	statusNoFile      = 2
	statusDenied      = 3
	statusFailure     = 4
	statusBadMessage  = 5
	statusUnsupported = 8
)

// Flags of packetOpen.
const (
	openRead   = 1
	openWrite  = 2
	openAppend = 4
	openCreate = 8
	openTrunc  = 16
	openExcl   = 32
)

// Flags of attributes.
const (
	attrSize     = 1
	attrOwner    = 2
	attrMode     = 4
	attrTimes    = 8
	attrExtended = 1 << 31
)

// Bounds of what a peer may send and have open.
const (
	packetMax  = 256 << 10 // bytes of a packet, as OpenSSH bounds it
	readMax    = packetMax - 1024
	handlesMax = 128
	pathMax    = 4096
	namesMax   = 128 // of one answer
	extsMax    = 32
)

// errMalformed is a packet that does not hold what its type says.
var errMalformed = errors.New("malformed packet")

// reader takes a packet apart. After a field that is not there every further one
// is empty, and bad is set.
type reader struct {
	rest []byte
	bad  bool
}

func (r *reader) take(n int) []byte {
	if r.bad || n < 0 || n > len(r.rest) {
		r.bad, r.rest = true, nil
		return nil
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *reader) uint32() uint32 {
	if b := r.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (r *reader) uint64() uint64 {
	if b := r.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (r *reader) bytes() []byte {
	n := r.uint32()
	if n > packetMax {
		r.bad, r.rest = true, nil
		return nil
	}
	return r.take(int(n))
}

// path reads a name of a file. What no kernel takes is malformed; an empty one is
// the directory in which the task works.
func (r *reader) path() string {
	path := string(r.bytes())
	if len(path) > pathMax || strings.IndexByte(path, 0) >= 0 {
		r.bad = true
		return ""
	}
	if path == "" {
		return "."
	}
	return path
}

// attributes are what a packet says of a file; flags tells which fields count.
type attributes struct {
	flags        uint32
	size         uint64
	uid, gid     uint32
	mode         uint32
	atime, mtime uint32
}

func (r *reader) attributes() (a attributes) {
	a.flags = r.uint32()
	if a.flags&attrSize != 0 {
		a.size = r.uint64()
	}
	if a.flags&attrOwner != 0 {
		a.uid, a.gid = r.uint32(), r.uint32()
	}
	if a.flags&attrMode != 0 {
		a.mode = r.uint32()
	}
	if a.flags&attrTimes != 0 {
		a.atime, a.mtime = r.uint32(), r.uint32()
	}
	if a.flags&attrExtended != 0 {
		count := r.uint32()
		if count > extsMax {
			r.bad = true
		}
		for i := uint32(0); i < count && !r.bad; i++ {
			r.bytes()
			r.bytes()
		}
	}
	return a
}

// answer builds a packet; its length is filled in when it is sent.
type answer struct{ data []byte }

func newAnswer(kind byte, id uint32) *answer {
	a := &answer{data: make([]byte, 4, 64)}
	a.data = append(a.data, kind)
	a.uint32(id)
	return a
}

func (a *answer) uint32(v uint32)    { a.data = binary.BigEndian.AppendUint32(a.data, v) }
func (a *answer) uint64(v uint64)    { a.data = binary.BigEndian.AppendUint64(a.data, v) }
func (a *answer) string(text string) { a.uint32(uint32(len(text))); a.data = append(a.data, text...) }

func (a *answer) sendTo(w io.Writer) error {
	binary.BigEndian.PutUint32(a.data, uint32(len(a.data)-4))
	_, err := w.Write(a.data)
	return err
}

// info writes the attributes of a file.
func (a *answer) info(info os.FileInfo) {
	a.uint32(attrSize | attrOwner | attrMode | attrTimes)
	a.uint64(uint64(info.Size()))
	var uid, gid uint32
	mode, atime := uint32(info.Mode().Perm()), info.ModTime()
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		uid, gid, mode = stat.Uid, stat.Gid, stat.Mode
		atime = time.Unix(stat.Atim.Unix())
	}
	a.uint32(uid)
	a.uint32(gid)
	a.uint32(mode)
	a.uint32(uint32(atime.Unix()))
	a.uint32(uint32(info.ModTime().Unix()))
}

// status says how a request went.
func status(id uint32, err error) *answer {
	code, text := uint32(statusFailure), ""
	switch {
	case err == nil:
		code = statusOK
	case errors.Is(err, io.EOF):
		code = statusEOF
	case errors.Is(err, os.ErrNotExist):
		code = statusNoFile
	case errors.Is(err, os.ErrPermission):
		code = statusDenied
	case errors.Is(err, errMalformed):
		code = statusBadMessage
	case errors.Is(err, errors.ErrUnsupported):
		code = statusUnsupported
	}
	if err != nil {
		text = err.Error()
		var cause syscall.Errno
		if errors.As(err, &cause) {
			text = cause.Error() // without the path, which the peer knows
		}
	}
	a := newAnswer(packetStatus, id)
	a.uint32(code)
	a.string(text)
	a.string("")
	return a
}

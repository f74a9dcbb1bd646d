package consensus

import (
	"github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"

	"nomadlike/internal/logkey"
)

// segments makes raft-wal write the id of our entry encoding into its file
// headers. Version 0.4.0 takes a codec of one's own, then marks new files with
// the id of its built-in one, and refuses them when it opens them again.
type segments struct {
	*segment.Filer
	guard *guard
}

var _ types.SegmentFiler = segments{}

func newSegments(dir string, guard *guard) segments {
	return segments{segment.NewFiler(dir, fs.New()), guard}
}

// Create implements types.SegmentFiler. Raft-wal begins a new file in the
// background, where it only logs an error, such as a full disk, and refuses the
// next append without its cause.
func (s segments) Create(info types.SegmentInfo) (types.SegmentWriter, error) {
	info.Codec = entryCodecID
	writer, err := s.Filer.Create(info)
	if err != nil {
		s.guard.fail(exitStorage, "log file cannot be created", logkey.Error, err)
	}
	return writer, err
}

// RecoverTail implements types.SegmentFiler.
func (s segments) RecoverTail(info types.SegmentInfo) (types.SegmentWriter, error) {
	info.Codec = entryCodecID
	return s.Filer.RecoverTail(info)
}

// Open implements types.SegmentFiler.
func (s segments) Open(info types.SegmentInfo) (types.SegmentReader, error) {
	info.Codec = entryCodecID
	return s.Filer.Open(info)
}

package consensus

import (
	"github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

// segments makes raft-wal write the id of our entry encoding into its file
// headers. Version 0.4.0 takes a codec of one's own, then marks new files with
// the id of its built-in one, and refuses them when it opens them again.
type segments struct{ *segment.Filer }

var _ types.SegmentFiler = segments{}

func newSegments(dir string) segments { return segments{segment.NewFiler(dir, fs.New())} }

// Create implements types.SegmentFiler.
func (s segments) Create(info types.SegmentInfo) (types.SegmentWriter, error) {
	info.Codec = entryCodecID
	return s.Filer.Create(info)
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

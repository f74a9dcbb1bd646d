package consensus

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"

	"nomadlike/internal/logkey"
)

// wipeBlock is how much is read and wiped at a time.
const wipeBlock = 256 << 10

// segments makes raft-wal write the id of our entry encoding into its file
// headers. Version 0.4.0 takes a codec of one's own, then marks new files with
// the id of its built-in one, and refuses them when it opens them again.
type segments struct {
	*segment.Filer
	guard *guard
}

var _ types.SegmentFiler = segments{}

func newSegments(dir string, guard *guard) segments {
	return segments{segment.NewFiler(dir, wiping{fs.New()}), guard}
}

// wiping is a file system in which nothing is left behind the end of the log.
// Raft-wal takes up a damaged newest file before its damage, and writes over
// what follows: as entries are often equally long, an old one may then stand
// where the next one would, whole and with its checksum, and come back as the
// end of the log at the next start.
type wiping struct{ types.VFS }

// OpenWriter implements types.VFS: it opens a file of an earlier process.
func (w wiping) OpenWriter(dir, name string) (types.WritableFile, error) {
	file, err := w.VFS.OpenWriter(dir, name)
	if err != nil {
		return nil, err
	}
	return &wipedFile{WritableFile: file}, nil
}

// wipedFile is the newest log file of an earlier process. Its first write wipes
// what is behind it; one goroutine writes.
type wipedFile struct {
	types.WritableFile
	wiped bool
}

// WriteAt implements io.WriterAt. Raft-wal syncs the file after it.
func (f *wipedFile) WriteAt(data []byte, offset int64) (int, error) {
	if !f.wiped {
		if err := f.wipe(offset + int64(len(data))); err != nil {
			return 0, err
		}
		f.wiped = true
	}
	return f.WritableFile.WriteAt(data, offset)
}

// wipe writes zeros over all that is none from an offset on.
func (f *wipedFile) wipe(offset int64) error {
	block, zeros := make([]byte, wipeBlock), make([]byte, wipeBlock)
	for {
		n, err := f.ReadAt(block, offset)
		if n > 0 && !bytes.Equal(block[:n], zeros[:n]) {
			if _, err := f.WritableFile.WriteAt(zeros[:n], offset); err != nil {
				return fmt.Errorf("wipe what is behind the log: %w", err)
			}
		}
		offset += int64(n)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read what is behind the log: %w", err)
		}
	}
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

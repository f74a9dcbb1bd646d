package consensus

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/raft"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"

	"nomadlike/internal/logkey"
)

// repairedDir holds, in one directory for each repair, what the files of the log
// held before.
const repairedDir = "repaired"

// The form of a log file, which raft-wal does not export: a header, then frames
// of eight bytes each, with a payload padded to eight bytes.
const (
	segmentHeader = 32
	frameHeader   = 8
)

// segmentScan is what a log file holds, read from its beginning to the first
// bytes that are no frame.
type segmentScan struct {
	entries []uint32 // where the frames of entries begin that were committed
	end     int      // behind the last commit that counts, 0 without one
	used    int      // behind the last frame
	index   int      // where the payload of the one index block begins, 0 without one
}

// sealed reports whether the file ends with a whole index block.
func (s segmentScan) sealed() bool { return s.index != 0 && s.index < s.end }

// torn reports whether an index block was begun and not committed.
func (s segmentScan) torn() bool { return s.index != 0 && s.index >= s.end }

// scanSegment reads a log file by raft-wal's rules: what follows the last commit
// was never acknowledged, and the last commit counts if its checksum is right or
// if something was written after it.
func scanSegment(data []byte) (segmentScan, error) {
	type commit struct{ at, from, entries int }
	var (
		scan    segmentScan
		entries []uint32
		commits []commit
		index   []byte
		from    int // what the next commit's checksum begins with
	)
	for at := segmentHeader; at+frameHeader <= len(data); {
		length := int(binary.LittleEndian.Uint32(data[at+4:]))
		switch data[at] {
		case segment.FrameEntry:
			entries = append(entries, uint32(at))
		case segment.FrameIndex:
			if scan.index != 0 {
				return scan, errors.New("it has two index blocks")
			}
			scan.index = at + frameHeader
			index = data[scan.index:min(len(data), scan.index+length)]
		case segment.FrameCommit:
			length = 0
			commits = append(commits, commit{at, from, len(entries)})
			from = at + frameHeader
		default:
			length = -1
		}
		if length < 0 {
			break
		}
		at += frameHeader + (length+frameHeader-1)/frameHeader*frameHeader
		scan.used = min(at, len(data))
	}
	if n := len(commits); n > 0 {
		last := commits[n-1]
		if last.entries == len(entries) && crcOf(data[last.from:last.at]) != binary.LittleEndian.Uint32(data[last.at+4:]) {
			commits = commits[:n-1]
		}
	}
	if n := len(commits); n > 0 {
		scan.end, scan.entries = commits[n-1].at+frameHeader, entries[:commits[n-1].entries]
	}
	if scan.sealed() && !bytes.Equal(index, indexOf(scan.entries)) {
		return scan, errors.New("its index block does not fit its entries")
	}
	return scan, nil
}

// indexOf is the payload of an index block.
func indexOf(entries []uint32) []byte {
	index := make([]byte, 0, 4*len(entries))
	for _, at := range entries {
		index = binary.LittleEndian.AppendUint32(index, at)
	}
	return index
}

// seal is what raft-wal writes behind the entries of a file that it seals: the
// index block, and a commit that covers it.
func (s segmentScan) seal() []byte {
	index := indexOf(s.entries)
	block := append([]byte{segment.FrameIndex, 0, 0, 0}, binary.LittleEndian.AppendUint32(nil, uint32(len(index)))...)
	block = append(block, index...)
	block = append(block, make([]byte, len(index)%frameHeader)...)
	block = append(block, segment.FrameCommit, 0, 0, 0)
	return binary.LittleEndian.AppendUint32(block, crcOf(block[:len(block)-4]))
}

// whole reports with an error whether entries from first to last are there and
// pass their checksums.
func (s segmentScan) whole(data []byte, base, first, last uint64) error {
	if last < first || last-base >= uint64(len(s.entries)) {
		return fmt.Errorf("it holds %d entries from %d on, and %d to %d are needed", len(s.entries), base, first, last)
	}
	for index := first; index <= last; index++ {
		at := int(s.entries[index-base]) + frameHeader
		var entry raft.Log
		err := entryCodec{}.Decode(data[at:at+int(binary.LittleEndian.Uint32(data[at-4:]))], &entry)
		if err == nil && entry.Index != index {
			err = fmt.Errorf("entry %d lies in its place", entry.Index)
		}
		if err != nil {
			return fmt.Errorf("entry %d: %w", index, err)
		}
	}
	return nil
}

// repair mends, before raft-wal sees them, what raft-wal leaves behind and then
// refuses, or takes no more entries into. Each was acknowledged whole, or never:
//
//   - a file that was truncated by version 0.4.0 is sealed in the list and has
//     no index block: its entries are there, and the block is written behind them;
//   - the newest file was sealed, and the process ended before the list said so;
//   - the newest file was being sealed when the power was cut.
//
// Entries decide by their own checksums. A file that is changed is copied before,
// with the list.
type repair struct {
	dir   string // of the server
	list  record
	known logMetaRecord
	log   *slog.Logger

	acknowledged uint64 // by the watermark
	backup       string // directory of this repair, once there is one
}

// repairLog looks at the files of a log and mends what can be mended.
func repairLog(dir string, list record, acknowledged uint64, log *slog.Logger) error {
	payload, err := list.load()
	if err != nil || payload == nil {
		return err // the list is refused, or made, where it is used
	}
	r := &repair{dir: dir, list: list, acknowledged: acknowledged, log: log}
	if err := json.Unmarshal(payload, &r.known); err != nil {
		return &CorruptError{File: list.name(), Err: err}
	}
	segments := r.known.State.Segments
	for i := range segments {
		info := &segments[i]
		switch {
		case info.SealTime.IsZero() && i == len(segments)-1:
			err = r.newest(info)
		case !info.SealTime.IsZero() && info.IndexStart == 0:
			err = r.withoutIndex(info)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *repair) path(info *types.SegmentInfo) string {
	return filepath.Join(r.dir, logDir, segment.FileName(*info))
}

// withoutIndex adds to a sealed file the index block that it lacks.
func (r *repair) withoutIndex(info *types.SegmentInfo) error {
	path := r.path(info)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &CorruptError{File: path, Err: err}
	}
	if err != nil {
		return fmt.Errorf("read log file: %w", err)
	}
	scan, err := scanSegment(data)
	if err == nil {
		err = scan.whole(data, info.BaseIndex, info.MinIndex, info.MaxIndex)
	}
	if err != nil {
		return &CorruptError{File: path, Err: fmt.Errorf("it was sealed without an index block, which cannot be made: %w", err)}
	}
	if scan.sealed() {
		info.IndexStart = uint64(scan.index)
		return r.store("log file was sealed, and the list did not say where its index is", info, data[:scan.used], nil)
	}
	info.IndexStart = uint64(scan.end + frameHeader)
	return r.store("log file was sealed without an index block: it is made from the entries", info, data[:scan.used], func(file *os.File) error {
		_, err := file.WriteAt(scan.seal(), int64(scan.end))
		return err
	})
}

// newest mends the file that is written to, where it was sealed or half sealed.
func (r *repair) newest(info *types.SegmentInfo) error {
	data, err := os.ReadFile(r.path(info))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // listed and not yet made
	}
	if err != nil {
		return fmt.Errorf("read log file: %w", err)
	}
	scan, err := scanSegment(data)
	switch {
	case err != nil:
		return &CorruptError{File: r.path(info), Err: err}
	case scan.torn():
		if info.BaseIndex+uint64(len(scan.entries)) <= r.acknowledged {
			return nil // that is no torn write, and refused where the end is compared
		}
		return r.store("log file was being sealed when the server ended: what was not acknowledged is wiped", info, data[:scan.used], func(file *os.File) error {
			_, err := file.WriteAt(make([]byte, scan.used-scan.end), int64(scan.end))
			return err
		})
	case !scan.sealed():
		return nil
	}
	last := info.BaseIndex + uint64(len(scan.entries)) - 1
	if err := scan.whole(data, info.BaseIndex, info.MinIndex, last); err != nil {
		return &CorruptError{File: r.path(info), Err: err}
	}
	state := &r.known.State
	sealed := *info
	sealed.SealTime, sealed.MaxIndex, sealed.IndexStart = time.Now(), last, uint64(scan.index)
	next := types.SegmentInfo{ // as raft-wal would have made it
		ID:         state.NextSegmentID,
		BaseIndex:  last + 1,
		MinIndex:   last + 1,
		SizeLimit:  info.SizeLimit,
		Codec:      info.Codec,
		CreateTime: time.Now(),
	}
	state.NextSegmentID++
	state.Segments = append(state.Segments[:len(state.Segments)-1], sealed, next)
	return r.store("log file was sealed when the server ended, and the list did not say so", &sealed, data[:scan.used], nil)
}

// store keeps what was, changes the file, and then the list. Interrupted, it is
// begun again at the next start and comes to the same.
func (r *repair) store(what string, info *types.SegmentInfo, before []byte, change func(*os.File) error) error {
	if change != nil {
		if err := r.backUp(info, before); err != nil {
			return fmt.Errorf("keep a copy of the log before its repair: %w", err)
		}
		file, err := os.OpenFile(r.path(info), os.O_RDWR, 0)
		if err != nil {
			return fmt.Errorf("repair log file: %w", err)
		}
		if err = change(file); err == nil {
			err = file.Sync()
		}
		if err = errors.Join(err, file.Close()); err != nil {
			return fmt.Errorf("repair log file: %w", err)
		}
	}
	payload, err := json.Marshal(r.known)
	if err != nil {
		return fmt.Errorf("encode list of log files: %w", err)
	}
	if err := r.list.save(payload); err != nil {
		return fmt.Errorf("save list of log files: %w", err)
	}
	r.log.Warn("log repaired: "+what, logkey.Path, r.path(info), "copy", r.backup)
	return nil
}

// backUp copies a log file, and the list before the first of them.
func (r *repair) backUp(info *types.SegmentInfo, before []byte) error {
	if r.backup == "" {
		parent := filepath.Join(r.dir, repairedDir)
		if err := os.MkdirAll(parent, 0o700); err != nil {
			return err
		}
		backup, err := os.MkdirTemp(parent, time.Now().UTC().Format("20060102T150405Z-"))
		if err != nil {
			return err
		}
		list, err := os.ReadFile(r.list.name())
		if err != nil {
			return err
		}
		if err := writeSynced(filepath.Join(backup, logMetaFile), list); err != nil {
			return err
		}
		r.backup = backup
	}
	if err := writeSynced(filepath.Join(r.backup, segment.FileName(*info)), before); err != nil {
		return err
	}
	return syncDir(r.backup)
}

package objects

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// A journal says what of an upload is on the disk. A record is written after that, and
// the answer to whoever sent it comes after the record.
const (
	recordChunk = 'c' // a chunk is at its first spot
	recordFile  = 'f' // a file is whole
	recordLost  = 'l' // a chunk was, and is not believed any more, nor is its file
	recordSize  = 1 + 4 + 4
)

// readJournals believes the journals of all nodes, as far as their records are whole.
func (u *upload) readJournals(nodeID string) error {
	dir, err := u.dir.Open(".")
	if err != nil {
		return err
	}
	names, err := dir.Readdirnames(-1)
	if err = errors.Join(err, dir.Close()); err != nil {
		return err
	}
	for _, name := range names {
		if !strings.HasPrefix(name, journalFile) {
			continue
		}
		data, err := readSmall(u.dir, name, 1<<30)
		if err != nil {
			return err
		}
		good := u.believe(data)
		if name == journalFile+nodeID && good < len(data) { // the end of a write that was cut off
			if err := truncate(u.dir, name, int64(good)); err != nil {
				return err
			}
		}
	}
	u.mu.journal, err = u.dir.OpenFile(journalFile+nodeID, os.O_WRONLY|os.O_CREATE|os.O_APPEND|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	return syncDir(u.dir, ".")
}

func truncate(root *os.Root, name string, size int64) error {
	file, err := root.OpenFile(name, os.O_WRONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	return errors.Join(file.Truncate(size), file.Sync(), file.Close())
}

// believe takes in the records of a journal up to the first one that is not whole, and
// returns how many bytes they have.
func (u *upload) believe(data []byte) (good int) {
	for ; len(data)-good >= recordSize; good += recordSize {
		record := data[good : good+recordSize]
		at := int(binary.BigEndian.Uint32(record[1:]))
		if crc32.ChecksumIEEE(record[:5]) != binary.BigEndian.Uint32(record[5:]) {
			return good
		}
		switch kind := record[0]; {
		case kind == recordFile && at < len(u.mu.filled):
			u.fillLocked(at)
		case kind == recordChunk && at < len(u.mu.have):
			u.mu.have[at] = true
		case kind == recordLost && at < len(u.mu.have):
			u.mu.have[at], u.mu.filled[u.spots[at].entry] = false, false
		default:
			return good
		}
	}
	return good
}

// fillLocked says that a file is whole, and so that the chunks are there whose first
// spots are in it.
func (u *upload) fillLocked(at int) {
	u.mu.filled[at] = true
	offset := int64(0)
	for _, chunk := range u.manifest.Entries[at].Chunks {
		if c := u.index[chunk.Digest]; u.spots[c] == (spot{at, offset}) {
			u.mu.have[c] = true
		}
		offset += chunk.Size
	}
}

// note writes records of one kind, and believes them when they are on the disk.
func (u *upload) note(kind byte, numbers []int) error {
	data := make([]byte, 0, len(numbers)*recordSize)
	for _, number := range numbers {
		begin := len(data)
		data = binary.BigEndian.AppendUint32(append(data, kind), uint32(number))
		data = binary.BigEndian.AppendUint32(data, crc32.ChecksumIEEE(data[begin:]))
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	end, err := u.mu.journal.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	_, err = u.mu.journal.Write(data)
	if err == nil {
		err = u.mu.journal.Sync()
	}
	if err != nil { // nothing that follows a broken record would be believed
		return errors.Join(err, u.mu.journal.Truncate(end))
	}
	u.believe(data)
	return nil
}

// lost says that the bytes of a chunk are not those that came. Its whole file is not
// believed any more.
func (u *upload) lost(chunk int) error {
	var all []int
	for other := range u.spots {
		if u.spots[other].entry == u.spots[chunk].entry {
			all = append(all, other)
		}
	}
	return u.note(recordLost, all)
}

var errNotRegular = &fs.PathError{Op: "open", Path: "a file", Err: errors.New("not a regular file")}

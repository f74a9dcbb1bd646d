package consensus

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// recordMagic begins every record file.
const recordMagic = "nmlrec1\n"

// crcTable is computed on first use: package initialisation stays empty.
var crcTable = sync.OnceValue(func() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) })

func crcOf(data []byte) uint32 { return crc32.Checksum(data, crcTable()) }

// record is a small piece of state that is replaced as a whole or not at all.
type record interface {
	// load returns the payload, or nothing and no error where none was saved.
	load() ([]byte, error)
	// save returns when the payload would survive a power cut. After an error
	// the file on disk holds the old or the new payload; the caller must not
	// go on as if it knew which.
	save(payload []byte) error
	// name is for error texts.
	name() string
}

// encodeRecord frames payload: magic, length, payload, CRC-32C of all before.
func encodeRecord(payload []byte) []byte {
	data := make([]byte, 0, len(recordMagic)+4+len(payload)+4)
	data = append(data, recordMagic...)
	data = binary.BigEndian.AppendUint32(data, uint32(len(payload)))
	data = append(data, payload...)
	return binary.BigEndian.AppendUint32(data, crcOf(data))
}

// decodeRecord returns the payload of a framed record.
func decodeRecord(data []byte) ([]byte, error) {
	head := len(recordMagic) + 4
	if len(data) < head+4 {
		return nil, fmt.Errorf("record has %d bytes, which is too short", len(data))
	}
	if string(data[:len(recordMagic)]) != recordMagic {
		return nil, errors.New("record does not begin as one")
	}
	length := int(binary.BigEndian.Uint32(data[len(recordMagic):]))
	if length != len(data)-head-4 {
		return nil, fmt.Errorf("record says %d bytes and holds %d", length, len(data)-head-4)
	}
	end := head + length
	if crcOf(data[:end]) != binary.BigEndian.Uint32(data[end:]) {
		return nil, errors.New("record fails its checksum")
	}
	return data[head:end], nil
}

// fileRecord is a record in a file, replaced by rename.
type fileRecord struct{ path string }

func (r fileRecord) name() string { return r.path }

func (r fileRecord) load() ([]byte, error) {
	data, err := os.ReadFile(r.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read record: %w", err)
	}
	payload, err := decodeRecord(data)
	if err != nil {
		return nil, &CorruptError{File: r.path, Err: err}
	}
	return payload, nil
}

func (r fileRecord) save(payload []byte) error {
	err := r.replace(payload)
	if outOfRoom(err) && giveReserve(filepath.Dir(r.path)) {
		return r.replace(payload)
	}
	return err
}

func (r fileRecord) replace(payload []byte) error {
	temporary := r.path + ".tmp"
	if err := writeSynced(temporary, encodeRecord(payload)); err != nil {
		return err
	}
	if err := os.Rename(temporary, r.path); err != nil {
		return fmt.Errorf("put record in place: %w", err)
	}
	return syncDir(filepath.Dir(r.path))
}

// writeSynced writes a whole file and waits until the disk has it.
func writeSynced(path string, data []byte) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("create record: %w", err)
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	return nil
}

// syncDir makes renames and removals in dir durable.
func syncDir(dir string) error {
	handle, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("open directory to sync it: %w", err)
	}
	err = handle.Sync()
	if closeErr := handle.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	return nil
}

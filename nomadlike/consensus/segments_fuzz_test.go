package consensus

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"
)

// smallLog opens a log of small files in a directory, and reads it whole.
func smallLog(t testing.TB, dir string, fresh bool) (*guardedLog, error) {
	config := Config{Dir: dir, Log: slog.New(slog.DiscardHandler), segmentBytes: 4 << 10, ExitFunc: func(int) {}}
	guard := newGuard(config)
	meta := &logMeta{record: fileRecord{filepath.Join(dir, logMetaFile)}, fresh: fresh, guard: guard}
	log, err := openLog(config, guard, meta)
	if err != nil {
		return nil, err
	}
	if err := log.verify(); err != nil {
		return nil, errors.Join(err, log.close())
	}
	return log, nil
}

// entriesOf are what the log of fuzzed segments holds.
func entriesOf(from, to uint64) []*raft.Log {
	var entries []*raft.Log
	for index := from; index <= to; index++ {
		entries = append(entries, &raft.Log{Index: index, Term: 1, Data: bytes.Repeat([]byte{byte(index)}, 100)})
	}
	return entries
}

// FuzzSegment reads log files that hold anything: the newest one, which is
// recovered by reading it through, or an older one, of which the list of files
// says where its index lies. A file is refused, or what it returns fits together
// and the log goes on after it.
func FuzzSegment(f *testing.F) {
	origin := f.TempDir()
	if err := os.Mkdir(filepath.Join(origin, logDir), 0o700); err != nil {
		f.Fatal(err)
	}
	log, err := smallLog(f, origin, true)
	if err != nil {
		f.Fatal(err)
	}
	for index := uint64(1); index <= 60; index += 3 {
		if err := log.StoreLogs(entriesOf(index, index+2)); err != nil {
			f.Fatal(err)
		}
	}
	if err := log.close(); err != nil {
		f.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(origin, logDir, "*.wal"))
	if err != nil || len(files) < 2 {
		f.Fatalf("log files %v, %v: this shows nothing", files, err)
	}
	for _, newest := range []bool{false, true} {
		data, err := os.ReadFile(files[at(files, newest)])
		if err != nil {
			f.Fatal(err)
		}
		data = bytes.TrimRight(data, "\x00")
		f.Add(data, newest)
		f.Add(data[:len(data)/2], newest)
		f.Add([]byte{}, newest)
	}
	base, n := f.TempDir(), 0
	f.Fuzz(func(t *testing.T, data []byte, newest bool) {
		n++
		dir := filepath.Join(base, fmt.Sprint(n))
		if err := os.CopyFS(dir, os.DirFS(origin)); err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		if err := os.WriteFile(filepath.Join(dir, logDir, filepath.Base(files[at(files, newest)])), data, 0o600); err != nil {
			t.Fatal(err)
		}
		if newest { // what was acknowledged is not there: then any end is one
			if err := os.Remove(filepath.Join(dir, watermarkFile)); err != nil {
				t.Fatal(err)
			}
		}
		log, err := smallLog(t, dir, false)
		if err != nil {
			return // refused
		}
		defer log.close()
		last, err := log.LastIndex()
		if err != nil {
			t.Fatal(err)
		}
		next := entriesOf(last+1, last+3)
		if err := log.StoreLogs(next); err != nil {
			t.Fatalf("a log that ends at %d was let through and takes no more: %v", last, err)
		}
		if err := log.close(); err != nil {
			t.Fatal(err)
		}
		again, err := smallLog(t, dir, false)
		if err != nil {
			t.Fatalf("a log that was let through, and written, is refused: %v", err)
		}
		defer again.close()
		for _, want := range next {
			var got raft.Log
			if err := again.GetLog(want.Index, &got); err != nil || !bytes.Equal(got.Data, want.Data) {
				t.Fatalf("entry %d is %q, %v", want.Index, got.Data, err)
			}
		}
	})
}

func at(files []string, newest bool) int {
	if newest {
		return len(files) - 1
	}
	return 0
}

// FuzzRecord decodes record files: what is let through is what was encoded.
func FuzzRecord(f *testing.F) {
	f.Add(encodeRecord([]byte(`{"format":1}`)))
	f.Add(encodeRecord(nil))
	f.Add([]byte(recordMagic + "\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		payload, err := decodeRecord(data)
		if err == nil && !bytes.Equal(encodeRecord(payload), data) {
			t.Errorf("%q holds %q, which is encoded as %q", data, payload, encodeRecord(payload))
		}
		// With a right checksum, so that the rest is reached.
		if got, err := decodeRecord(encodeRecord(data)); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%q is decoded as %q, %v", data, got, err)
		}
	})
}

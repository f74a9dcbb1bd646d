package data

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// FuzzJournal: what a crash leaves of a journal is read up to the first record
// that is not whole, and what is read is what was written.
func FuzzJournal(f *testing.F) {
	one := (&record{file: 1, chunk: 2, digest: [32]byte{3}}).encode()
	f.Add(append(header("boot"), one...))
	f.Add(append(append(header("boot"), one...), one[:7]...))
	f.Add(header("other"))
	f.Add([]byte{})
	path := filepath.Join(f.TempDir(), "journal")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		var records []record
		_, good, err := readJournal(path, "boot", func(r *record) error {
			records = append(records, *r)
			return nil
		})
		if err != nil {
			return
		}
		if good < 0 || good > int64(len(text)) || len(records)*recordBytes > len(text) {
			t.Fatalf("%d records, %d good bytes of %d", len(records), good, len(text))
		}
		for i := range records {
			if !bytes.Contains(text, records[i].encode()) {
				t.Fatalf("record %d was never written", i)
			}
		}
	})
}

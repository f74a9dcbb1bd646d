package tasklog_test

import (
	"bytes"
	"os"
	"testing"

	"nomadlike/plugins/driver/tasklog"
)

// BenchmarkWriter is what a task pays that prints without end.
func BenchmarkWriter(b *testing.B) {
	line := append(bytes.Repeat([]byte("x"), 99), '\n')
	dir, err := os.Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer dir.Close()
	w, err := tasklog.NewWriter(dir, true, tasklog.Stdout, 4, 10<<20)
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		if _, err := w.Write(line); err != nil {
			b.Fatal(err)
		}
	}
}

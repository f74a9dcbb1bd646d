package tasklog_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"nomadlike/plugins/driver/tasklog"
)

// spliced sends chunks through a pipe into a stream, with a new Writer after
// every few, as after the death of a process.
func spliced(t *testing.T, dir string, chunks [][]byte, files int, size int64) {
	t.Helper()
	var pipe [2]int
	if err := syscall.Pipe2(pipe[:], syscall.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(pipe[0])
	sent := make(chan error, 1)
	go func() {
		defer syscall.Close(pipe[1])
		for _, chunk := range chunks {
			for len(chunk) > 0 {
				n, err := syscall.Write(pipe[1], chunk)
				if err != nil {
					sent <- err
					return
				}
				chunk = chunk[n:]
			}
		}
		sent <- nil
	}()
	for ended := false; !ended; {
		logs, fresh, err := tasklog.PrepareDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		w, err := tasklog.NewWriter(logs, fresh, tasklog.Stdout, files, size)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := w.Splice(pipe[0]); errors.Is(err, io.EOF) {
				ended = true
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		logs.Close() // and w is left as it is, as by a process that was killed
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
}

func kept(t *testing.T, dir string) []byte {
	t.Helper()
	var text bytes.Buffer
	err := tasklog.Read(context.Background(), tasklog.Request{Dir: dir, Stream: tasklog.Stdout}, func(c tasklog.Chunk) error {
		text.Write(c.Data)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}

func TestSplice(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	var chunks [][]byte
	for range 200 {
		chunk := make([]byte, 1+random.Intn(3000))
		for i := range chunk {
			chunk[i] = byte(random.Intn(256))
		}
		chunks = append(chunks, chunk)
	}
	want := bytes.Join(chunks, nil)
	t.Run("all", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "logs")
		spliced(t, dir, chunks, 1000, 4096)
		if !bytes.Equal(kept(t, dir), want) {
			t.Error("the stream is not what was sent")
		}
	})
	t.Run("rotated", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "logs")
		spliced(t, dir, chunks, 3, 4096)
		got := kept(t, dir)
		entries, err := filepath.Glob(filepath.Join(dir, "stdout.[0-9]*"))
		if err != nil || len(entries) != 3 {
			t.Errorf("%d files are left, %v", len(entries), err)
		}
		if len(got) < 2*4096 || len(got) > 3*4096 || !bytes.HasSuffix(want, got) {
			t.Errorf("%d bytes are kept, and are not the end of what was sent", len(got))
		}
	})
}

// TestSpliceFullDisk keeps the task going when nothing can be written.
func TestSpliceFullDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	logs, fresh, err := tasklog.PrepareDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer logs.Close()
	w, err := tasklog.NewWriter(logs, fresh, tasklog.Stdout, 2, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	var pipe [2]int
	if err := syscall.Pipe2(pipe[:], syscall.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(pipe[0])
	send := func(text string) {
		if _, err := syscall.Write(pipe[1], []byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := w.Splice(pipe[0]); err != nil {
			t.Fatal(err)
		}
	}
	// A name that cannot be opened for writing stands for the full disk.
	if err := os.Mkdir(dir+"/stdout.0", 0o700); err != nil {
		t.Fatal(err)
	}
	send("lost\n")
	if err := os.Remove(dir + "/stdout.0"); err != nil {
		t.Fatal(err)
	}
	send("kept\n")
	syscall.Close(pipe[1])
	if err := w.Splice(pipe[0]); !errors.Is(err, io.EOF) {
		t.Errorf("the end gives %v", err)
	}
	if got := string(kept(t, dir)); got != "\n[nomadlike: 5 bytes of output lost: is a directory]\nkept\n" {
		t.Errorf("the log is %q", got)
	}
}

package tasklog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"nomadlike/plugins/driver/tasklog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// logDir makes a log directory and a writer of its stdout.
func logDir(t testing.TB, files int, size int64) (string, *tasklog.Writer) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "logs")
	return path, reopen(t, path, files, size)
}

func reopen(t testing.TB, path string, files int, size int64) *tasklog.Writer {
	t.Helper()
	dir, fresh, err := tasklog.PrepareDir(path)
	if err != nil {
		t.Fatal(err)
	}
	w, err := tasklog.NewWriter(dir, fresh, tasklog.Stdout, files, size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.Close()
		dir.Close()
	})
	return w
}

// collected is all that a Read has emitted.
type collected struct {
	text  string
	lost  int64
	first int64 // offset of the first chunk
}

func read(t testing.TB, request tasklog.Request) (collected, error) {
	t.Helper()
	got := collected{first: -1}
	next := int64(-1)
	err := tasklog.Read(context.Background(), request, func(c tasklog.Chunk) error {
		if got.first < 0 {
			got.first = c.Offset
		} else if c.Offset != next+c.Lost {
			t.Errorf("chunk at %d follows %d, with %d lost", c.Offset, next, c.Lost)
		}
		if len(c.Data) == 0 || len(c.Data) > tasklog.ChunkBytesMax {
			t.Errorf("chunk of %d bytes", len(c.Data))
		}
		next = c.Offset + int64(len(c.Data))
		got.lost += c.Lost
		got.text += string(c.Data)
		return nil
	})
	return got, err
}

func TestReadParts(t *testing.T) {
	dir, w := logDir(t, 3, 10)
	fmt.Fprint(w, "0123456789abcdefghij0123456789ABCDE\n") // segments 1, 2, 3 are left
	w.Close()
	cases := []struct {
		name    string
		request tasklog.Request
		want    collected
	}{
		{"all", tasklog.Request{}, collected{"abcdefghij0123456789ABCDE\n", 10, 10}},
		{"from inside", tasklog.Request{Offset: 15}, collected{"fghij0123456789ABCDE\n", 0, 15}},
		{"from what is lost", tasklog.Request{Offset: 4}, collected{"abcdefghij0123456789ABCDE\n", 6, 10}},
		{"from beyond", tasklog.Request{Offset: 1000}, collected{"", 0, -1}},
		{"limit", tasklog.Request{Offset: 18, Limit: 5}, collected{"ij012", 0, 18}},
		{"tail", tasklog.Request{TailBytes: 8}, collected{"89ABCDE\n", 0, 28}},
		{"tail longer than all", tasklog.Request{TailBytes: 1000}, collected{"abcdefghij0123456789ABCDE\n", 0, 10}},
		{"negative", tasklog.Request{Offset: -5}, collected{"abcdefghij0123456789ABCDE\n", 10, 10}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.request.Dir, c.request.Stream = dir, tasklog.Stdout
			got, err := read(t, c.request)
			if err != nil || got != c.want {
				t.Errorf("got %+v, %v, want %+v", got, err, c.want)
			}
		})
	}
}

func TestTailLines(t *testing.T) {
	for _, c := range []struct {
		text  string
		lines int
		want  string
	}{
		{"a\nb\nc\n", 1, "c\n"},
		{"a\nb\nc\n", 2, "b\nc\n"},
		{"a\nb\nc\n", 3, "a\nb\nc\n"},
		{"a\nb\nc\n", 9, "a\nb\nc\n"},
		{"a\nb\nc", 1, "c"},
		{"a\nb\nc", 2, "b\nc"},
		{"\n\n\n", 2, "\n\n"},
		{"", 3, ""},
		{strings.Repeat("x", 95) + "\nlast\n", 1, "last\n"},
	} {
		dir, w := logDir(t, 100, 7)
		fmt.Fprint(w, c.text)
		w.Close()
		got, err := read(t, tasklog.Request{Dir: dir, Stream: tasklog.Stdout, TailLines: c.lines})
		if err != nil || got.text != c.want {
			t.Errorf("last %d lines of %q are %q, %v", c.lines, c.text, got.text, err)
		}
	}
}

// TestPowerLoss reads what is left of a log when each of its files has lost
// some of its end: every byte that is left is at its place, and what is gone is
// told.
func TestPowerLoss(t *testing.T) {
	const size = 10
	text := "0123456789abcdefghij0123456789ABCDE\n"
	for _, c := range []struct {
		left string // bytes of each file that are left
		want string // a dot for each byte that is told to be lost
	}{
		{"10 10 10 6", text},
		{"0 10 10 6", "..........abcdefghij0123456789ABCDE\n"},
		{"3 10 10 6", "012.......abcdefghij0123456789ABCDE\n"},
		{"3 0 1 4", "012.................0.........ABCD"},
		{"0 0 0 2", "..............................AB"},
		{"10 4 0 0", "0123456789abcd"},
		{"0 0 0 0", ""},
	} {
		t.Run(c.left, func(t *testing.T) {
			dir, w := logDir(t, 5, size)
			fmt.Fprint(w, text)
			w.Close()
			for i, left := range strings.Fields(c.left) {
				n, err := strconv.ParseInt(left, 10, 64)
				if err == nil {
					err = os.Truncate(filepath.Join(dir, fmt.Sprint("stdout.", i)), n)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			for offset := range len(c.want) {
				got := ""
				err := tasklog.Read(context.Background(), tasklog.Request{Dir: dir, Stream: tasklog.Stdout, Offset: int64(offset)}, func(chunk tasklog.Chunk) error {
					got += strings.Repeat(".", int(chunk.Lost)) + string(chunk.Data)
					if end := int(chunk.Offset) + len(chunk.Data); string(chunk.Data) != text[chunk.Offset:end] {
						t.Errorf("bytes %d to %d are %q", chunk.Offset, end, chunk.Data)
					}
					return nil
				})
				if err != nil || got != c.want[offset:] {
					t.Errorf("from %d: %q, %v, want %q", offset, got, err, c.want[offset:])
				}
			}
		})
	}
}

// TestAgainstOneLongString checks rotation and reading against the obvious: a
// string that holds all that was written.
func TestAgainstOneLongString(t *testing.T) {
	base := t.TempDir()
	n := 0
	rapid.Check(t, func(r *rapid.T) {
		n++
		files, size := rapid.IntRange(2, 5).Draw(r, "files"), rapid.Int64Range(1, 40).Draw(r, "size")
		path := filepath.Join(base, fmt.Sprint(n))
		w := reopen(t, path, files, size)
		var all strings.Builder
		for _, part := range rapid.SliceOfN(rapid.StringN(0, 30, 60), 0, 12).Draw(r, "parts") {
			fmt.Fprint(w, part)
			all.WriteString(part)
			if rapid.IntRange(0, 5).Draw(r, "restart") == 0 {
				w.Close()
				// Another size may be configured by then; the first one stays.
				w = reopen(t, path, files, rapid.Int64Range(1, 40).Draw(r, "other size"))
			}
		}
		w.Close()
		whole := all.String()
		offset := rapid.Int64Range(0, int64(len(whole))+3).Draw(r, "offset")
		got, err := read(t, tasklog.Request{Dir: path, Stream: tasklog.Stdout, Offset: offset})
		if err != nil {
			r.Fatal(err)
		}
		if offset > int64(len(whole)) {
			offset = int64(len(whole))
		}
		if kept := whole[offset:]; got.lost+int64(len(got.text)) != int64(len(kept)) || !strings.HasSuffix(kept, got.text) {
			r.Fatalf("from %d of %d bytes: %d lost, got %q of %q", offset, len(whole), got.lost, got.text, kept)
		}
	})
}

func TestFollow(t *testing.T) {
	dir, w := logDir(t, 2, 8)
	ended := make(chan struct{})
	seen := make(chan string, 2000)
	done := make(chan error, 1)
	var lost, length int64
	go func() {
		done <- tasklog.Read(context.Background(), tasklog.Request{Dir: dir, Stream: tasklog.Stdout, Follow: true, Ended: ended}, func(c tasklog.Chunk) error {
			lost += c.Lost
			length += int64(len(c.Data))
			seen <- string(c.Data)
			return nil
		})
	}()
	// Each part is awaited, so that nothing is rotated away unread.
	for i := range 20 {
		part := fmt.Sprintf("%d,", i)
		fmt.Fprint(w, part)
		var got string
		for got != part {
			got += <-seen
		}
	}
	// Then a flood that no reader keeps up with.
	flood := strings.Repeat("y", 10_000)
	fmt.Fprint(w, flood)
	w.Close()
	close(ended)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if lost+length != int64(len(flood)+10*2+10*3) {
		t.Errorf("%d lost, %d read", lost, length)
	}
}

func TestFollowEnds(t *testing.T) {
	dir, w := logDir(t, 2, 100)
	fmt.Fprint(w, "text")
	t.Run("by context", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		err := tasklog.Read(ctx, tasklog.Request{Dir: dir, Stream: tasklog.Stdout, Follow: true}, func(tasklog.Chunk) error { return nil })
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("read gives %v", err)
		}
	})
	t.Run("by its receiver", func(t *testing.T) {
		enough := errors.New("enough")
		err := tasklog.Read(context.Background(), tasklog.Request{Dir: dir, Stream: tasklog.Stdout, Follow: true}, func(tasklog.Chunk) error { return enough })
		if !errors.Is(err, enough) {
			t.Errorf("read gives %v", err)
		}
	})
}

func TestRefused(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	place := map[string]func(path string) error{
		"link":      func(path string) error { return os.Symlink(secret, path) },
		"hard link": func(path string) error { return os.Link(secret, path) },
		"fifo":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"socket":    func(path string) error { return syscall.Mknod(path, syscall.S_IFSOCK|0o600, 0) },
		"directory": func(path string) error { return os.Mkdir(path, 0o700) },
	}
	for name, put := range place {
		t.Run(name, func(t *testing.T) {
			dir, w := logDir(t, 2, 10)
			w.Close()
			path := filepath.Join(dir, "stdout.0")
			if err := put(path); err != nil {
				t.Fatal(err)
			}
			for _, request := range []tasklog.Request{{}, {TailLines: 3}, {TailBytes: 3}} {
				request.Dir, request.Stream = dir, tasklog.Stdout
				got, err := read(t, request)
				if err == nil || got.text != "" {
					t.Errorf("read gives %q, %v", got.text, err)
				}
			}
			if name == "directory" {
				return // cannot be removed as a file is; output is lost, and counted
			}
			again := reopen(t, dir, 2, 10)
			fmt.Fprint(again, "fresh")
			if got, err := read(t, tasklog.Request{Dir: dir, Stream: tasklog.Stdout}); err != nil || got.text != "fresh" {
				t.Errorf("after writing anew it gives %q, %v", got.text, err)
			}
			if text, err := os.ReadFile(secret); err != nil || string(text) != "secret" {
				t.Errorf("the secret is %q, %v", text, err)
			}
		})
	}
	t.Run("linked log directory", func(t *testing.T) {
		dir, _ := logDir(t, 2, 10)
		link := filepath.Join(t.TempDir(), "link")
		if err := os.Symlink(dir, link); err != nil {
			t.Fatal(err)
		}
		if _, err := read(t, tasklog.Request{Dir: link, Stream: tasklog.Stdout}); !errors.Is(err, tasklog.ErrRefused) {
			t.Errorf("read gives %v", err)
		}
		if _, _, err := tasklog.PrepareDir(link); !errors.Is(err, tasklog.ErrRefused) {
			t.Errorf("prepare gives %v", err)
		}
	})
	t.Run("log directory that others may write to", func(t *testing.T) {
		dir, _ := logDir(t, 2, 10)
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if _, err := read(t, tasklog.Request{Dir: dir, Stream: tasklog.Stdout}); !errors.Is(err, tasklog.ErrRefused) {
			t.Errorf("read gives %v", err)
		}
	})
	t.Run("stream that is none", func(t *testing.T) {
		dir, _ := logDir(t, 2, 10)
		if _, err := read(t, tasklog.Request{Dir: dir, Stream: "../x"}); err == nil {
			t.Error("read accepts it")
		}
	})
	t.Run("directory that is missing", func(t *testing.T) {
		_, err := read(t, tasklog.Request{Dir: filepath.Join(t.TempDir(), "none"), Stream: tasklog.Stdout})
		if !errors.Is(err, os.ErrNotExist) {
			t.Errorf("read gives %v", err)
		}
	})
}

func TestSplitter(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		text := rapid.SliceOfN(rapid.SampledFrom([]byte("ab\n")), 0, 200).Draw(r, "text")
		long := bytes.Repeat([]byte("z"), rapid.SampledFrom([]int{0, 10, tasklog.LineBytesMax - 1, tasklog.LineBytesMax, 3*tasklog.LineBytesMax + 7}).Draw(r, "long"))
		text = append(append(text, long...), '\n')
		var s tasklog.Splitter
		var back []byte
		emit := func(line []byte, whole bool) {
			if len(line) > tasklog.LineBytesMax {
				r.Fatalf("line of %d bytes", len(line))
			}
			back = append(back, line...)
			if whole {
				back = append(back, '\n')
			}
		}
		rest := text
		for len(rest) > 0 {
			n := min(rapid.IntRange(1, 70_000).Draw(r, "piece"), len(rest))
			s.Feed(rest[:n], emit)
			rest = rest[n:]
		}
		s.Flush(emit)
		if !bytes.Equal(back, text) {
			r.Fatalf("%d bytes became %d", len(text), len(back))
		}
	})
}

// FuzzRead reads directories that nobody has written properly.
func FuzzRead(f *testing.F) {
	f.Add("stdout.0", "abc", "stdout.1", "d", int64(0), int64(0), 0)
	f.Add("stdout.7", "abc", "stdout.999999999999999999", "", int64(5), int64(2), 1)
	f.Add("stdout.3", "abc", "stdout.of-2", "", int64(1), int64(0), 0)
	f.Add("stdout.3", "abc", "stdout.of-999999999999999999", "", int64(1), int64(0), 0)
	f.Add("stdout.00", "x", "stdout.-1", "y", int64(-1), int64(-1), -1)
	base := f.TempDir()
	n := 0
	f.Fuzz(func(t *testing.T, name1, text1, name2, text2 string, offset, tail int64, lines int) {
		n++
		dir := filepath.Join(base, fmt.Sprint(n))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		for name, text := range map[string]string{name1: text1, name2: text2} {
			if filepath.Base(name) == name && name != "." && name != ".." && name != "/" {
				_ = os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600) // a name that cannot be is no case
			}
		}
		total := 0
		_ = tasklog.Read(context.Background(), tasklog.Request{Dir: dir, Stream: tasklog.Stdout, Offset: offset, TailBytes: tail, TailLines: lines}, func(c tasklog.Chunk) error {
			if c.Offset < 0 || c.Lost < 0 {
				t.Errorf("chunk at %d, %d lost", c.Offset, c.Lost)
			}
			total += len(c.Data)
			return nil
		}) // any error is fine, a crash or a wrong number is not
		if total > len(text1)+len(text2) {
			t.Errorf("%d bytes out of %d", total, len(text1)+len(text2))
		}
	})
}

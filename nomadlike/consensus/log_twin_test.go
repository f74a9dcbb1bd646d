package consensus

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/hashicorp/raft-wal/segment"
	"pgregory.net/rapid"
)

// unseal turns a log into what raft-wal 0.4.0 would have left: each file that
// was cut short when it was written to has no index block.
func unseal(t rapid.TB, dir string) (count int) {
	t.Helper()
	list := fileRecord{filepath.Join(dir, logMetaFile)}
	payload, err := list.load()
	if err != nil {
		t.Fatal(err)
	}
	var known logMetaRecord
	if err := json.Unmarshal(payload, &known); err != nil {
		t.Fatal(err)
	}
	for i := range known.State.Segments {
		info := &known.State.Segments[i]
		path := filepath.Join(dir, logDir, segment.FileName(*info))
		data, err := os.ReadFile(path)
		if err != nil {
			if info.SealTime.IsZero() {
				continue
			}
			t.Fatal(err)
		}
		scan, err := scanSegment(data)
		if err != nil {
			t.Fatal(err)
		}
		if info.IndexStart == 0 || scan.end-len(scan.seal()) < 0 || !bytes.Equal(data[scan.end-len(scan.seal()):scan.end], scan.seal()) {
			continue // sealed by its last entries, in one batch with them
		}
		clear(data[scan.end-len(scan.seal()) : scan.end])
		info.IndexStart = 0
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		count++
	}
	if payload, err = json.Marshal(known); err != nil {
		t.Fatal(err)
	}
	if err := list.save(payload); err != nil {
		t.Fatal(err)
	}
	return count
}

// logTwin is a log on disk and what it must hold.
type logTwin struct {
	t    rapid.TB
	dir  string
	term uint64
	log  *guardedLog
	want []*raft.Log
	old  func() (refused int) // what the list and files are turned into at a restart, by a test
}

func newLogTwin(t rapid.TB, dir string) *logTwin {
	if err := os.MkdirAll(filepath.Join(dir, logDir), 0o700); err != nil {
		t.Fatal(err)
	}
	log, err := twinLog(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	return &logTwin{t: t, dir: dir, term: 1, log: log}
}

// twinLog opens a log whose files take about eight entries.
func twinLog(dir string, fresh bool) (*guardedLog, error) {
	config := Config{Dir: dir, Log: slog.New(slog.DiscardHandler), segmentBytes: 1 << 10, ExitFunc: func(int) {}}
	guard := newGuard(config)
	log, err := openLog(config, guard, &logMeta{record: fileRecord{filepath.Join(dir, logMetaFile)}, fresh: fresh, guard: guard})
	if err != nil {
		return nil, err
	}
	return log, log.verify()
}

func (l *logTwin) last() uint64 {
	if len(l.want) == 0 {
		return 0
	}
	return l.want[len(l.want)-1].Index
}

// append adds entries as one batch.
func (l *logTwin) append(count, size int) {
	l.t.Helper()
	var entries []*raft.Log
	for range count {
		entries = append(entries, &raft.Log{Index: l.last() + uint64(len(entries)) + 1, Term: l.term, Data: bytes.Repeat([]byte{byte(l.term)}, size)})
	}
	if err := l.log.StoreLogs(entries); err != nil {
		l.t.Fatalf("append %d after %d: %v", count, l.last(), err)
	}
	l.want = append(l.want, entries...)
}

// cut drops the newest entries, as a leader does that was deposed.
func (l *logTwin) cut(count int) {
	l.t.Helper()
	if count = min(count, len(l.want)); count == 0 {
		return
	}
	if err := l.log.DeleteRange(l.last()-uint64(count)+1, l.last()); err != nil {
		l.t.Fatalf("cut %d of %d: %v", count, l.last(), err)
	}
	l.want = l.want[:len(l.want)-count]
	l.term++
}

// compact drops the oldest entries.
func (l *logTwin) compact(count int) {
	l.t.Helper()
	if count = min(count, len(l.want)-1); count <= 0 {
		return
	}
	if err := l.log.DeleteRange(l.want[0].Index, l.want[count-1].Index); err != nil {
		l.t.Fatalf("compact %d: %v", count, err)
	}
	l.want = l.want[count:]
}

// leap drops everything, as a follower does that was sent a snapshot, and goes on
// after what that holds.
func (l *logTwin) leap(by int) {
	l.t.Helper()
	if len(l.want) == 0 {
		return
	}
	next := l.last() + uint64(by) + 1
	if err := l.log.DeleteRange(l.want[0].Index, l.last()); err != nil {
		l.t.Fatalf("drop all %d: %v", len(l.want), err)
	}
	l.want, l.term = nil, l.term+1
	first := &raft.Log{Index: next, Term: l.term, Data: []byte("after a snapshot")}
	if err := l.log.StoreLogs([]*raft.Log{first}); err != nil {
		l.t.Fatalf("append %d to an empty log: %v", next, err)
	}
	l.want = []*raft.Log{first}
}

// crash goes on with the files as they are at one moment, with a log that nobody
// closed. What the log does behind its callers' backs is over, or yet to come.
func (l *logTwin) crash() {
	l.t.Helper()
	from, to := l.dir, l.dir+"+"
	for before := ""; ; {
		if err := os.RemoveAll(to); err != nil {
			l.t.Fatal(err)
		}
		err := os.CopyFS(to, os.DirFS(from))
		if errors.Is(err, fs.ErrNotExist) {
			continue // a file went meanwhile
		}
		if err != nil {
			l.t.Fatal(err)
		}
		now := contents(l.t, to)
		if now == before {
			break
		}
		before = now
	}
	mustClose(l.t, l.log)
	if err := os.RemoveAll(from); err != nil {
		l.t.Fatal(err)
	}
	l.dir = to
	log, err := twinLog(l.dir, false)
	if err != nil {
		l.t.Fatalf("start after a crash with %d entries: %v", len(l.want), err)
	}
	l.log = log
	holds(l.t, log, l.want)
}

// contents is a sum over all files of a directory.
func contents(t rapid.TB, dir string) string {
	t.Helper()
	sum := sha256.New()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		fmt.Fprintf(sum, "%s %d\n", strings.TrimPrefix(path, dir), len(data))
		sum.Write(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(sum.Sum(nil))
}

func (l *logTwin) restart() {
	l.t.Helper()
	mustClose(l.t, l.log)
	if l.old != nil {
		l.old()
	}
	log, err := twinLog(l.dir, false)
	if err != nil {
		l.t.Fatalf("restart with %d entries: %v", len(l.want), err)
	}
	l.log = log
	holds(l.t, log, l.want)
}

// A log is cut at each of its entries, and so at every boundary of a file, and the
// server restarted, several times one upon the other, also as raft-wal 0.4.0
// would have left it, and without an end of the process before.
func TestLogIsCutAndRestartedAtEveryEntry(t *testing.T) {
	for _, end := range []string{"clean", "crash", "0.4.0"} {
		t.Run(end, func(t *testing.T) {
			as040 := end == "0.4.0"
			unsealed, entries := 0, 36 // five files
			for count := 1; count <= entries; count++ {
				l := newLogTwin(t, filepath.Join(t.TempDir(), fmt.Sprint(count)))
				again := l.restart
				if end == "crash" {
					again = l.crash
				}
				if as040 {
					l.old = func() int { unsealed += unseal(t, l.dir); return unsealed }
				}
				for len(l.want) < entries {
					l.append(1, 90)
				}
				for range 3 {
					l.cut(count)
					again()
					l.append(1+count%3, 90)
					again()
					for len(l.want) < entries {
						l.append(3, 90)
					}
				}
				l.restart()
				mustClose(t, l.log)
			}
			if as040 && unsealed < entries {
				t.Errorf("%d files were without an index block: this shows nothing", unsealed)
			}
		})
	}
}

// The same in any order and of any size.
func TestLogTwin(t *testing.T) {
	base, n := t.TempDir(), 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		l := newLogTwin(t, filepath.Join(base, fmt.Sprint(n)))
		defer func() { l.log.close() }()
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				l.append(rapid.IntRange(1, 9).Draw(t, "count"), rapid.IntRange(1, 300).Draw(t, "size"))
			},
			"cut":     func(t *rapid.T) { l.cut(rapid.IntRange(1, 30).Draw(t, "count")) },
			"compact": func(t *rapid.T) { l.compact(rapid.IntRange(1, 20).Draw(t, "count")) },
			"leap":    func(t *rapid.T) { l.leap(rapid.IntRange(0, 20).Draw(t, "by")) },
			"restart": func(t *rapid.T) { l.restart() },
			"crash":   func(t *rapid.T) { l.crash() },
			"old": func(t *rapid.T) {
				l.old = func() int { return unseal(t, l.dir) }
				l.restart()
				l.old = nil
			},
		})
		l.restart()
	})
}

// FuzzCut does the same by bytes: what to do, and how much.
func FuzzCut(f *testing.F) {
	f.Add([]byte{0, 9, 0, 9, 1, 4, 3, 0, 0, 2, 4, 0})
	f.Add([]byte{0, 200, 1, 1, 3, 0, 2, 3, 1, 250, 3, 0, 0, 1})
	f.Add([]byte{0, 9, 0, 9, 5, 3, 6, 0, 1, 0, 6, 0, 0, 8, 5, 0, 3, 0})
	base, n := f.TempDir(), 0
	f.Fuzz(func(t *testing.T, what []byte) {
		n++
		l := newLogTwin(t, filepath.Join(base, fmt.Sprint(n)))
		defer func() { os.RemoveAll(l.dir) }()
		defer func() { l.log.close() }()
		for ; len(what) >= 2; what = what[2:] {
			much := int(what[1])
			switch what[0] % 7 {
			case 0:
				l.append(1+much%9, 1+much)
			case 1:
				l.cut(1 + much)
			case 2:
				l.compact(1 + much)
			case 3:
				l.restart()
			case 4:
				l.old = func() int { return unseal(t, l.dir) }
				l.restart()
				l.old = nil
			case 5:
				l.leap(much % 30)
			case 6:
				l.crash()
			}
		}
		l.restart()
	})
}

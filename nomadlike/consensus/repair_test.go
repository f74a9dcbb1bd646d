package consensus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"
	"pgregory.net/rapid"

	"nomadlike/internal/eventually"
)

// the040 is the log that raft-wal 0.4.0 left after three truncations: entries 1
// to 42 as entriesOf makes them, in five files of which two are sealed and have
// no index block. That version refuses it ("sealed segment has no index
// block").
const the040 = "testdata/wal-0.4.0"

// holds fails unless a log holds these entries and no others.
func holds(t rapid.TB, log *guardedLog, want []*raft.Log) {
	t.Helper()
	first, err := log.FirstIndex()
	if err != nil {
		t.Fatal(err)
	}
	last, err := log.LastIndex()
	if err != nil {
		t.Fatal(err)
	}
	if len(want) == 0 {
		if last != 0 {
			t.Fatalf("log holds %d to %d, want nothing", first, last)
		}
		return
	}
	if first != want[0].Index || last != want[len(want)-1].Index {
		t.Fatalf("log holds %d to %d, want %d to %d", first, last, want[0].Index, want[len(want)-1].Index)
	}
	for _, w := range want {
		var got raft.Log
		if err := log.store.GetLog(w.Index, &got); err != nil || got.Term != w.Term || !bytes.Equal(got.Data, w.Data) {
			t.Fatalf("entry %d is of term %d, %d bytes, %v; want term %d, %d bytes", w.Index, got.Term, len(got.Data), err, w.Term, len(w.Data))
		}
	}
}

// mustClose closes a log.
func mustClose(t rapid.TB, log *guardedLog) {
	t.Helper()
	if err := log.close(); err != nil {
		t.Fatal(err)
	}
}

func TestLogOfRaftWal040IsRepaired(t *testing.T) {
	dir := copyDir(t, the040)
	log, err := smallLog(t, dir, false)
	if err != nil {
		t.Fatal(err)
	}
	holds(t, log, entriesOf(1, 42))
	if err := log.StoreLogs(entriesOf(43, 60)); err != nil {
		t.Fatal(err)
	}
	mustClose(t, log)

	backups, err := filepath.Glob(filepath.Join(dir, repairedDir, "*"))
	if err != nil || len(backups) != 1 {
		t.Fatalf("copies %v, %v", backups, err)
	}
	kept, err := filepath.Glob(filepath.Join(backups[0], "*"))
	if err != nil || len(kept) != 3 { // two files and the list
		t.Fatalf("kept %v, %v", kept, err)
	}
	for _, path := range kept {
		origin := filepath.Join(the040, logDir, filepath.Base(path))
		if filepath.Base(path) == logMetaFile {
			origin = filepath.Join(the040, logMetaFile)
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(origin)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want[:min(len(got), len(want))]) || len(bytes.TrimRight(want[min(len(got), len(want)):], "\x00")) != 0 {
			t.Errorf("%s is no copy of what was", path)
		}
	}
	again, err := smallLog(t, dir, false)
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, again)
	holds(t, again, entriesOf(1, 60))
	if backups, _ := filepath.Glob(filepath.Join(dir, repairedDir, "*")); len(backups) != 1 {
		t.Errorf("repaired again: %v", backups)
	}
}

// Cut off between the file and the list, a repair is begun again.
func TestInterruptedRepairIsBegunAgain(t *testing.T) {
	whole := copyDir(t, the040)
	log, err := smallLog(t, whole, false)
	if err != nil {
		t.Fatal(err)
	}
	mustClose(t, log)
	list, err := os.ReadFile(filepath.Join(the040, logMetaFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(whole, logMetaFile), list, 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := smallLog(t, whole, false)
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, again)
	holds(t, again, entriesOf(1, 42))
}

// Whatever byte of such a file is damaged: all entries come back, or the server
// refuses and names the file.
func TestDamagedLogIsNotRepairedIntoAnother(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(the040, logDir, "*.wal"))
	if err != nil {
		t.Fatal(err)
	}
	base, refused, same := t.TempDir(), 0, 0
	for i, number := range []int{0, 3} { // sealed without an index block
		data, err := os.ReadFile(files[number])
		if err != nil {
			t.Fatal(err)
		}
		for offset := i; offset < len(bytes.TrimRight(data, "\x00")); offset += 5 {
			dir := filepath.Join(base, fmt.Sprint(number, "-", offset))
			if err := os.CopyFS(dir, os.DirFS(the040)); err != nil {
				t.Fatal(err)
			}
			changed := bytes.Clone(data)
			changed[offset] ^= 0x41
			path := filepath.Join(dir, logDir, filepath.Base(files[number]))
			if err := os.WriteFile(path, changed, 0o600); err != nil {
				t.Fatal(err)
			}
			log, err := smallLog(t, dir, false)
			switch {
			case err == nil:
				holds(t, log, entriesOf(1, 42))
				mustClose(t, log)
				same++
			case errors.Is(err, ErrCorrupt) && strings.Contains(err.Error(), filepath.Join(dir, logDir)):
				refused++
			default:
				t.Fatalf("byte %d of %s: %v", offset, path, err)
			}
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%d damages refused, %d harmless", refused, same)
	if refused < 150 {
		t.Errorf("only %d damages were refused", refused)
	}
}

// files are the list, the watermark and the log files of a directory.
func files(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	found := make(map[string][]byte)
	for _, pattern := range []string{logMetaFile, watermarkFile, logDir + "/*.wal"} {
		paths, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if found[path], err = os.ReadFile(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	return found
}

// putFiles makes a directory hold just these.
func putFiles(t *testing.T, dir string, want map[string][]byte) {
	t.Helper()
	for path := range files(t, dir) {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	for path, data := range want {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A process may end between the last write to a file, which seals it, and the
// list that says so: the next start knows it, and the log goes on.
func TestLogSealedBeforeItsListSaysSo(t *testing.T) {
	for _, by := range []string{"append", "cut"} {
		t.Run(by, func(t *testing.T) {
			l := newLogTwin(t, t.TempDir())
			l.append(4, 90)
			before := files(t, l.dir)
			if by == "append" {
				for len(l.want) < 40 { // until the list names another file
					l.append(1, 90)
					if eventuallySealed(t, l.dir, before) {
						break
					}
					before = files(t, l.dir)
				}
			} else {
				l.cut(2)
			}
			mustClose(t, l.log)
			after := files(t, l.dir)
			for path := range after {
				if _, ok := before[path]; !ok {
					delete(after, path) // the file of the list that was not stored
				}
			}
			after[filepath.Join(l.dir, logMetaFile)] = before[filepath.Join(l.dir, logMetaFile)]
			putFiles(t, l.dir, after)
			log, err := twinLog(l.dir, false)
			if err != nil {
				t.Fatal(err)
			}
			l.log = log
			if by == "cut" { // not in the list: not done
				l.want = l.want[:2]
				for index := uint64(3); index <= 4; index++ {
					l.want = append(l.want, &raft.Log{Index: index, Term: 1, Data: bytes.Repeat([]byte{1}, 90)})
				}
			}
			holds(t, log, l.want)
			l.append(20, 90)
			l.restart()
			mustClose(t, l.log)
		})
	}
}

// eventuallySealed waits for what raft-wal does in the background after an
// append, and reports whether it was a new file.
func eventuallySealed(t *testing.T, dir string, before map[string][]byte) bool {
	t.Helper()
	sealed := false
	eventually.Within(t, 10e9, "a sealed file in the list", func() bool {
		now := files(t, dir)
		sealed = len(now) > len(before)
		for path, data := range now {
			if strings.HasSuffix(path, ".wal") && len(before[path]) != 0 {
				scan, err := scanSegment(data)
				if err != nil {
					t.Fatal(err)
				}
				was, _ := scanSegment(before[path])
				if scan.sealed() && !was.sealed() {
					return sealed
				}
			}
		}
		return true
	})
	return sealed
}

// The batch that seals a file is torn at any of its bytes by a power cut: it was
// not acknowledged, what was before is there, and the log goes on.
func TestTornSeal(t *testing.T) {
	for _, by := range []string{"append", "cut"} {
		t.Run(by, func(t *testing.T) {
			l := newLogTwin(t, t.TempDir())
			l.append(4, 90)
			before := files(t, l.dir)
			if by == "append" {
				l.append(6, 110)
			} else {
				l.cut(2)
			}
			mustClose(t, l.log)
			var path string
			for name := range before {
				if strings.HasSuffix(name, ".wal") {
					path = name
				}
			}
			after, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			from := len(bytes.TrimRight(before[path], "\x00"))
			to := len(bytes.TrimRight(after, "\x00"))
			if to <= from {
				t.Fatal("nothing was written")
			}
			for torn := from + 1; torn < to; torn += 3 {
				for _, last := range []bool{false, true} { // the last sector reached the disk, or none after the tear
					data := bytes.Clone(after)
					if last {
						clear(data[from : torn-torn%8])
					} else {
						clear(data[torn:])
					}
					state := make(map[string][]byte)
					for name, content := range before {
						state[name] = content
					}
					state[path] = data
					putFiles(t, l.dir, state)
					log, err := twinLog(l.dir, false)
					if err != nil {
						t.Fatalf("torn at %d: %v", torn, err)
					}
					last, err := log.LastIndex()
					if err != nil || last < 4 {
						t.Fatalf("torn at %d: log ends at %d, %v", torn, last, err)
					}
					if err := log.StoreLogs([]*raft.Log{{Index: last + 1, Term: 9, Data: []byte("next")}}); err != nil {
						t.Fatalf("torn at %d: append after %d: %v", torn, last, err)
					}
					mustClose(t, log)
				}
			}
		})
	}
}

// nameDir makes a data directory under an id of the test's choice.
func nameDir(t *testing.T, dir, id string) {
	t.Helper()
	payload, err := json.Marshal(Identity{Format: identityFormat, ClusterID: "test", ServerID: id})
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err == nil {
		err = (fileRecord{filepath.Join(dir, identityFile)}).save(payload)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Two leaders are cut off in turn under writes, all three servers are restarted:
// on disk, with files that a few entries fill.
func TestTwoDeposedLeadersStartAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dirs := t.TempDir()
		c := newTestCluster(t, 3, func(config *Config) {
			config.Dir, config.Memory = filepath.Join(dirs, config.ID), nil
			config.segmentBytes = 1 << 10
			nameDir(t, config.Dir, config.ID)
		})
		var acknowledged []string
		for round := range 6 {
			for turn := range 2 {
				leader := c.leader()
				for i := range 3 + round {
					command := fmt.Sprintf("%d-%d-%d-%s", round, turn, i, strings.Repeat("x", 70))
					c.propose(leader, command)
					acknowledged = append(acknowledged, command)
				}
				c.network.Isolate(leader.addr)
				outcome := make(chan error)
				for i := range 2 + round {
					go func() {
						_, err := leader.node.Propose(context.Background(), fmt.Appendf(nil, "lost-%d-%d-%d", round, turn, i))
						outcome <- err
					}()
				}
				for range 2 + round {
					if err := <-outcome; err == nil {
						t.Error("a leader that was cut off acknowledged a write")
					}
				}
				c.propose(c.leader(c.others(leader)...), fmt.Sprint("beside ", round, turn))
				acknowledged = append(acknowledged, fmt.Sprint("beside ", round, turn))
				time.Sleep(3 * time.Second)
				c.network.Heal()
				c.agree()
			}
			for _, s := range c.servers {
				c.crash(s)
			}
			c.network.Heal()
			for _, s := range c.servers {
				c.start(s)
			}
			var got []string
			for _, line := range c.agree() {
				got = append(got, line.Command)
			}
			if diff := cmp.Diff(acknowledged, got); diff != "" {
				t.Fatalf("after round %d the cluster holds (-want +got):\n%s", round, diff)
			}
		}
	})
}

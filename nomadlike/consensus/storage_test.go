package consensus

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"
	"pgregory.net/rapid"

	"nomadlike/internal/eventually"
)

// openAlone opens a server on dir that is its own cluster.
func openAlone(t testing.TB, dir string, change func(*Config)) (*Node, *ledger, error) {
	t.Helper()
	fsm := &ledger{}
	config := Config{
		ClusterID: "test",
		Dir:       dir,
		Transport: NewNetwork(time.Second).Transport("alone:4646"),
		FSM:       fsm,
		ExitFunc:  func(code int) { t.Errorf("the process would exit with %d", code) },
	}
	if change != nil {
		change(&config)
	}
	node, err := Open(config)
	return node, fsm, err
}

// mustOpenAlone opens a server, bootstraps it where it is new, and waits until
// it leads.
func mustOpenAlone(t testing.TB, dir string, change func(*Config)) (*Node, *ledger) {
	t.Helper()
	node, fsm, err := openAlone(t, dir, change)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { node.Shutdown(context.Background(), false) })
	if len(node.Peers()) == 0 {
		if err := node.Bootstrap([]Peer{{ID: node.ID(), Addr: "alone:4646", Voter: true}}); err != nil {
			t.Fatal(err)
		}
	}
	awaitLeading(t, node)
	return node, fsm
}

func awaitLeading(t testing.TB, node *Node) {
	t.Helper()
	eventually.Within(t, time.Minute, "leadership", func() bool {
		term, _ := node.leading.establishedTerm()
		return term != 0
	})
}

func mustShutdown(t testing.TB, node *Node) {
	t.Helper()
	if err := node.Shutdown(context.Background(), false); err != nil {
		t.Fatal(err)
	}
}

func mustPropose(t testing.TB, node *Node, commands ...string) {
	t.Helper()
	for _, command := range commands {
		if _, err := node.Propose(context.Background(), []byte(command)); err != nil {
			t.Fatalf("propose %q: %v", command, err)
		}
	}
}

func copyDir(t testing.TB, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

// usedDir is the directory of a server that stopped after some proposals.
func usedDir(t testing.TB, commands ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "raft")
	node, _ := mustOpenAlone(t, dir, nil)
	mustPropose(t, node, commands...)
	mustShutdown(t, node)
	return dir
}

func TestRestartFromDisk(t *testing.T) {
	dir := usedDir(t, "a", "b")
	started := time.Now()
	node, fsm := mustOpenAlone(t, dir, nil)
	t.Logf("leads again %s after Open began", time.Since(started))
	mustPropose(t, node, "c")
	if diff := cmp.Diff([]string{"a", "b", "c"}, fsm.commands()); diff != "" {
		t.Errorf("state after restart (-want +got):\n%s", diff)
	}
	if err := node.Bootstrap([]Peer{{ID: node.ID(), Addr: "alone:4646", Voter: true}}); !errors.Is(err, ErrAlreadyBootstrapped) {
		t.Errorf("second bootstrap: %v", err)
	}
	if _, _, err := openAlone(t, dir, nil); !errors.Is(err, ErrLocked) {
		t.Errorf("second process: %v", err)
	}
}

func TestIdentity(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "raft")
	identity, err := EnsureIdentity(dir, "test")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := EnsureIdentity(dir, "test"); err != nil || again != identity {
		t.Errorf("second call gives %+v, %v; first %+v", again, err, identity)
	}
	if len(identity.ServerID) != 32 {
		t.Errorf("server id %q", identity.ServerID)
	}
	if _, err := EnsureIdentity(dir, "other"); !errors.Is(err, ErrForeignDir) {
		t.Errorf("other cluster: %v", err)
	}
	with := func(dir, cluster, id string) error {
		node, _, err := openAlone(t, dir, func(c *Config) { c.ClusterID, c.ID = cluster, id })
		if err == nil {
			mustShutdown(t, node)
		}
		return err
	}
	if err := with(dir, "test", identity.ServerID); err != nil {
		t.Errorf("own directory: %v", err)
	}
	if err := with(dir, "test", "somebody"); !errors.Is(err, ErrForeignDir) {
		t.Errorf("other server: %v", err)
	}
	if err := with(dir, "other", identity.ServerID); !errors.Is(err, ErrForeignDir) {
		t.Errorf("other cluster: %v", err)
	}
	// A wiped server must not come back under the id it had.
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := with(dir, "test", identity.ServerID); !errors.Is(err, ErrNoIdentity) {
		t.Errorf("wiped directory under its old id: %v", err)
	}
	fresh, err := EnsureIdentity(dir, "test")
	if err != nil || fresh.ServerID == identity.ServerID {
		t.Errorf("wiped directory gets id %s, %v; it had %s", fresh.ServerID, err, identity.ServerID)
	}
	// Files of another server under this one's identity.
	other := usedDir(t, "a")
	for _, name := range []string{voteFile, logMetaFile} {
		mixed := copyDir(t, dir)
		if err := with(mixed, "test", ""); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(other, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(mixed, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := with(mixed, "test", ""); !errors.Is(err, ErrForeignDir) {
			t.Errorf("%s of another server: %v", name, err)
		}
	}
}

// Raft stores a vote as a term and then a candidate. A store that makes each
// call durable pairs, after a crash between them, the new term with the old
// candidate, which raft then votes for without looking at its log.
func TestVoteIsOneRecord(t *testing.T) {
	vote := func(store raft.StableStore) (uint64, string) {
		term, err := store.GetUint64([]byte(keyVoteTerm))
		if err != nil {
			t.Fatal(err)
		}
		candidate, err := store.Get([]byte(keyVoteFor))
		if err != nil {
			t.Fatal(err)
		}
		return term, string(candidate)
	}
	crashBetween := func(store raft.StableStore) {
		for _, err := range []error{
			store.SetUint64([]byte(keyCurrentTerm), 1),
			store.SetUint64([]byte(keyVoteTerm), 1),
			store.Set([]byte(keyVoteFor), []byte("old")),
			store.SetUint64([]byte(keyCurrentTerm), 2),
			store.SetUint64([]byte(keyVoteTerm), 2),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	plain := raft.NewInmemStore()
	crashBetween(plain)
	if term, candidate := vote(plain); term != 2 || candidate != "old" {
		t.Fatalf("the plain store shows %d, %q: this test shows nothing", term, candidate)
	}

	identity := Identity{Format: identityFormat, ClusterID: "test", ServerID: "s1"}
	file := fileRecord{filepath.Join(t.TempDir(), voteFile)}
	store, err := openVoteStore(file, identity, true)
	if err != nil {
		t.Fatal(err)
	}
	crashBetween(store)
	for range 2 { // before and after the crash
		if term, candidate := vote(store); term != 1 || candidate != "old" {
			t.Errorf("vote is %d for %q", term, candidate)
		}
		if store, err = openVoteStore(file, identity, false); err != nil {
			t.Fatal(err)
		}
	}
	if term, err := store.GetUint64([]byte(keyCurrentTerm)); err != nil || term != 2 {
		t.Errorf("term after the crash is %d, %v", term, err)
	}
	if err := store.SetUint64([]byte(keyVoteTerm), 2); err != nil {
		t.Fatal(err)
	}
	if err := store.Set([]byte(keyVoteFor), []byte("new")); err != nil {
		t.Fatal(err)
	}
	if store, err = openVoteStore(file, identity, false); err != nil {
		t.Fatal(err)
	}
	if term, candidate := vote(store); term != 2 || candidate != "new" {
		t.Errorf("vote is %d for %q", term, candidate)
	}
}

func TestRecordDetectsEveryFlippedBit(t *testing.T) {
	payload := []byte("a vote")
	data := encodeRecord(payload)
	if got, err := decodeRecord(data); err != nil || !bytes.Equal(got, payload) {
		t.Fatalf("decoded %q, %v", got, err)
	}
	for bit := range len(data) * 8 {
		changed := bytes.Clone(data)
		changed[bit/8] ^= 1 << (bit % 8)
		if got, err := decodeRecord(changed); err == nil {
			t.Errorf("bit %d flipped: decoded %q", bit, got)
		}
	}
	for length := range data {
		if got, err := decodeRecord(data[:length]); err == nil {
			t.Errorf("cut to %d bytes: decoded %q", length, got)
		}
	}
}

func drawEntry(t *rapid.T) *raft.Log {
	return &raft.Log{
		Index:      rapid.Uint64().Draw(t, "index"),
		Term:       rapid.Uint64().Draw(t, "term"),
		Type:       raft.LogType(rapid.ByteMax(5).Draw(t, "type")),
		Data:       rapid.SliceOfN(rapid.Byte(), 1, 64).Draw(t, "data"),
		Extensions: rapid.SliceOfN(rapid.Byte(), 1, 16).Draw(t, "extensions"),
		AppendedAt: time.Unix(0, rapid.Int64Range(1, 1<<62).Draw(t, "appended")),
	}
}

func TestEntryCodec(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entry := drawEntry(t)
		var buf bytes.Buffer
		if err := (entryCodec{}).Encode(entry, &buf); err != nil {
			t.Fatal(err)
		}
		var got raft.Log
		if err := (entryCodec{}).Decode(buf.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(entry, &got); diff != "" {
			t.Fatalf("decoded (-want +got):\n%s", diff)
		}
		data := bytes.Clone(buf.Bytes())
		bit := rapid.IntRange(0, len(data)*8-1).Draw(t, "bit")
		data[bit/8] ^= 1 << (bit % 8)
		if err := (entryCodec{}).Decode(data, &got); err == nil {
			t.Fatalf("bit %d flipped: decoded %+v", bit, got)
		}
	})
}

func FuzzEntryDecode(f *testing.F) {
	var buf bytes.Buffer
	if err := (entryCodec{}).Encode(&raft.Log{Index: 7, Term: 3, Data: []byte("x")}, &buf); err != nil {
		f.Fatal(err)
	}
	f.Add(buf.Bytes()[4:])
	f.Fuzz(func(t *testing.T, body []byte) {
		// With a right checksum in front, so that the fields are reached.
		data := append([]byte{0, 0, 0, 0}, body...)
		sum := crcOf(body)
		data[0], data[1], data[2], data[3] = byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24)
		var entry, again raft.Log
		if (entryCodec{}).Decode(data, &entry) != nil {
			return
		}
		var out bytes.Buffer
		if err := (entryCodec{}).Encode(&entry, &out); err != nil {
			t.Fatal(err)
		}
		if err := (entryCodec{}).Decode(out.Bytes(), &again); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(entry, again); diff != "" {
			t.Errorf("second decoding differs:\n%s", diff)
		}
	})
}

// theSegment is the one log file of a small directory, and how much of it holds
// data.
func theSegment(t testing.TB, dir string) (string, []byte, int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, logDir, "*.wal"))
	if err != nil || len(files) != 1 {
		t.Fatalf("log files %v, %v", files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	return files[0], data, len(bytes.TrimRight(data, "\x00"))
}

// stored reads all that a directory's log holds, as a restarting server would.
func stored(dir string) ([]raft.Log, error) {
	config, err := Config{
		ClusterID: "test", Dir: dir, FSM: &ledger{},
		Transport: NewNetwork(time.Second).Transport("x"),
	}.withDefaults()
	if err != nil {
		return nil, err
	}
	s, err := openDir(config, newGuard(config))
	if err != nil {
		return nil, err
	}
	defer s.close()
	first, _ := s.log.FirstIndex()
	last, _ := s.log.LastIndex()
	var entries []raft.Log
	for index := first; index != 0 && index <= last; index++ {
		var entry raft.Log
		if err := s.log.GetLog(index, &entry); err != nil {
			return nil, err
		}
		entries = append(entries, entry)
	}
	return entries, nil
}

func TestEntryCache(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cache := newEntryCache()
		log := make(map[uint64][]byte) // the slow twin: never forgets
		large := make([]byte, 2<<20)
		last := rapid.Uint64Range(0, 10).Draw(t, "start")
		put := func(count, size int) {
			var entries []*raft.Log
			for range count {
				last++
				data := large[:size+int(last)] // told apart by length
				log[last] = data
				entries = append(entries, &raft.Log{Index: last, Data: data})
			}
			cache.put(entries)
		}
		t.Repeat(map[string]func(*rapid.T){
			"put":   func(t *rapid.T) { put(rapid.IntRange(1, 300).Draw(t, "count"), 1) },
			"large": func(t *rapid.T) { put(rapid.IntRange(1, 4).Draw(t, "count"), 1<<20) },
			"suffix": func(t *rapid.T) {
				from := rapid.Uint64Range(1, last+1).Draw(t, "from")
				cache.remove(from, last)
				for ; last >= from && last > 0; last-- {
					delete(log, last)
				}
			},
			"prefix": func(t *rapid.T) {
				to := rapid.Uint64Range(0, last).Draw(t, "to")
				cache.remove(0, to)
				for index := range to + 1 {
					delete(log, index)
				}
			},
			"gap": func(*rapid.T) { last += 5 },
			"": func(t *rapid.T) {
				bytes := 0
				for index := uint64(0); index <= last+2; index++ {
					var entry raft.Log
					if !cache.get(index, &entry) {
						continue
					}
					bytes += len(entry.Data)
					if want, ok := log[index]; !ok || len(entry.Data) != len(want) || entry.Index != index {
						t.Fatalf("cache gives %d at %d, the log has it: %v", entry.Index, index, ok)
					}
				}
				if bytes > cachedBytes || bytes != cache.mu.bytes {
					t.Fatalf("cache holds %d bytes and counts %d", bytes, cache.mu.bytes)
				}
			},
		})
		put(1, 1)
		var entry raft.Log
		if !cache.get(last, &entry) {
			t.Fatal("the newest entry is not cached")
		}
	})
}

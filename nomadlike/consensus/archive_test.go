package consensus

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// savedArchive is an archive of a cluster with some commands.
func savedArchive(t *testing.T, c *testCluster, commands ...string) ([]byte, Meta) {
	t.Helper()
	leader := c.leader()
	for _, command := range commands {
		c.propose(leader, command)
	}
	var archive bytes.Buffer
	meta, err := leader.node.SnapshotSave(t.Context(), &archive)
	if err != nil {
		t.Fatal(err)
	}
	return archive.Bytes(), meta
}

func TestSnapshotSaveAndRestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCluster(t, 3, nil)
		archive, meta := savedArchive(t, c, "a", "b")
		inspected, err := InspectSnapshot(bytes.NewReader(archive))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(meta, inspected); diff != "" {
			t.Errorf("inspected (-saved +inspected):\n%s", diff)
		}
		leader := c.leader()
		want := Meta{
			Format: 1, ClusterID: "test", ServerID: leader.id,
			Index: leader.node.AppliedIndex(), Term: leader.node.Term(), ConfigurationIndex: 1,
			Peers: []Peer{{"s1", "s1:4646", true}, {"s2", "s2:4646", true}, {"s3", "s3:4646", true}},
		}
		if diff := cmp.Diff(want, meta, cmpopts.IgnoreFields(Meta{}, "CreatedAt", "BodyBytes", "SHA256")); diff != "" {
			t.Errorf("meta (-want +got):\n%s", diff)
		}

		c.propose(leader, "after the archive")
		before := c.agree()
		index := leader.node.AppliedIndex()
		follower := c.others(leader)[0]
		var notLeader *NotLeaderError
		if _, err := follower.node.SnapshotRestore(t.Context(), bytes.NewReader(archive), RestoreOptions{}); !errors.As(err, &notLeader) {
			t.Errorf("restore on a follower: %v", err)
		}
		if _, err := leader.node.SnapshotRestore(t.Context(), bytes.NewReader(archive), RestoreOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := c.agree(); !slices.Equal(got, before[:2]) {
			t.Errorf("after the restore the cluster holds %v, before %v", got, before)
		}
		if now := leader.node.AppliedIndex(); now <= index {
			t.Errorf("index went from %d back to %d", index, now)
		}
		c.propose(leader, "c")
		c.agree()

		// All of it survives a restart.
		for _, s := range c.servers {
			c.crash(s)
		}
		c.network.Heal()
		for _, s := range c.servers {
			c.start(s)
		}
		c.agree()
		if diff := cmp.Diff([]string{"a", "b", "c"}, c.servers[0].ledger.commands()); diff != "" {
			t.Errorf("after the restart (-want +got):\n%s", diff)
		}
	})
}

// While a state is being replaced the leader names no index to readers: that of
// the log before would let followers answer from the old state when the leader
// already does from the new one.
func TestReadsWaitForARestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCluster(t, 3, nil)
		archive, _ := savedArchive(t, c, "a", "b")
		leader := c.leader()
		leader.node.restoring <- struct{}{}
		restored, read := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := leader.node.SnapshotRestore(t.Context(), bytes.NewReader(archive), RestoreOptions{})
			restored <- err
		}()
		go func() {
			_, err := leader.node.ReadIndex(t.Context())
			read <- err
		}()
		synctest.Wait()
		select {
		case err := <-restored:
			t.Errorf("a second restore came between: %v", err)
		case err := <-read:
			t.Errorf("a reader was answered in a restore: %v", err)
		default:
		}
		<-leader.node.restoring
		if err := errors.Join(<-restored, <-read); err != nil {
			t.Error(err)
		}
		c.agree()
	})
}

func TestRestoreRefusesWhatItShould(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCluster(t, 1, nil)
		archive, _ := savedArchive(t, c, "a", "b")
		node := c.leader().node
		restore := func(archive []byte, options RestoreOptions) error {
			_, err := node.SnapshotRestore(t.Context(), bytes.NewReader(archive), options)
			return err
		}
		for bit := range len(archive) * 8 {
			changed := bytes.Clone(archive)
			changed[bit/8] ^= 1 << (bit % 8)
			if _, err := InspectSnapshot(bytes.NewReader(changed)); !errors.Is(err, ErrBadSnapshot) {
				t.Fatalf("bit %d flipped: %v", bit, err)
			}
		}
		for length := range archive {
			if _, err := InspectSnapshot(bytes.NewReader(archive[:length])); !errors.Is(err, ErrBadSnapshot) {
				t.Fatalf("cut to %d bytes: %v", length, err)
			}
		}
		if err := restore(append(bytes.Clone(archive), 0), RestoreOptions{}); !errors.Is(err, ErrBadSnapshot) {
			t.Errorf("a byte too many: %v", err)
		}
		made := func(cluster, body string) []byte {
			var out bytes.Buffer
			w, err := newArchiveWriter(&out, Meta{Format: archiveFormat, ClusterID: cluster, Index: 5, Term: 2})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(w, body); err != nil {
				t.Fatal(err)
			}
			if err := w.finish(); err != nil {
				t.Fatal(err)
			}
			return out.Bytes()
		}
		foreign := made("other", `[{"Index":3,"Command":"theirs"}]`)
		if meta, err := node.SnapshotRestore(t.Context(), bytes.NewReader(foreign), RestoreOptions{}); !errors.Is(err, ErrForeignSnapshot) || meta.ClusterID != "other" {
			t.Errorf("foreign cluster %q: %v", meta.ClusterID, err)
		}
		if err := restore(made("test", "no ledger"), RestoreOptions{}); err == nil {
			t.Error("a state that the FSM cannot read was restored")
		}
		if diff := cmp.Diff([]string{"a", "b"}, c.servers[0].ledger.commands()); diff != "" {
			t.Errorf("refused restores changed the state (-want +got):\n%s", diff)
		}
		if err := restore(foreign, RestoreOptions{AllowForeign: true}); err != nil {
			t.Errorf("foreign cluster, allowed: %v", err)
		}
		if diff := cmp.Diff([]string{"theirs"}, c.servers[0].ledger.commands()); diff != "" {
			t.Errorf("state (-want +got):\n%s", diff)
		}
	})
}

// A restore leaves a hole in the log, which raft-wal has to take.
func TestRestoreOnDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "raft")
	node, fsm := mustOpenAlone(t, dir, nil)
	mustPropose(t, node, "a", "b")
	var archive bytes.Buffer
	if _, err := node.SnapshotSave(t.Context(), &archive); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		mustPropose(t, node, fmt.Sprint("lost ", i))
		if _, err := node.SnapshotRestore(t.Context(), bytes.NewReader(archive.Bytes()), RestoreOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	mustPropose(t, node, "c")
	if left, err := filepath.Glob(filepath.Join(dir, "restore-*")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	snapshots, err := os.ReadDir(filepath.Join(dir, snapshotDir))
	if err != nil || len(snapshots) != snapshotsKept {
		t.Errorf("%d snapshots kept, %v", len(snapshots), err)
	}
	for range 2 {
		if diff := cmp.Diff([]string{"a", "b", "c"}, fsm.commands()); diff != "" {
			t.Errorf("state (-want +got):\n%s", diff)
		}
		mustShutdown(t, node)
		node, fsm = mustOpenAlone(t, dir, nil)
		if err := node.WaitApplied(t.Context(), node.raft.LastIndex()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOlderSnapshotIsRefusedBesideANewer(t *testing.T) {
	store := newSnapshotStore(&memoryBlobs{}, Identity{ClusterID: "test"}, newGuard(Config{}))
	make := func(index uint64) error {
		sink, err := store.Create(1, index, 3, raftConfiguration(nil), 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		return sink.Close()
	}
	for _, c := range []struct {
		index uint64
		taken bool
	}{{10, true}, {9, false}, {11, true}, {10, false}, {12, true}} {
		if err := make(c.index); (err == nil) != c.taken {
			t.Errorf("snapshot at %d: %v", c.index, err)
		}
	}
	if newest, err := store.List(); err != nil || len(newest) != 1 || newest[0].Index != 12 {
		t.Errorf("listed %v, %v", newest, err)
	}
}

func FuzzInspectSnapshot(f *testing.F) {
	var out bytes.Buffer
	w, err := newArchiveWriter(&out, Meta{Format: archiveFormat, ClusterID: "c"})
	if err != nil {
		f.Fatal(err)
	}
	if err := w.finish(); err != nil {
		f.Fatal(err)
	}
	f.Add(out.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		var body bytes.Buffer
		meta, err := readArchive(bytes.NewReader(data), &body)
		if err == nil && meta.BodyBytes != int64(body.Len()) {
			t.Errorf("body has %d bytes, meta says %d", body.Len(), meta.BodyBytes)
		}
		if err != nil && !errors.Is(err, ErrBadSnapshot) {
			t.Errorf("refused with %v", err)
		}
	})
}

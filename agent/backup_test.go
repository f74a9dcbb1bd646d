package agent

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nomadlike/agent/config"
	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/consensus"
)

// A server makes backups by its configuration; each is whole, and they can be
// restored.
func TestBackupsByConfiguration(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "backups")
	settings := serverSettings(t.TempDir(), "server-0", 1, nil)
	settings.Server.Backup = &config.BackupBlock{Path: &dir, Interval: text("1m")}
	agent := startAgent(t, settings, testOptions(t))
	var names []string
	eventually.Within(t, time.Minute, "find a backup", func() bool {
		names, _ = agent.backups.list()
		return len(names) > 0
	})
	file, err := os.Open(filepath.Join(dir, names[0]))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	meta, err := consensus.InspectSnapshot(file)
	if err != nil || meta.ClusterID != agent.identity.credentials.Self.Cluster {
		t.Errorf("it is %+v, %v", meta, err)
	}
	info, err := file.Stat()
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
}

// saver is a server whose archive is what a test says.
type saver struct {
	leader string
	leads  bool
	data   string
	err    error
	meta   func(consensus.Meta) consensus.Meta
	made   int
}

func (s *saver) IsLeader() bool   { return s.leads }
func (s *saver) LeaderID() string { return s.leader }
func (s *saver) SnapshotSave(_ context.Context, w io.Writer) (consensus.Meta, error) {
	s.made++
	if _, err := io.WriteString(w, s.data); err != nil {
		return consensus.Meta{}, err
	}
	if s.err != nil {
		return consensus.Meta{}, s.err
	}
	meta, _ := consensus.InspectSnapshot(strings.NewReader(s.data))
	return s.meta(meta), nil
}

func TestBackupSchedule(t *testing.T) {
	agent, _ := founder(t)
	var archive strings.Builder
	if _, err := agent.raft.SnapshotSave(t.Context(), &archive); err != nil {
		t.Fatal(err)
	}
	disk := &saver{leader: "x", leads: true, data: archive.String(), meta: func(m consensus.Meta) consensus.Meta { return m }}
	dir := t.TempDir()
	b := &backups{config: config.Backup{Path: dir, Interval: time.Hour, Keep: 3}, cluster: "0123456789", server: "abcdefghij", raft: disk}
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	look := func(want int) {
		t.Helper()
		before := disk.made
		if _, _, err := b.look(t.Context(), now); err != nil {
			t.Fatal(err)
		}
		if made := disk.made - before; made != want {
			t.Errorf("at %s: %d backups made, want %d", now, made, want)
		}
	}
	// Others' files stay.
	for _, name := range []string{"nomadlike-ffffffff-20200101T000000Z-a.snap", "notes.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	look(1)
	look(0)
	now = now.Add(59 * time.Minute)
	look(0)
	now = now.Add(time.Minute)
	disk.leads = false // it leaves the first word to the leader
	look(0)
	now = now.Add(2 * time.Minute)
	look(1)
	disk.leader = ""
	now = now.Add(2 * time.Hour)
	look(0) // nobody leads: nothing is added to what there is
	disk.leader, disk.leads = "x", true
	for range 5 {
		look(1)
		now = now.Add(time.Hour)
	}
	names, err := b.list()
	if err != nil || len(names) != 3 {
		t.Errorf("kept %v, %v", names, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 5 {
		t.Errorf("the directory holds %v, %v", entries, err)
	}

	// A backup that fails, or reads back as something else, gets no name.
	for name, change := range map[string]func(*saver){
		"a failure":   func(s *saver) { s.err = errors.New("no space left on device") },
		"a short one": func(s *saver) { s.data = s.data[:len(s.data)/2] },
		"another one": func(s *saver) { s.meta = func(m consensus.Meta) consensus.Meta { m.SHA256 = "other"; return m } },
	} {
		worse := *disk
		change(&worse)
		b.raft = &worse
		failures := b.mu.failures
		if _, _, err := b.look(t.Context(), now); err == nil {
			t.Errorf("%s was taken", name)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 5 || b.mu.failures != failures+1 {
			t.Errorf("%s: the directory holds %v, %v, %d failures", name, entries, err, b.mu.failures)
		}
	}
}

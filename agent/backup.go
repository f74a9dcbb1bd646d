package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"nomadlike/agent/config"
	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/consensus"
	"nomadlike/nomadlike/rpc"
)

// Bounds of backups, and the names of their files.
const (
	backupTimeout = 10 * time.Minute
	backupLook    = time.Minute // at most, between looks at the directory
	backupEnd     = ".snap"
	backupPartial = ".partial"
	backupStamp   = "20060102T150405Z"
)

// backups makes backups of this server's state. Every server sees to the
// directory of its own configuration: where several share one, the leader is the
// first to make the next and the others find it there; where each has its own,
// each has a copy of everything.
type backups struct {
	config  config.Backup
	cluster string // id, begins the names of its backups
	server  string // id
	raft    interface {
		IsLeader() bool
		LeaderID() string
		SnapshotSave(ctx context.Context, w io.Writer) (consensus.Meta, error)
	}

	mu struct {
		sync.Mutex
		newest   time.Time
		failures int
		failed   error // of the last try; nil: it succeeded
		failedAt time.Time
		known    bool // how backups do: before the first look nobody knows
	}
}

// openBackups begins to make backups, where they are configured, nil: they are
// not. What hangs in
// the directory, such as a file server that is away, keeps no agent from
// stopping.
func openBackups(config config.Backup, raft *consensus.Node, cluster, server string, log *slog.Logger, life *lifecycle) *backups {
	if config.Path == "" {
		return nil
	}
	b := &backups{config: config, cluster: cluster, server: server, raft: raft}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			wait, made, err := b.look(ctx, time.Now())
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				log.Error("backup was not made", logkey.Path, config.Path, logkey.Error, err)
			case made != "":
				log.Info("backup made", logkey.Path, made)
			}
			timer := time.NewTimer(wait)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
			}
		}
	}()
	life.atStop(func(stop context.Context) {
		cancel()
		select {
		case <-ended:
		case <-stop.Done():
		}
	})
	return b
}

// look makes a backup when one is due, and reports when to look again.
func (b *backups) look(ctx context.Context, now time.Time) (wait time.Duration, made string, err error) {
	names, err := b.list()
	if err != nil {
		return backupLook, "", b.note(err, now)
	}
	due := b.config.Interval
	if !b.raft.IsLeader() {
		due += min(b.config.Interval/10, 2*backupLook) // the leader's comes first where the directory is shared
	}
	if len(names) > 0 {
		newest := b.timeOf(names[len(names)-1])
		b.found(newest)
		if left := newest.Add(due).Sub(now); left > 0 {
			b.upToDate(newest)
			return min(left, backupLook), "", nil
		}
	}
	if b.raft.LeaderID() == "" {
		return backupLook / 10, "", nil // what this server has may be old, and nothing is added to it
	}
	ctx, cancel := context.WithTimeout(ctx, backupTimeout)
	defer cancel()
	made, err = b.make(ctx, now)
	if err == nil {
		b.found(now)
		err = b.prune()
	}
	return backupLook, made, b.note(err, now)
}

// note keeps how the last try went.
func (b *backups) note(err error, now time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.failed, b.mu.failedAt, b.mu.known = err, now, true
	if err != nil {
		b.mu.failures++
	}
	return err
}

// upToDate notes that the newest backup is young enough. One that another server
// made into the same directory ends the failure of this one.
func (b *backups) upToDate(newest time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.mu.known || newest.After(b.mu.failedAt) {
		b.mu.failed, b.mu.known = nil, true
	}
}

// state is how the backups do, for other servers and people.
func (b *backups) state() (state, reason string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case !b.mu.known:
		return "", ""
	case b.mu.failed != nil:
		return rpc.BackupFailed, b.mu.failed.Error()
	}
	return rpc.BackupFine, ""
}

func (b *backups) found(newest time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.newest = newest
}

func (b *backups) prefix() string { return "nomadlike-" + b.cluster[:min(len(b.cluster), 8)] + "-" }

// list returns the names of this cluster's backups, oldest first.
func (b *backups) list() ([]string, error) {
	entries, err := os.ReadDir(b.config.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, os.MkdirAll(b.config.Path, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("list backups: %w", err)
	}
	var names []string
	for _, entry := range entries {
		if name := entry.Name(); strings.HasSuffix(name, backupEnd) && !b.timeOf(name).IsZero() {
			names = append(names, name)
		}
	}
	slices.Sort(names) // the time stands first
	return names, nil
}

// timeOf reports when a backup was made, by its name; zero: it is none of ours.
func (b *backups) timeOf(name string) time.Time {
	rest, ours := strings.CutPrefix(name, b.prefix())
	stamp, _, _ := strings.Cut(rest, "-")
	at, err := time.Parse(backupStamp, stamp)
	if !ours || err != nil {
		return time.Time{}
	}
	return at
}

// make writes a backup, reads it back, and names it: whatever has the
// name is whole.
func (b *backups) make(ctx context.Context, now time.Time) (path string, err error) {
	path = filepath.Join(b.config.Path, b.prefix()+now.UTC().Format(backupStamp)+"-"+b.server[:min(len(b.server), 8)]+backupEnd)
	partial := path + backupPartial
	file, err := os.OpenFile(partial, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return "", fmt.Errorf("create backup: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(partial))
		}
	}()
	written, err := b.raft.SnapshotSave(ctx, file)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return "", fmt.Errorf("write backup: %w", err)
	}
	if err := readBack(partial, written); err != nil {
		return "", fmt.Errorf("read backup %s again: %w", partial, err)
	}
	if err := os.Rename(partial, path); err != nil {
		return "", fmt.Errorf("name backup: %w", err)
	}
	return path, syncDir(b.config.Path)
}

// readBack checks that a file is the archive that was written.
func readBack(path string, written consensus.Meta) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	found, err := consensus.InspectSnapshot(file)
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if found.SHA256 != written.SHA256 {
		return fmt.Errorf("%w: it is another one", consensus.ErrBadSnapshot)
	}
	return nil
}

// prune removes all but the newest backups, and what an interrupted server left
// unfinished long ago.
func (b *backups) prune() error {
	names, err := b.list()
	if err != nil {
		return err
	}
	for len(names) > b.config.Keep {
		if err := os.Remove(filepath.Join(b.config.Path, names[0])); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove old backup: %w", err)
		}
		names = names[1:]
	}
	partials, err := filepath.Glob(filepath.Join(config.EscapeGlob(b.config.Path), b.prefix()+"*"+backupEnd+backupPartial))
	if err != nil {
		return fmt.Errorf("list unfinished backups: %w", err)
	}
	for _, partial := range partials {
		if info, err := os.Stat(partial); err == nil && time.Since(info.ModTime()) > 2*backupTimeout {
			_ = os.Remove(partial) // it is looked at again with the next backup
		}
	}
	return nil
}

// Metrics of backups.
func backupAge() *prometheus.Desc {
	return prometheus.NewDesc("nomadlike_backup_time_seconds", "When the newest backup in this server's directory was made, Unix time; 0: none.", nil, nil)
}

func backupFailures() *prometheus.Desc {
	return prometheus.NewDesc("nomadlike_backup_failures_total", "Backups that this server failed to make since it started.", nil, nil)
}

// Describe implements prometheus.Collector.
func (b *backups) Describe(to chan<- *prometheus.Desc) {
	to <- backupAge()
	to <- backupFailures()
}

// Collect implements prometheus.Collector.
func (b *backups) Collect(to chan<- prometheus.Metric) {
	b.mu.Lock()
	defer b.mu.Unlock()
	newest := 0.0
	if !b.mu.newest.IsZero() {
		newest = float64(b.mu.newest.Unix())
	}
	to <- prometheus.MustNewConstMetric(backupAge(), prometheus.GaugeValue, newest)
	to <- prometheus.MustNewConstMetric(backupFailures(), prometheus.CounterValue, float64(b.mu.failures))
}

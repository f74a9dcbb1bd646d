package consensus

import (
	"bufio"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"nomadlike/internal/logkey"
)

// damagedEnd ends the name of a snapshot that was set aside.
const damagedEnd = ".damaged"

// setter is a place for files that can give a file another name.
type setter interface {
	setAside(name string) error
}

func (b dirBlobs) setAside(name string) error {
	if err := os.Rename(b.path(name), b.path(name)+damagedEnd); err != nil {
		return err
	}
	return syncDir(b.dir)
}

// mendSnapshots looks for damage in the newest snapshot before raft does. Where
// an older one, or none at all, and the log meet, nothing is lost: the damaged
// ones are set aside, and the log is replayed from there. Else the damage is told.
func (s *storage) mendSnapshots(log *slog.Logger) error {
	names, err := s.snapshots.complete()
	if err != nil || len(names) == 0 {
		return err
	}
	first, err := s.log.FirstIndex()
	if err != nil {
		return fmt.Errorf("find first log entry: %w", err)
	}
	var damaged []string
	var found error
	covered := uint64(0) // by the snapshot to begin from
	for i := len(names) - 1; i >= 0; i-- {
		body, err := s.snapshots.openBody(names[i], true)
		if err == nil {
			covered = body.meta.Index
			if err := body.Close(); err != nil {
				return fmt.Errorf("close snapshot: %w", err)
			}
			break
		}
		if !errors.Is(err, ErrCorrupt) {
			return err
		}
		damaged = append(damaged, names[i])
		if found == nil {
			found = err
		}
	}
	if len(damaged) == 0 {
		return nil
	}
	files, can := s.snapshots.blobs.(setter)
	if first == 0 || first > covered+1 || !can {
		return found // the log does not reach back so far
	}
	for _, name := range damaged {
		if err := files.setAside(name); err != nil {
			return fmt.Errorf("set damaged snapshot aside: %w", err)
		}
		log.Error("damaged snapshot is set aside: the log holds what it held", "file", s.snapshots.blobs.path(name), "from", covered, logkey.Error, found)
	}
	return nil
}

// Others says what a damaged server may expect of the rest of its cluster.
type Others string

// What is known of the other servers.
const (
	OthersUnknown Others = ""
	OthersNone    Others = "none" // it is the only one that has a vote
	OthersThere   Others = "there"
)

// withOthers completes a CorruptError by what can still be read of the
// configuration, since the cure depends on it: whoever is alone must not throw
// away what it has.
func withOthers(config Config, err error) error {
	var corrupt *CorruptError
	if errors.As(err, &corrupt) && config.Dir != "" {
		corrupt.Others = othersIn(config)
	}
	return err
}

// othersIn reads the configuration in the headers of snapshots, the newest that
// is readable. Nothing of it is verified: it decides about advice alone.
func othersIn(config Config) Others {
	identity, found, err := ReadIdentity(config.Dir)
	if err != nil || !found {
		return OthersUnknown
	}
	dir := filepath.Join(config.Dir, snapshotDir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return OthersUnknown
	}
	others := OthersUnknown
	for _, entry := range entries { // sorted, the newest last
		if !strings.HasSuffix(entry.Name(), snapshotSuffix) {
			continue
		}
		file, err := os.Open(filepath.Join(dir, entry.Name()))
		if err != nil {
			continue
		}
		meta, err := readArchiveHeader(bufio.NewReader(file))
		file.Close()
		if err != nil || len(meta.Peers) == 0 {
			continue
		}
		others = OthersNone
		for _, peer := range meta.Peers {
			if peer.Voter && peer.ID != identity.ServerID {
				others = OthersThere
			}
		}
	}
	return others
}

package consensus

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// Verify looks through the data directory of a server, whether it runs or not,
// and changes nothing: its identity, the record of its vote, that of its log's
// segments, and every snapshot to its last byte. It returns everything that is
// wrong, nil where nothing is or nothing is there yet. The entries of the log are
// not read: Open and Inspect verify those.
func Verify(dir string) []error {
	identity, found, err := ReadIdentity(dir)
	if err != nil {
		return []error{err}
	}
	if !found {
		return nil
	}
	var wrong []error
	for _, name := range []string{voteFile, logMetaFile} {
		if _, err := (fileRecord{filepath.Join(dir, name)}).load(); err != nil {
			wrong = append(wrong, err)
		}
	}
	snapshots := newSnapshotStore(dirBlobs{filepath.Join(dir, snapshotDir)}, identity, nil)
	names, err := snapshots.complete()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		wrong = append(wrong, err)
	}
	for _, name := range names {
		body, err := snapshots.openBody(name, true)
		switch {
		case errors.Is(err, fs.ErrNotExist): // a running server has a newer one by now
		case err != nil:
			wrong = append(wrong, err)
		default:
			if err := body.Close(); err != nil {
				wrong = append(wrong, fmt.Errorf("close snapshot: %w", err))
			}
		}
	}
	return wrong
}

package consensus

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	identityFile   = "identity.rec"
	identityFormat = 1
)

// Identity says whose state a directory holds.
type Identity struct {
	Format    int    `json:"format"`
	ClusterID string `json:"cluster_id"`
	ServerID  string `json:"server_id"`
}

// EnsureIdentity returns the identity of a data directory, and makes a new one
// with a random 128-bit server id where the directory is new. A directory of
// another cluster is refused with ErrForeignDir. It is the only way to come by
// a server id, so that a wiped directory always means a new server. Call it
// before Open, when no node of this directory is running.
func EnsureIdentity(dir, clusterID string) (Identity, error) {
	if clusterID == "" {
		return Identity{}, fmt.Errorf("make identity: cluster id is empty")
	}
	identity, found, err := ReadIdentity(dir)
	if err != nil {
		return Identity{}, err
	}
	if found {
		if identity.ClusterID != clusterID {
			return Identity{}, fmt.Errorf("%w: %s is of cluster %s, not %s", ErrForeignDir, dir, identity.ClusterID, clusterID)
		}
		return identity, nil
	}
	if err := refuseStateWithoutIdentity(dir); err != nil {
		return Identity{}, err
	}
	identity = NewIdentity(clusterID)
	if err := identity.save(dir); err != nil {
		return Identity{}, err
	}
	return identity, nil
}

func randomServerID() string {
	var id [16]byte
	rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}

// save makes a data directory of this identity.
func (identity Identity) save(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make data directory: %w", err)
	}
	payload, err := json.Marshal(identity)
	if err != nil {
		return fmt.Errorf("encode identity: %w", err)
	}
	if err := (fileRecord{filepath.Join(dir, identityFile)}).save(payload); err != nil {
		return fmt.Errorf("save identity: %w", err)
	}
	return syncDir(filepath.Dir(dir))
}

// WasOpened reports whether a server ever used a data directory for more than its
// identity: from then on it has a vote, which is made before anything else.
func WasOpened(dir string) (bool, error) {
	_, err := os.Lstat(filepath.Join(dir, voteFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for vote: %w", err)
	}
	return true, nil
}

// ReadIdentity returns the identity of a data directory, and false where the
// directory is new or absent.
func ReadIdentity(dir string) (Identity, bool, error) {
	path := filepath.Join(dir, identityFile)
	payload, err := (fileRecord{path}).load()
	if err != nil || payload == nil {
		return Identity{}, false, err
	}
	var identity Identity
	if err := json.Unmarshal(payload, &identity); err != nil {
		return Identity{}, false, &CorruptError{File: path, Err: err}
	}
	if identity.Format != identityFormat || identity.ServerID == "" || identity.ClusterID == "" {
		return Identity{}, false, &CorruptError{File: path, Err: fmt.Errorf("identity %+v is not one of format %d", identity, identityFormat)}
	}
	return identity, true, nil
}

// refuseStateWithoutIdentity protects a log whose identity file was lost: under
// a fresh id it would vote twice in one term.
func refuseStateWithoutIdentity(dir string) error {
	for _, name := range []string{voteFile, logMetaFile} {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			return &CorruptError{File: filepath.Join(dir, identityFile), Err: fmt.Errorf("missing, but %s exists", path)}
		}
	}
	return nil
}

// claimDir checks a directory against the ids of a configuration and returns the
// identity to run under.
func claimDir(config Config) (Identity, error) {
	identity, found, err := ReadIdentity(config.Dir)
	switch {
	case err != nil:
		return Identity{}, err
	case !found && config.ID != "":
		return Identity{}, fmt.Errorf("%w: %s is empty but server id %s was given; a wiped server must take a new id", ErrNoIdentity, config.Dir, config.ID)
	case !found:
		return EnsureIdentity(config.Dir, config.ClusterID)
	case identity.ClusterID != config.ClusterID:
		return Identity{}, fmt.Errorf("%w: %s is of cluster %s, not %s", ErrForeignDir, config.Dir, identity.ClusterID, config.ClusterID)
	case config.ID != "" && identity.ServerID != config.ID:
		return Identity{}, fmt.Errorf("%w: %s is of server %s, not %s", ErrForeignDir, config.Dir, identity.ServerID, config.ID)
	}
	return identity, nil
}

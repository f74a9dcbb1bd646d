package store

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"nomadlike/nomadlike/structs"
)

// Identity is who a node is. It is kept apart from the allocations, so that
// a damaged store does not cost the node its name.
type Identity struct {
	NodeID      string `json:"node_id"`     // 128 random bits, hex
	Incarnation uint64 `json:"incarnation"` // +1 at each start of the agent
	BootID      string `json:"boot_id"`     // of the machine's boot in which the agent was last started
	// Unsaved is why this start could not be counted on the disk, which has no
	// room or cannot be written: the next one has the same number, which servers
	// take from a node as well as a higher one. nil: it was counted.
	Unsaved error `json:"-"`
}

const identityFile = "identity.json"

// OpenIdentity reads the identity in dir, or makes one with the given id, or
// with a random one when id is "". It counts this start and is durable when
// it returns, or says in Unsaved that the disk took nothing: a node that is
// known goes on with what runs on it. sameBoot reports whether the machine runs since the last start of
// the agent: only then may tasks of an earlier process live. An id that
// differs from the stored one, and a file that cannot be read as an
// identity, are refused with *structs.Error.
func OpenIdentity(dir, id, bootID string) (identity Identity, sameBoot bool, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Identity{}, false, fmt.Errorf("make data directory: %w", err)
	}
	path := filepath.Join(dir, identityFile)
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if id == "" {
			id = randomID()
		}
		identity.NodeID = id
	case err != nil:
		return Identity{}, false, fmt.Errorf("read identity: %w", err)
	default:
		identity, err = parseIdentity(data)
		if err != nil {
			return Identity{}, false, structs.NewError(structs.CodeInvalid, "client.identity_damaged", "path", path).Because(err)
		}
		if id != "" && id != identity.NodeID {
			return Identity{}, false, structs.NewError(structs.CodeConflict, "client.identity_foreign",
				"path", path, "stored", identity.NodeID, "wanted", id)
		}
	}
	sameBoot = identity.BootID == bootID && bootID != ""
	identity.Incarnation++
	identity.BootID = bootID
	if err := writeIdentity(path, identity); err != nil {
		if data == nil || !NoRoom(err) {
			return Identity{}, false, err
		}
		identity.Unsaved = err
	}
	return identity, sameBoot, nil
}

// ReadBootID returns the kernel's random id of this boot, "" when there is none.
func ReadBootID() string {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

func parseIdentity(data []byte) (Identity, error) {
	var identity Identity
	if err := json.Unmarshal(data, &identity); err != nil {
		return Identity{}, fmt.Errorf("parse identity: %w", err)
	}
	if !validID(identity.NodeID) {
		return Identity{}, fmt.Errorf("parse identity: node id %q is not 1 to 64 hex digits or dashes", identity.NodeID)
	}
	return identity, nil
}

func validID(id string) bool {
	if id == "" || len(id) > 64 {
		return false
	}
	for i := 0; i < len(id); i++ {
		c := id[i]
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && c != '-' {
			return false
		}
	}
	return true
}

func randomID() string {
	var bits [16]byte
	rand.Read(bits[:])
	return hex.EncodeToString(bits[:])
}

func writeIdentity(path string, identity Identity) error {
	data, err := json.Marshal(identity)
	if err != nil {
		return fmt.Errorf("encode identity: %w", err)
	}
	if err := WriteFile(path, append(data, '\n'), 0o600, true); err != nil {
		return fmt.Errorf("write identity: %w", err)
	}
	return nil
}

// NoRoom reports whether a write failed because the disk has no room or takes no
// writes: what lies there can still be read.
func NoRoom(err error) bool {
	for _, cause := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO} {
		if errors.Is(err, cause) {
			return true
		}
	}
	return false
}

// WriteFile replaces a file whole: a reader, also after a crash of this
// process, sees the old or the new bytes and never a mixture. With durable
// set, the new bytes survive a power loss when it returns.
func WriteFile(path string, data []byte, mode fs.FileMode, durable bool) error {
	dir := filepath.Dir(path)
	temp, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name()) // gone already when all went well
	_, err = temp.Write(data)
	if err == nil {
		err = temp.Chmod(mode)
	}
	if err == nil && durable {
		err = temp.Sync()
	}
	if closeErr := temp.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err == nil && durable {
		err = syncDir(dir)
	}
	return err
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

package agent

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"nomadlike/nomadlike/structs"
)

// gossipKeys are the keys of gossip that an agent holds: one, or in a rotation
// two. They lie in the identity directory of each agent and nowhere else: not in
// the log, so neither in snapshots nor in backups.
type gossipKeys struct {
	mu     sync.Mutex // also held while the identity directory is exchanged
	keys   [][]byte   // the one in use first
	stored storedKeys
}

// storedKeys is the content of gossipOldFile.
type storedKeys struct {
	Others [][]byte `json:"others,omitempty"` // understood beside that of gossipKeyFile
	// Offered, on servers, is the newest key that the log does not name yet; Earlier are
	// those before it, the newer first.
	Offered []byte   `json:"offered,omitempty"`
	Earlier [][]byte `json:"earlier_offers,omitempty"`
	// Of the cluster's record that named them.
	Index     uint64           `json:"index,omitempty"`
	RevivedAt structs.UnixNano `json:"revived_at,omitempty"`
}

// read takes the keys beside the one in use from the identity directory.
func (g *gossipKeys) read(base string, primary []byte) error {
	g.keys = [][]byte{primary}
	data, err := os.ReadFile(filepath.Join(base, gossipOldFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	if err := json.Unmarshal(data, &g.stored); err != nil {
		return fmt.Errorf("parse %s: %w", gossipOldFile, err)
	}
	for _, key := range slices.Concat([][]byte{g.stored.Offered}, g.stored.Earlier, g.stored.Others) {
		if len(key) != gossipKeySize && key != nil {
			return fmt.Errorf("parse %s: a key has %d bytes", gossipOldFile, len(key))
		}
	}
	g.keys = append(g.keys, g.stored.Others...)
	return nil
}

// gossipFingerprint names a key of gossip without telling it.
func gossipFingerprint(key []byte) string {
	sum := sha256.Sum256(append([]byte("nomadlike gossip key\x00"), key...))
	return hex.EncodeToString(sum[:])
}

func encodeGossipKey(key []byte) string { return base64.StdEncoding.EncodeToString(key) }

func (g *gossipKeys) primary() []byte { return g.all()[0] }

// all are the keys, the one in use first.
func (g *gossipKeys) all() [][]byte {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.keys)
}

// fingerprints names the keys, the one in use first.
func (g *gossipKeys) fingerprints() []string {
	var names []string
	for _, key := range g.all() {
		names = append(names, gossipFingerprint(key))
	}
	return names
}

// find returns the key with a fingerprint, nil when it is not here.
func (g *gossipKeys) find(fingerprint string) []byte {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, key := range slices.Concat(g.keys, [][]byte{g.stored.Offered}, g.stored.Earlier) {
		if key != nil && gossipFingerprint(key) == fingerprint {
			return key
		}
	}
	return nil
}

// offer keeps a key that the log may name soon.
func (i *identity) offer(key []byte) error {
	if len(key) != gossipKeySize {
		return fmt.Errorf("keep offered gossip key: it has %d bytes", len(key))
	}
	g := &i.gossip
	g.mu.Lock()
	defer g.mu.Unlock()
	kept := g.stored
	if kept.Offered != nil && !bytes.Equal(kept.Offered, key) {
		earlier := append([][]byte{kept.Offered}, kept.Earlier...)
		kept.Earlier = earlier[:min(len(earlier), offersMax-1)]
	}
	kept.Offered = key
	return i.saveGossip(g.keys, kept)
}

// takeGossip makes keys the ones that the agent holds, as a record of the cluster
// says that is no older than the last; use is called with them before anything
// else can change them. Older news change nothing.
func (i *identity) takeGossip(keys [][]byte, index uint64, revivedAt structs.UnixNano, use func([][]byte) error) error {
	if len(keys) == 0 || slices.ContainsFunc(keys, func(key []byte) bool { return len(key) != gossipKeySize }) {
		return errors.New("keep gossip keys: one has the wrong size")
	}
	g := &i.gossip
	g.mu.Lock()
	defer g.mu.Unlock()
	kept := g.stored
	if revivedAt < kept.RevivedAt || revivedAt == kept.RevivedAt && index < kept.Index {
		return nil
	}
	if !slices.EqualFunc(keys, g.keys, bytes.Equal) {
		kept.Others, kept.Index, kept.RevivedAt = keys[1:], index, revivedAt
		if err := i.saveGossip(keys, kept); err != nil {
			return err
		}
	}
	return use(keys)
}

// saveGossip writes keys to the identity directory and then takes them. The
// caller holds the lock.
func (i *identity) saveGossip(keys [][]byte, kept storedKeys) error {
	data, err := json.Marshal(kept)
	if err != nil {
		return fmt.Errorf("keep gossip keys: %w", err)
	}
	if bytes.Equal(keys[0], i.gossip.keys[0]) {
		err = replaceFile(filepath.Join(i.dir, identityDir, gossipOldFile), data)
	} else {
		var files identityFiles
		if files, err = i.files(); err == nil {
			files[gossipKeyFile], files[gossipOldFile] = []byte(encodeGossipKey(keys[0])+"\n"), data
			err = files.exchange(i.dir)
		}
	}
	if err != nil {
		return fmt.Errorf("keep gossip keys: %w", err)
	}
	i.gossip.keys, i.gossip.stored = slices.Clone(keys), kept
	return nil
}

package agent

import (
	"errors"
	"io/fs"
	"path/filepath"

	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/structs"
)

// SaveSealKeys writes a copy of the servers' keys in a data directory to a file of
// mode 0600, and returns their fingerprints. The agent may run.
func SaveSealKeys(dataDir, to string) ([]string, error) {
	keys, err := readSealKeys(filepath.Join(dataDir, sealKeysFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, structs.NewError(structs.CodeNotFound, "agent.secret_keys_none", "dir", dataDir)
	}
	if err != nil {
		return nil, err
	}
	return fingerprints(keys), writeSealKeys(to, keys)
}

// LoadSealKeys adds the keys of a copy to those in a data directory, and returns
// their fingerprints. No agent may use the directory: the next one has them, and
// brings them to the other servers.
func LoadSealKeys(dataDir, from string) ([]string, error) {
	unlock, err := lockDataDir(dataDir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	copied, err := readSealKeys(from)
	if err != nil {
		return nil, err
	}
	keys, err := openSealKeys(dataDir)
	if err != nil {
		return nil, err
	}
	have := append(copied, keys.mu.keys...) // the newest last
	var each []*auth.SealKey
	seen := map[string]bool{}
	for _, key := range have {
		if name := key.Fingerprint(); !seen[name] {
			seen[name] = true
			each = append(each, key)
		}
	}
	return fingerprints(copied), writeSealKeys(keys.path, each)
}

func fingerprints(keys []*auth.SealKey) []string {
	var names []string
	for _, key := range keys {
		names = append(names, key.Fingerprint())
	}
	return names
}

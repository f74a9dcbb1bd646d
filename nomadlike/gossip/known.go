package gossip

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// KnownServer is a server that was once a member.
type KnownServer struct {
	ID   string `json:"id"`
	Addr string `json:"addr"` // host:port of its gossip

	// RPCAddr is host:port of its TLS port; "" in files of before. It is a hint as
	// all that gossip says: whoever answers there proves who it is.
	RPCAddr string `json:"rpc_addr,omitempty"`

	// Protocol is the newest that it told; 0 in files of before.
	Protocol int `json:"protocol,omitempty"`
}

// Known remembers servers over a restart, so that an agent finds its cluster
// again when none of its seeds is up. One goroutine calls it.
type Known interface {
	// Load returns the remembered servers, none if there are none yet.
	Load() ([]KnownServer, error)
	// Save replaces them. The slice is the caller's.
	Save([]KnownServer) error
}

// KnownFile remembers servers in a small JSON file at this path, with mode
// 0600. The file's content is replaced in one step. It is a cache: losing it
// costs the way back when all seeds are gone too, so it is not fsynced.
type KnownFile string

const knownFileMax = 64 << 10 // bytes

var _ Known = KnownFile("")

// Load reads the file; a missing one is empty.
func (f KnownFile) Load() ([]KnownServer, error) {
	info, err := os.Stat(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && info.Size() > knownFileMax {
		err = fmt.Errorf("%d bytes are over the limit of %d", info.Size(), knownFileMax)
	}
	var data []byte
	if err == nil {
		data, err = os.ReadFile(string(f))
	}
	if err != nil {
		return nil, fmt.Errorf("read known servers: %w", err)
	}
	var servers []KnownServer
	if err := json.Unmarshal(data, &servers); err != nil {
		return nil, fmt.Errorf("parse known servers in %s: %w", f, err)
	}
	return servers, nil
}

// Save writes the file anew.
func (f KnownFile) Save(servers []KnownServer) error {
	data, err := json.MarshalIndent(servers, "", "  ")
	if err != nil {
		return fmt.Errorf("encode known servers: %w", err)
	}
	temporary, err := os.CreateTemp(filepath.Dir(string(f)), ".servers-*")
	if err != nil {
		return fmt.Errorf("write known servers: %w", err)
	}
	_, err = temporary.Write(append(data, '\n'))
	err = errors.Join(err, temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), string(f))
	}
	if err != nil {
		return fmt.Errorf("write known servers: %w", errors.Join(err, os.Remove(temporary.Name())))
	}
	return nil
}

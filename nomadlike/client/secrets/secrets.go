// Package secrets gets the secrets of the node's tasks from a server, and has them
// where tasks find them: in the environment that a driver is told, and as files in
// memory.
//
// Flow: prepare asks Get for an allocation that names secrets and puts Env into the
// spec that the driver starts; hooks and debug holds, whose records on the disk hold
// none, ask again. Forget drops what is known of an allocation that has ended.
//
// Limits: values are in this process's memory, in that of the task's supervisor, and
// in files of a file system in memory; never on a disk, in a record, a report or a
// message. An agent that starts again asks a server anew.
package secrets

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

const (
	askPatience = 10 * time.Second // for one server
	askEvery    = 500 * time.Millisecond
	askRounds   = 20 // of all servers, until the node gives up
)

// Ask asks the server at addr for the secrets of an allocation.
type Ask func(ctx context.Context, addr, allocID string) (*structs.SecretsReply, error)

// Keeper has the secrets of the allocations of one node. Any goroutine may use it.
type Keeper struct {
	ask     Ask             // nil: there are none
	servers func() []string // addresses, the one that the node is connected to first
	root    string          // directory in memory for files; "" means that there is none

	mu struct {
		sync.Mutex
		known map[string][]structs.SecretValue // by allocation
	}
}

// New makes a keeper that knows nothing. root is made when the first file is.
func New(ask Ask, servers func() []string, root string) *Keeper {
	k := &Keeper{ask: ask, servers: servers, root: root}
	k.mu.known = make(map[string][]structs.SecretValue)
	return k
}

// Get returns the secrets of an allocation, of a server where they are not known yet.
// Callers do not change them. Servers that do not answer are asked again for a while;
// a refusal is final.
func (k *Keeper) Get(ctx context.Context, allocID string) ([]structs.SecretValue, error) {
	if values, ok := k.cached(allocID); ok {
		return values, nil
	}
	if k.ask == nil {
		return nil, errors.New("this node asks no server")
	}
	failure := errors.New("no server is known")
	for range askRounds {
		for _, addr := range k.servers() {
			values, err := k.askOne(ctx, addr, allocID)
			if err == nil {
				k.mu.Lock()
				k.mu.known[allocID] = values
				k.mu.Unlock()
				return values, nil
			}
			if failure = err; final(err) {
				return nil, err
			}
		}
		select {
		case <-time.After(askEvery):
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), failure)
		}
	}
	return nil, failure
}

func (k *Keeper) cached(allocID string) ([]structs.SecretValue, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	values, ok := k.mu.known[allocID]
	return values, ok
}

func (k *Keeper) askOne(ctx context.Context, addr, allocID string) ([]structs.SecretValue, error) {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	reply, err := k.ask(ctx, addr, allocID)
	if err != nil {
		return nil, err
	}
	return reply.Values, nil
}

// final reports whether another server would answer the same.
func final(err error) bool {
	switch structs.CodeOf(err) {
	case structs.CodeForbidden, structs.CodeNotFound, structs.CodeInvalid:
		return true
	}
	return false
}

// Added returns an environment with the secrets of an allocation that are variables.
// Of an allocation whose secrets are not to be had it is env as it is.
func (k *Keeper) Added(ctx context.Context, allocID string, uses []structs.SecretUse, env []string) []string {
	if len(uses) == 0 {
		return env
	}
	values, err := k.Get(ctx, allocID)
	if err != nil {
		return env
	}
	return append(append([]string(nil), env...), Env(values)...)
}

// ImageCredentials is the secret with which the node signs in to the registry of the
// task's image; nil without one.
func ImageCredentials(values []structs.SecretValue) []byte {
	for i := range values {
		if values[i].Use.Image {
			return values[i].Value
		}
	}
	return nil
}

// Masks lists what of an allocation's secrets is masked; nothing where they are not to
// be had, since then nobody was given them here.
func (k *Keeper) Masks(ctx context.Context, allocID string, uses []structs.SecretUse) []structs.Mask {
	if len(uses) == 0 {
		return nil
	}
	values, err := k.Get(ctx, allocID)
	if err != nil {
		return nil
	}
	return Masks(values)
}

// Remask has a driver told again what to mask in the logs of a task that it has taken
// over, until it has heard it: values are on no disk, so that after a restart of the
// agent a log writer that has to be started anew, too, knows none. Secrets that servers
// refuse, such as deleted ones, are none that anybody knows.
func (k *Keeper) Remask(ctx context.Context, allocID string, tell func(context.Context, []structs.Mask) error) error {
	for {
		values, err := k.Get(ctx, allocID)
		if err == nil || final(err) {
			err = tell(ctx, Masks(values))
			if !errors.Is(err, driver.ErrUnavailable) && !errors.Is(err, driver.ErrUnknownTask) { // not recovered yet
				return err
			}
		}
		select {
		case <-time.After(askEvery):
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		}
	}
}

// Env is the variables among secrets, as NAME=value.
func Env(values []structs.SecretValue) []string {
	var env []string
	for i := range values {
		if use := &values[i].Use; use.Var != "" {
			env = append(env, use.Var+"="+string(values[i].Value))
		}
	}
	return env
}

// masksMax bounds what is masked in the logs of a task, in bytes of texts; a
// tasklog.Masker does not look for more.
const masksMax = 768 << 10

// Masks lists what of secrets is to be masked in logs, with the name of each.
func Masks(values []structs.SecretValue) []structs.Mask {
	var masks []structs.Mask
	size := 0
	for i := range values {
		if values[i].Use.Image {
			continue // the task does not have it
		}
		for _, part := range structs.Maskable(values[i].Value) {
			if size += len(part); size > masksMax {
				return masks
			}
			masks = append(masks, structs.Mask{Name: values[i].Use.Name, Version: values[i].Version, Text: part})
		}
	}
	return masks
}

// Files writes the secrets of an allocation that are files, and returns their
// directory; "" when none is a file. Of a container, whose user nobody knows, everybody
// who gets to the directory may read them, and nobody outside gets there.
func (k *Keeper) Files(allocID string, values []structs.SecretValue, own func(path string) error, container bool) (dir string, err error) {
	dirMode, mode := fs.FileMode(0o500), fs.FileMode(0o400)
	for i := range values {
		if values[i].Use.Var != "" || values[i].Use.Image {
			continue
		}
		if dir == "" {
			if dir, err = k.makeDir(allocID, container); err != nil {
				return "", err
			}
		}
		if container {
			dirMode, mode = 0o555, 0o444
		}
		path := filepath.Join(dir, values[i].Use.Name)
		_ = os.Remove(path) // of a preparation before
		if err := os.WriteFile(path, values[i].Value, mode); err != nil {
			return "", err
		}
		if err := own(path); err != nil {
			return "", err
		}
	}
	if dir == "" {
		return "", nil
	}
	if err := own(dir); err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, dirMode)
}

// makeDir makes the directory of an allocation's files.
func (k *Keeper) makeDir(allocID string, container bool) (string, error) {
	if k.root == "" {
		return "", errors.New("there is no directory in memory")
	}
	if err := os.Mkdir(k.root, 0o711); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	if err := private(k.root); err != nil {
		return "", err
	}
	dir := filepath.Join(k.root, allocID)
	if container {
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", err
		}
		dir = filepath.Join(dir, "files")
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return dir, os.Chmod(dir, 0o700)
}

// private refuses a directory that is not the agent's own, or not in memory.
func private(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || int(stat.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s is not the agent's own", dir)
	}
	if !inMemory(dir) {
		return fmt.Errorf("%s is not in memory", dir)
	}
	return nil
}

func inMemory(dir string) bool {
	const tmpfs, ramfs = 0x01021994, 0x858458f6
	var system syscall.Statfs_t
	err := syscall.Statfs(dir, &system)
	return err == nil && (uint32(system.Type) == tmpfs || uint32(system.Type) == ramfs)
}

// DirPrefix begins the name of the directory in memory of each node.
const DirPrefix = "nomadlike-secrets-"

// Dir is a node's directory in the first place that is in memory; "" when none is.
func Dir(nodeID string, places ...string) string {
	for _, place := range places {
		if place != "" && inMemory(place) {
			return filepath.Join(place, DirPrefix+nodeID)
		}
	}
	return ""
}

// Root is the directory below which files are, "" where there is none.
func (k *Keeper) Root() string { return k.root }

// Forget drops what is known of an allocation, and removes its files.
func (k *Keeper) Forget(allocID string) error {
	k.mu.Lock()
	delete(k.mu.known, allocID)
	k.mu.Unlock()
	if k.root == "" || allocID == "" || filepath.Base(allocID) != allocID {
		return nil
	}
	dir := filepath.Join(k.root, allocID)
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	_ = os.Chmod(dir, 0o700) // no directory of ours lets its owner write
	_ = os.Chmod(filepath.Join(dir, "files"), 0o700)
	err := os.RemoveAll(dir)
	_ = os.Remove(k.root) // refused while there are others
	return err
}

// Sweep removes the files of allocations that are not kept.
func (k *Keeper) Sweep(kept func(allocID string) bool) error {
	if k.root == "" {
		return nil
	}
	entries, err := os.ReadDir(k.root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		if !kept(entry.Name()) {
			err = errors.Join(err, k.Forget(entry.Name()))
		}
	}
	return err
}

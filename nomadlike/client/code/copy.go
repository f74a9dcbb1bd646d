package code

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

// Made is what a task was given.
type Made struct {
	Files   int
	Bytes   int64 // of its files
	Fetched int64 // of those that were not on the node before
}

// Copy writes the code that is wanted to the directory name of root, in the place of
// whatever is there, and hands all of it over with give. Until that is done nobody but
// the agent gets into it, whoever may write to root.
//
// Errors: ErrNoRoom, ErrCorrupt, those of servers, and what tree says of a list that
// no node unpacks.
func (s *Store) Copy(ctx context.Context, of Wanted, root *os.Root, name string, give func(root *os.Root, path string) error, progress Progress) (Made, error) {
	if !of.Tree.Valid() {
		return Made{}, structs.NewError(structs.CodeInvalid, "client.code_digest", "digest", string(of.Tree))
	}
	release := s.use(of.key())
	defer release()
	manifest, fetched, err := s.fetch(ctx, of, progress)
	if err != nil {
		return Made{}, err
	}
	if err := s.writeOut(ctx, of, manifest, root, name, give); err != nil {
		if full(err) {
			err = s.noRoom(err)
		}
		return Made{}, err
	}
	return Made{Files: manifest.Files(), Bytes: manifest.Bytes(), Fetched: fetched}, nil
}

// writeOut makes the copy of a tree that is in the cache.
func (s *Store) writeOut(ctx context.Context, of Wanted, manifest tree.Manifest, root *os.Root, name string, give func(root *os.Root, path string) error) error {
	if err := removeAll(root, name); err != nil {
		return fmt.Errorf("remove the code of a preparation before: %w", err)
	}
	if err := root.Mkdir(name, 0o700); err != nil {
		return err
	}
	at, err := root.OpenRoot(name)
	if err != nil {
		return err
	}
	defer at.Close()
	if err := verifyOwn(at); err != nil {
		return err
	}
	err = tree.Unpack(ctx, manifest, at, func(ctx context.Context, chunk tree.Chunk) (io.ReadCloser, error) {
		return s.open(ctx, of, chunk)
	})
	if err != nil {
		return err
	}
	for i := len(manifest.Entries) - 1; i >= 0; i-- { // what is in a directory before it
		if err := give(at, manifest.Entries[i].Path); err != nil {
			return err
		}
	}
	if err := at.Chmod(".", 0o755); err != nil {
		return err
	}
	return give(at, ".")
}

// verifyOwn refuses a directory that is not the empty one of the agent that was just
// made: somebody who may write beside it has put another in its place.
func verifyOwn(at *os.Root) error {
	dir, err := at.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	info, err := dir.Stat()
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if _, err := dir.Readdirnames(1); !errors.Is(err, io.EOF) || !ok || int(stat.Uid) != os.Geteuid() {
		return structs.NewError(structs.CodeForbidden, "client.code_place")
	}
	return nil
}

// removeAll removes a directory, also one whose directories nobody may write to.
func removeAll(root *os.Root, name string) error {
	err := root.RemoveAll(name)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	if err := openDirs(root, name); err != nil {
		return err
	}
	return root.RemoveAll(name)
}

// openDirs lets the agent write to a directory and to those below it.
func openDirs(root *os.Root, dir string) error {
	if info, err := root.Lstat(dir); err != nil || !info.IsDir() {
		return err
	}
	if err := root.Chmod(dir, 0o700); err != nil {
		return err
	}
	f, err := root.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			if err := openDirs(root, path.Join(dir, entry.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

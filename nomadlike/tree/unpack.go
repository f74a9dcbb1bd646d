package tree

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"syscall"

	"nomadlike/nomadlike/structs"
)

// Unpack writes the tree below root, an empty directory that nobody else writes to
// meanwhile. It asks open for each chunk when it needs it, closes what it was given,
// and verifies every byte. No link is followed, nothing that exists is written over,
// and modes are as the manifest says whatever the umask. After an error root holds a
// part of the tree and is good for removal only. Errors name the file and wrap what
// the system or open said.
func Unpack(ctx context.Context, m Manifest, root *os.Root, open func(context.Context, Chunk) (io.ReadCloser, error)) error {
	if err := m.Check(); err != nil {
		return err
	}
	for i := range m.Entries {
		entry := &m.Entries[i]
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		switch entry.Kind {
		case KindDir:
			err = root.Mkdir(entry.Path, 0o700) // open for its entries until all of them lie there
		case KindLink:
			err = root.Symlink(entry.Target, entry.Path)
		case KindFile:
			err = unpackFile(ctx, entry, root, open)
		}
		if err != nil {
			return unpackFailed(entry.Path, err)
		}
	}
	for i := len(m.Entries) - 1; i >= 0; i-- { // a directory that may not be searched hides its own first
		if entry := &m.Entries[i]; entry.Kind == KindDir {
			if err := root.Chmod(entry.Path, os.FileMode(entry.Mode)); err != nil {
				return unpackFailed(entry.Path, err)
			}
		}
	}
	return nil
}

func unpackFailed(name string, err error) error {
	var told *structs.Error
	if errors.As(err, &told) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return structs.NewError(structs.CodeUnavailable, "tree.disk_full", "path", shown(name)).Because(err)
	}
	return structs.NewError(structs.CodeUnavailable, "tree.unpack", "path", shown(name), "problem", systemSaid(err)).Because(err)
}

// systemSaid is what the system said about a file, without the path, which the text
// names itself.
func systemSaid(err error) error {
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return err
}

func unpackFile(ctx context.Context, entry *Entry, root *os.Root, open func(context.Context, Chunk) (io.ReadCloser, error)) (err error) {
	file, err := root.OpenFile(entry.Path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	for _, chunk := range entry.Chunks {
		if err := copyChunk(ctx, file, chunk, entry.Path, open); err != nil {
			return err
		}
	}
	return file.Chmod(os.FileMode(entry.Mode))
}

func copyChunk(ctx context.Context, to io.Writer, chunk Chunk, name string, open func(context.Context, Chunk) (io.ReadCloser, error)) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	from, err := open(ctx, chunk)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	sum := sha256.New()
	size, err := io.Copy(io.MultiWriter(to, sum), io.LimitReader(from, chunk.Size+1))
	if err != nil {
		return err
	}
	if size != chunk.Size || digestFrom([sha256.Size]byte(sum.Sum(nil))) != chunk.Digest {
		return structs.NewError(structs.CodeInternal, "tree.wrong_bytes", "path", shown(name), "chunk", chunk.Digest.Short())
	}
	return nil
}

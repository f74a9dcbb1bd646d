package parcel

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

// Extract writes all that is left of a parcel below root, an empty directory that nobody
// else writes to meanwhile. Progress, which may be nil, is told how many bytes have been
// written. After an error root holds a part, and is good for removal only; what is there
// may be believed when there is none.
func (r *Reader) Extract(root *os.Root, progress func(done int64)) error {
	var dirs []Entry
	done := int64(0)
	for {
		entry, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		switch entry.Kind {
		case KindDir:
			dirs = append(dirs, *entry)
			err = root.Mkdir(entry.Path, 0o700) // open for its entries until all of them lie there
		case KindLink:
			err = root.Symlink(entry.Target, entry.Path)
		default:
			err = r.writeFile(root, entry.Path, os.FileMode(entry.Mode))
		}
		if err != nil {
			return writeFailed(entry.Path, err)
		}
		if done += entry.Size; progress != nil {
			progress(done)
		}
	}
	for i := len(dirs) - 1; i >= 0; i-- { // a directory that may not be searched hides its own first
		if err := root.Chmod(dirs[i].Path, os.FileMode(dirs[i].Mode)); err != nil {
			return writeFailed(dirs[i].Path, err)
		}
	}
	return nil
}

// ExtractCode reads the whole parcel and writes the files of its code below root, an
// empty directory of the caller's own, so that they can be read there whatever their
// modes are. It returns what the code is; an empty manifest when there is none.
func (r *Reader) ExtractCode(root *os.Root, progress func(done int64)) (tree.Manifest, error) {
	done := int64(0)
	for {
		entry, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return tree.Manifest{}, err
		}
		if below, ok := strings.CutPrefix(entry.Path, CodeDir+"/"); ok && entry.Kind == KindFile {
			if err = root.MkdirAll(path.Dir(below), 0o700); err == nil {
				err = r.writeFile(root, below, 0o600)
			}
			if err != nil {
				return tree.Manifest{}, writeFailed(entry.Path, err)
			}
		}
		if done += entry.Size; progress != nil {
			progress(done)
		}
	}
	if r.code == nil {
		return tree.Manifest{}, nil
	}
	return r.code.manifest, nil
}

func (r *Reader) writeFile(root *os.Root, name string, mode fs.FileMode) (err error) {
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := io.Copy(file, struct{ io.Reader }{r}); err != nil {
		return err
	}
	return file.Chmod(mode)
}

func writeFailed(name string, err error) error {
	var told *structs.Error
	if errors.As(err, &told) {
		return err
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return structs.NewError(structs.CodeUnavailable, "parcel.disk_full", "path", shown(name)).Because(err)
	}
	inner := err
	for next := errors.Unwrap(inner); next != nil; next = errors.Unwrap(inner) {
		inner = next
	}
	return structs.NewError(structs.CodeUnavailable, "parcel.unpack", "path", shown(name), "problem", inner).Because(err)
}

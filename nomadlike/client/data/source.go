package data

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
)

// Source is where a dataset comes from that is no directory of the node: a
// server that answers requests. Open is called from several goroutines.
type Source interface {
	// List reports which files there are. A file that is not there is an error
	// that wraps fs.ErrNotExist.
	List(ctx context.Context) (*Listing, error)
	// Open reads length bytes of a file from offset on, and goes on by itself
	// after a cut. A file that is not the one of the listing any more ends in an
	// error that wraps ErrChanged.
	Open(ctx context.Context, f *File, offset, length int64) (io.ReadCloser, error)
}

// ErrCorrupt is returned when a file does not have the digest that it must
// have.
var ErrCorrupt = errors.New("contents do not have the digest that is told of them")

// Rights of what comes from a Source, which knows no owners: every task whose
// job may name it reads it. An agent that is not root must be able to remove it.
const (
	sourceFileMode        = 0o444
	sourceDirMode         = 0o555
	sourceDirModeUnrooted = 0o755
)

// NewListing makes a listing of files that a Source reports by Path, Size,
// Tag, SHA256 and Whole. Paths that are none below the dataset, that occur
// twice, or that are a file and a directory, are refused: they come from
// outside. The files are the listing's from now on.
func NewListing(origin string, files []File) (*Listing, error) {
	if len(files) > SourceFilesMax {
		return nil, fmt.Errorf("list dataset: it has more than %d files: pack them into larger ones, or read them from a storage of the node", SourceFilesMax)
	}
	nobody, dirMode := owner{-1, -1}, fs.FileMode(sourceDirMode)
	if os.Geteuid() != 0 {
		dirMode = sourceDirModeUnrooted
	}
	l := &Listing{Origin: origin}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	dirs := map[string]bool{".": true}
	for i := range files {
		f := &files[i]
		if !fs.ValidPath(f.Path) || f.Path == "." || strings.ContainsRune(f.Path, 0) || len(f.Path) > pathMax {
			return nil, fmt.Errorf("list dataset: %q is no path of a file below it", f.Path)
		}
		if i > 0 && files[i-1].Path == f.Path {
			return nil, fmt.Errorf("list dataset: %q occurs twice", f.Path)
		}
		if f.Size < 0 || l.Bytes+f.Size < 0 {
			return nil, fmt.Errorf("list dataset: size of %q is not known", f.Path)
		}
		f.Mode, f.Owner, f.MTime = sourceFileMode, nobody, 0
		l.Bytes += f.Size
		for dir := path.Dir(f.Path); !dirs[dir]; dir = path.Dir(dir) {
			dirs[dir] = true
		}
		if err := l.files.add(f); err != nil {
			return nil, err
		}
	}
	for i := range files {
		if dirs[files[i].Path] {
			return nil, fmt.Errorf("list dataset: %q is a file and a directory", files[i].Path)
		}
	}
	delete(dirs, ".")
	for _, dir := range append([]string{"."}, slices.Sorted(maps.Keys(dirs))...) { // parents first
		if err := l.dirs.add(&File{Path: dir, Mode: dirMode, Owner: nobody}); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// pathMax bounds the path of a file in a dataset, in bytes.
const pathMax = 4096

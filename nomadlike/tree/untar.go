package tree

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"nomadlike/nomadlike/structs"
)

// Untar writes what a tar archive holds, plain or compressed by gzip, below root: an
// empty directory that nobody else writes to meanwhile. Files, directories and links
// are taken, with their modes; whatever else is in it, a name that leads out, a name
// that comes twice, and more than bytesMax bytes or EntriesMax names are an error.
// Links are made last, so that none is followed. After an error root holds a part of
// the archive and is good for removal only.
func Untar(ctx context.Context, from io.Reader, root *os.Root, bytesMax int64) error {
	plain, err := uncompressed(from)
	if err != nil {
		return archiveBroken(err)
	}
	u := &untar{root: root, left: bytesMax, max: bytesMax, modes: make(map[string]fs.FileMode)}
	whole := &ending{from: plain}
	for archive := tar.NewReader(whole); ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		head, err := archive.Next()
		if err == io.EOF {
			if err := whole.check(); err != nil {
				return archiveBroken(err)
			}
			return u.end()
		}
		if err != nil {
			return archiveBroken(err)
		}
		if err := u.entry(head, archive); err != nil {
			return err
		}
	}
}

// ending tells an archive that has ended from one that broke off: the first says that it
// ends, and package tar takes both.
type ending struct {
	from io.Reader
	over bool // from ended before the archive did
}

// archiveTailMax bounds what may follow an archive: tar fills up its last record.
const archiveTailMax = 1 << 20

func (e *ending) Read(into []byte) (int, error) {
	read, err := e.from.Read(into)
	if err == io.EOF && read > 0 {
		return read, nil
	}
	e.over = e.over || err == io.EOF
	return read, err
}

// check reads to the end, where a compressed archive has its checksum.
func (e *ending) check() error {
	if e.over {
		return io.ErrUnexpectedEOF
	}
	tail, err := io.Copy(io.Discard, io.LimitReader(e.from, archiveTailMax+1))
	if err == nil && tail > archiveTailMax {
		return errors.New("something follows the archive")
	}
	return err
}

var gzipMark = []byte{0x1f, 0x8b}

func uncompressed(from io.Reader) (io.Reader, error) {
	buffered := bufio.NewReader(from)
	if mark, _ := buffered.Peek(len(gzipMark)); string(mark) != string(gzipMark) {
		return buffered, nil
	}
	return gzip.NewReader(buffered)
}

func archiveBroken(err error) error {
	var told *structs.Error
	if errors.As(err, &told) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return structs.NewError(structs.CodeInvalid, "tree.archive_broken", "problem", systemSaid(err)).Because(err)
}

// untarFailed is the archive's fault where it names something twice, or below what is
// no directory, and else the disk's.
func untarFailed(name string, err error) error {
	if errors.Is(err, fs.ErrExist) || errors.Is(err, syscall.ENOTDIR) {
		return structs.NewError(structs.CodeInvalid, "tree.order", "path", shown(name))
	}
	return unpackFailed(name, err)
}

// untar is an archive that is being written to a directory.
type untar struct {
	root  *os.Root
	left  int64 // bytes that may still come
	max   int64
	names int
	dirs  []string               // in the order in which they were made
	modes map[string]fs.FileMode // of those that the archive names
	links [][2]string            // name and target
}

func (u *untar) entry(head *tar.Header, body io.Reader) error {
	if head.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	name := strings.TrimSuffix(strings.TrimPrefix(head.Name, "./"), "/")
	if name == "" || name == "." {
		return nil // the directory itself
	}
	if name != path.Clean(name) || !fs.ValidPath(name) || strings.ContainsRune(name, 0) || len(name) > PathMax {
		return structs.NewError(structs.CodeInvalid, "tree.path", "path", shown(head.Name))
	}
	if u.names++; u.names > EntriesMax {
		return structs.NewError(structs.CodeTooLarge, "tree.too_many", "max", EntriesMax)
	}
	if err := u.parents(path.Dir(name)); err != nil {
		return untarFailed(name, err)
	}
	mode := head.FileInfo().Mode().Perm()
	switch head.Typeflag {
	case tar.TypeDir:
		if err := u.dir(name); err != nil {
			return untarFailed(name, err)
		}
		u.modes[name] = mode
	case tar.TypeReg:
		return u.file(name, mode, head.Size, body)
	case tar.TypeSymlink:
		u.links = append(u.links, [2]string{name, head.Linkname})
	default:
		return structs.NewError(structs.CodeInvalid, "tree.archive_special", "path", shown(name))
	}
	return nil
}

// parents makes the directories above a name, which archives need not list.
func (u *untar) parents(name string) error {
	if name == "." {
		return nil
	}
	if info, err := u.root.Lstat(name); err == nil && info.IsDir() {
		return nil
	}
	if err := u.parents(path.Dir(name)); err != nil {
		return err
	}
	return u.dir(name)
}

func (u *untar) dir(name string) error {
	err := u.root.Mkdir(name, 0o700) // open for its entries until all of them lie there
	if errors.Is(err, fs.ErrExist) {
		if info, lookErr := u.root.Lstat(name); lookErr == nil && info.IsDir() {
			return nil // it was made for what lies below it
		}
	}
	if err == nil {
		u.dirs = append(u.dirs, name)
		u.modes[name] = 0o755
	}
	return err
}

func (u *untar) file(name string, mode fs.FileMode, size int64, body io.Reader) error {
	if size > u.left {
		return structs.NewError(structs.CodeTooLarge, "tree.archive_too_large", "max", u.max)
	}
	file, err := u.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return untarFailed(name, err)
	}
	into := &noting{to: file}
	wrote, err := io.Copy(into, io.LimitReader(body, u.left+1))
	u.left -= wrote
	switch {
	case into.err != nil:
		err = untarFailed(name, into.err)
	case err != nil:
		err = archiveBroken(err)
	case u.left < 0:
		err = structs.NewError(structs.CodeTooLarge, "tree.archive_too_large", "max", u.max)
	default:
		err = file.Chmod(mode)
	}
	return errors.Join(err, file.Close())
}

// noting keeps what kept a file from being written, apart from what kept the archive
// from being read.
type noting struct {
	to  io.Writer
	err error
}

func (n *noting) Write(data []byte) (int, error) {
	wrote, err := n.to.Write(data)
	if err != nil {
		n.err = err
	}
	return wrote, err
}

// end makes the links, and gives the directories their modes.
func (u *untar) end() error {
	for _, link := range u.links {
		if err := u.root.Symlink(link[1], link[0]); err != nil {
			return untarFailed(link[0], err)
		}
	}
	for i := len(u.dirs) - 1; i >= 0; i-- { // a directory that may not be searched hides its own first
		if err := u.root.Chmod(u.dirs[i], u.modes[u.dirs[i]]); err != nil {
			return untarFailed(u.dirs[i], err)
		}
	}
	return nil
}

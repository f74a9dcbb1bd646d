//go:build linux

package taskside

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// handle is a file or a directory that the peer has open.
type handle struct {
	file  *os.File
	names []os.DirEntry // of a directory: read, not told yet
	dir   bool
	added bool // opened for appending: offsets of writes do not count
}

// files serves one peer: one goroutine, one request after the other.
type files struct {
	in      *bufio.Reader
	out     *bufio.Writer
	packet  []byte
	handles map[string]*handle
	last    uint64 // handles that there were
	user    func(uid uint32) string
}

// ServeFiles speaks the file transfer protocol with a peer until its end. Every
// path is the kernel's to judge, for the user that this process has.
func ServeFiles(peer io.ReadWriter) error {
	f := &files{
		in: bufio.NewReaderSize(peer, packetMax), out: bufio.NewWriterSize(peer, 64<<10),
		handles: make(map[string]*handle), user: func(id uint32) string { return strconv.FormatUint(uint64(id), 10) },
	}
	defer f.closeAll()
	kind, body, err := f.read()
	switch {
	case err != nil:
		return err
	case kind != packetInit || len(body.rest) < 4:
		return fmt.Errorf("sftp: packet %d before the first: %w", kind, errMalformed)
	}
	version := newAnswer(packetVersion, 3)
	for _, name := range []string{"posix-rename@openssh.com", "hardlink@openssh.com", "fsync@openssh.com", "lsetstat@openssh.com", "limits@openssh.com", "expand-path@openssh.com"} {
		version.string(name)
		version.string("1")
	}
	if err := version.sendTo(f.out); err != nil {
		return err
	}
	for {
		if f.in.Buffered() == 0 {
			if err := f.out.Flush(); err != nil {
				return err
			}
		}
		kind, body, err := f.read()
		if errors.Is(err, io.EOF) {
			return f.out.Flush()
		}
		if err != nil {
			return err
		}
		id := body.uint32()
		if body.bad {
			return errMalformed
		}
		if err := f.serve(kind, id, body).sendTo(f.out); err != nil {
			return err
		}
	}
}

// read reads one packet; its content lasts until the next.
func (f *files) read() (byte, *reader, error) {
	var length [4]byte
	if _, err := io.ReadFull(f.in, length[:]); err != nil {
		return 0, nil, err // io.EOF between packets
	}
	n := binary.BigEndian.Uint32(length[:])
	if n < 1 || n > packetMax {
		return 0, nil, fmt.Errorf("sftp: packet of %d bytes", n)
	}
	if cap(f.packet) < int(n) {
		f.packet = make([]byte, n)
	}
	packet := f.packet[:n]
	if _, err := io.ReadFull(f.in, packet); err != nil {
		return 0, nil, fmt.Errorf("sftp: packet broke off: %w", io.ErrUnexpectedEOF)
	}
	return packet[0], &reader{rest: packet[1:]}, nil
}

func (f *files) closeAll() {
	for _, h := range f.handles {
		h.file.Close()
	}
}

// serve executes one request.
func (f *files) serve(kind byte, id uint32, r *reader) *answer {
	switch kind {
	case packetOpen:
		return f.open(id, r)
	case packetOpendir:
		return f.opendir(id, r)
	case packetRead:
		return f.readFile(id, r)
	case packetReaddir:
		return f.readdir(id, r)
	case packetStat, packetLstat, packetFstat:
		return f.stat(kind, id, r)
	case packetRealpath:
		return realpath(id, r)
	case packetReadlink:
		path := r.path()
		if r.bad {
			return status(id, errMalformed)
		}
		target, err := os.Readlink(path)
		if err != nil {
			return status(id, err)
		}
		return oneName(id, target)
	case packetExtended:
		return f.extended(id, r)
	}
	return status(id, f.change(kind, r))
}

// change executes the requests that are answered by a status.
func (f *files) change(kind byte, r *reader) error {
	switch kind {
	case packetClose:
		return f.close(r)
	case packetWrite:
		return f.write(r)
	case packetSetstat:
		path, a := r.path(), r.attributes()
		if r.bad {
			return errMalformed
		}
		return setPath(path, a, true)
	case packetFsetstat:
		h, a := f.handle(r), r.attributes()
		if r.bad || h == nil {
			return errMalformed
		}
		return setFile(h.file, a)
	case packetRemove:
		path := r.path()
		if r.bad {
			return errMalformed
		}
		return syscall.Unlink(path)
	case packetMkdir:
		path, a := r.path(), r.attributes()
		if r.bad {
			return errMalformed
		}
		return os.Mkdir(path, a.permissions(0o777))
	case packetRmdir:
		path := r.path()
		if r.bad {
			return errMalformed
		}
		return syscall.Rmdir(path)
	case packetRename:
		from, to := r.path(), r.path()
		if r.bad {
			return errMalformed
		}
		if _, err := os.Lstat(to); err == nil {
			return syscall.EEXIST // as this request has it; posix-rename replaces
		}
		return os.Rename(from, to)
	case packetSymlink: // the target comes first, as OpenSSH has it and everybody since
		target, path := r.path(), r.path()
		if r.bad {
			return errMalformed
		}
		return os.Symlink(target, path)
	}
	return errors.ErrUnsupported
}

func (a attributes) permissions(usual uint32) os.FileMode {
	if a.flags&attrMode != 0 {
		usual = a.mode
	}
	return os.FileMode(usual & 0o777)
}

// add remembers what was opened, and answers with its name.
func (f *files) add(id uint32, h *handle) *answer {
	if len(f.handles) >= handlesMax {
		h.file.Close()
		return status(id, syscall.EMFILE)
	}
	f.last++
	name := strconv.FormatUint(f.last, 10)
	f.handles[name] = h
	a := newAnswer(packetHandle, id)
	a.string(name)
	return a
}

// handle finds what the peer opened; nil when there is none of that name.
func (f *files) handle(r *reader) *handle { return f.handles[string(r.bytes())] }

func (f *files) open(id uint32, r *reader) *answer {
	path, wanted, a := r.path(), r.uint32(), r.attributes()
	if r.bad {
		return status(id, errMalformed)
	}
	how := os.O_RDONLY
	switch {
	case wanted&openRead != 0 && wanted&(openWrite|openAppend) != 0:
		how = os.O_RDWR
	case wanted&(openWrite|openAppend) != 0:
		how = os.O_WRONLY
	}
	for flag, of := range map[uint32]int{openAppend: os.O_APPEND, openCreate: os.O_CREATE, openTrunc: os.O_TRUNC, openExcl: os.O_EXCL} {
		if wanted&flag != 0 {
			how |= of
		}
	}
	file, err := os.OpenFile(path, how, a.permissions(0o666))
	if err != nil {
		return status(id, err)
	}
	return f.add(id, &handle{file: file, added: wanted&openAppend != 0})
}

func (f *files) opendir(id uint32, r *reader) *answer {
	path := r.path()
	if r.bad {
		return status(id, errMalformed)
	}
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return status(id, err)
	}
	return f.add(id, &handle{file: file, dir: true})
}

func (f *files) close(r *reader) error {
	name := string(r.bytes())
	h := f.handles[name]
	if h == nil {
		return errMalformed
	}
	delete(f.handles, name)
	return h.file.Close()
}

func (f *files) readFile(id uint32, r *reader) *answer {
	h, offset, n := f.handle(r), r.uint64(), r.uint32()
	if r.bad || h == nil || offset > 1<<62 {
		return status(id, errMalformed)
	}
	n = min(n, readMax)
	a := newAnswer(packetData, id)
	head := len(a.data) + 4
	a.data = append(a.data, make([]byte, 4+int(n))...)
	got, err := h.file.ReadAt(a.data[head:], int64(offset))
	if errors.Is(err, syscall.ESPIPE) {
		got, err = h.file.Read(a.data[head:])
	}
	if got == 0 {
		if err == nil {
			err = io.EOF
		}
		return status(id, err)
	}
	binary.BigEndian.PutUint32(a.data[head-4:], uint32(got))
	a.data = a.data[:head+got]
	return a
}

func (f *files) write(r *reader) error {
	h, offset, data := f.handle(r), r.uint64(), r.bytes()
	if r.bad || h == nil || offset > 1<<62 {
		return errMalformed
	}
	var err error
	if h.added {
		_, err = h.file.Write(data)
	} else if _, err = h.file.WriteAt(data, int64(offset)); errors.Is(err, syscall.ESPIPE) {
		_, err = h.file.Write(data)
	}
	return err
}

func (f *files) readdir(id uint32, r *reader) *answer {
	h := f.handle(r)
	if r.bad || h == nil || !h.dir {
		return status(id, errMalformed)
	}
	if len(h.names) == 0 {
		var err error
		if h.names, err = h.file.ReadDir(namesMax); len(h.names) == 0 {
			if err == nil {
				err = io.EOF
			}
			return status(id, err)
		}
	}
	a := newAnswer(packetName, id)
	count := len(a.data)
	a.uint32(0)
	told := uint32(0)
	for _, entry := range h.names {
		info, err := entry.Info()
		if err != nil {
			continue // gone meanwhile
		}
		a.string(entry.Name())
		a.string(f.line(info))
		a.info(info)
		told++
	}
	h.names = nil
	binary.BigEndian.PutUint32(a.data[count:], told)
	return a
}

// line is a file as `ls -l` shows it.
func (f *files) line(info os.FileInfo) string {
	links, owner, group := "1", "?", "?"
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		links, owner, group = fmt.Sprint(stat.Nlink), f.user(stat.Uid), f.user(stat.Gid)
	}
	mode := info.Mode().String()
	if info.Mode()&os.ModeSymlink != 0 {
		mode = "l" + strings.TrimLeft(mode, "Ll")
	}
	return fmt.Sprintf("%s %4s %-8s %-8s %8d %s %s", mode, links, owner, group, info.Size(), info.ModTime().Format("Jan _2 15:04"), info.Name())
}

func (f *files) stat(kind byte, id uint32, r *reader) *answer {
	var info os.FileInfo
	var err error
	switch kind {
	case packetFstat:
		h := f.handle(r)
		if r.bad || h == nil {
			return status(id, errMalformed)
		}
		info, err = h.file.Stat()
	default:
		path := r.path()
		if r.bad {
			return status(id, errMalformed)
		}
		if kind == packetStat {
			info, err = os.Stat(path)
		} else {
			info, err = os.Lstat(path)
		}
	}
	if err != nil {
		return status(id, err)
	}
	a := newAnswer(packetAttrs, id)
	a.info(info)
	return a
}

func oneName(id uint32, name string) *answer {
	a := newAnswer(packetName, id)
	a.uint32(1)
	a.string(name)
	a.string(name)
	a.uint32(0) // no attributes
	return a
}

// realpath answers with an absolute path; what is not there yet is spelled as far
// as it can be.
func realpath(id uint32, r *reader) *answer {
	path := r.path()
	if r.bad {
		return status(id, errMalformed)
	}
	whole, err := filepath.Abs(path)
	if err != nil {
		return status(id, err)
	}
	if real, err := filepath.EvalSymlinks(whole); err == nil {
		whole = real
	} else if dir, err := filepath.EvalSymlinks(filepath.Dir(whole)); err == nil {
		whole = filepath.Join(dir, filepath.Base(whole))
	}
	return oneName(id, whole)
}

func setPath(path string, a attributes, follow bool) error {
	if !follow {
		return setLink(path, a)
	}
	if a.flags&attrSize != 0 {
		if err := os.Truncate(path, int64(a.size)); err != nil {
			return err
		}
	}
	if a.flags&attrMode != 0 {
		if err := syscall.Chmod(path, a.mode&0o7777); err != nil {
			return err
		}
	}
	if a.flags&attrTimes != 0 {
		if err := os.Chtimes(path, time.Unix(int64(a.atime), 0), time.Unix(int64(a.mtime), 0)); err != nil {
			return err
		}
	}
	if a.flags&attrOwner != 0 {
		return os.Chown(path, int(a.uid), int(a.gid))
	}
	return nil
}

// setLink changes a path without following it: of a link there is only the owner
// to change, everything else is changed as usual.
func setLink(path string, a attributes) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if info.Mode()&os.ModeSymlink == 0 {
		return setPath(path, a, true)
	}
	if a.flags&attrOwner != 0 {
		return os.Lchown(path, int(a.uid), int(a.gid))
	}
	return nil
}

func setFile(file *os.File, a attributes) error {
	if a.flags&attrSize != 0 {
		if err := file.Truncate(int64(a.size)); err != nil {
			return err
		}
	}
	if a.flags&attrMode != 0 {
		if err := syscall.Fchmod(int(file.Fd()), a.mode&0o7777); err != nil {
			return err
		}
	}
	if a.flags&attrTimes != 0 {
		times := []syscall.Timeval{{Sec: int64(a.atime)}, {Sec: int64(a.mtime)}}
		if err := syscall.Futimes(int(file.Fd()), times); err != nil {
			return err
		}
	}
	if a.flags&attrOwner != 0 {
		return file.Chown(int(a.uid), int(a.gid))
	}
	return nil
}

// extended executes what OpenSSH has added to the protocol.
func (f *files) extended(id uint32, r *reader) *answer {
	name := string(r.bytes())
	switch name {
	case "limits@openssh.com":
		if r.bad {
			return status(id, errMalformed)
		}
		a := newAnswer(packetReplied, id)
		for _, most := range []uint64{packetMax, readMax, readMax, handlesMax} {
			a.uint64(most)
		}
		return a
	case "expand-path@openssh.com":
		path := string(r.bytes())
		if rest, home := strings.CutPrefix(path, "~"); home && (rest == "" || rest[0] == '/') {
			path = "." + rest
			if dir := os.Getenv("HOME"); dir != "" {
				path = dir + rest
			}
		}
		return realpath(id, &reader{rest: binaryString(path), bad: r.bad})
	}
	return status(id, f.extendedChange(name, r))
}

func binaryString(text string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
}

func (f *files) extendedChange(name string, r *reader) error {
	switch name {
	case "posix-rename@openssh.com", "hardlink@openssh.com":
		from, to := r.path(), r.path()
		if r.bad {
			return errMalformed
		}
		if name == "hardlink@openssh.com" {
			return os.Link(from, to)
		}
		return os.Rename(from, to)
	case "fsync@openssh.com":
		h := f.handle(r)
		if r.bad || h == nil {
			return errMalformed
		}
		return h.file.Sync()
	case "lsetstat@openssh.com":
		path, a := r.path(), r.attributes()
		if r.bad {
			return errMalformed
		}
		return setPath(path, a, false)
	}
	return errors.ErrUnsupported
}

//go:build linux

package tasklog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"syscall"

	"nomadlike/internal/beneath"
)

// The streams of a task.
const (
	Stdout = "stdout"
	Stderr = "stderr"
)

// ErrRefused is returned when something in a log directory is not a plain
// file of ours: a link, a FIFO, a device, or a directory of somebody else.
var ErrRefused = errors.New("not a plain log file")

// segmentsMax bounds how many files of one stream are looked at.
const segmentsMax = 100_000

// segment is one file of a stream.
type segment struct {
	number int64
	size   int64
}

// sizePrefix begins, after the stream's name, the name that reports how many bytes
// a segment holds.
const sizePrefix = ".of-"

func segmentName(stream string, number int64) string {
	return stream + "." + strconv.FormatInt(number, 10)
}

// parseSegment returns the number in a file name such as "stdout.12". Only the
// canonical form counts, so that one number has one name.
func parseSegment(stream, name string) (int64, bool) {
	digits, ok := strings.CutPrefix(name, stream+".")
	if !ok {
		return 0, false
	}
	return parseNumber(digits)
}

// parseSize returns the size of segments in a file name such as "stdout.of-4096".
func parseSize(stream, name string) (int64, bool) {
	digits, ok := strings.CutPrefix(name, stream+sizePrefix)
	if !ok {
		return 0, false
	}
	size, ok := parseNumber(digits)
	return size, ok && size > 0
}

func parseNumber(digits string) (int64, bool) {
	if digits == "" || len(digits) > 18 || len(digits) > 1 && digits[0] == '0' {
		return 0, false
	}
	for i := 0; i < len(digits); i++ {
		if digits[i] < '0' || digits[i] > '9' {
			return 0, false
		}
	}
	number, err := strconv.ParseInt(digits, 10, 64)
	return number, err == nil
}

func validStream(stream string) bool { return stream == Stdout || stream == Stderr }

// openDir opens a log directory without following a link in its last step, or
// in any below top, and refuses one that somebody else owns or may write to.
func openDir(top, path string) (*os.File, error) {
	if top == "" {
		top = filepath.Dir(path)
	}
	rel, err := filepath.Rel(top, path)
	if err != nil {
		return nil, fmt.Errorf("open log directory: %w", err)
	}
	dir, err := beneath.Open(top, rel)
	if err != nil {
		if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENOTDIR) {
			err = ErrRefused
		}
		return nil, &os.PathError{Op: "open log directory", Path: path, Err: err}
	}
	fd := int(dir.Fd())
	var stat syscall.Stat_t
	if err := syscall.Fstat(fd, &stat); err != nil {
		dir.Close()
		return nil, &os.PathError{Op: "stat log directory", Path: path, Err: err}
	}
	if int(stat.Uid) != os.Geteuid() || stat.Mode&0o022 != 0 {
		dir.Close()
		return nil, &os.PathError{Op: "open log directory", Path: path, Err: ErrRefused}
	}
	return dir, nil
}

// openSegment opens one file of a stream and makes sure that it is a plain
// one with a single name. flags is O_RDONLY or a way of writing.
func openSegment(dir *os.File, stream string, number int64, flags int) (*os.File, int64, error) {
	name := segmentName(stream, number)
	// O_NONBLOCK keeps the open from hanging on a FIFO; plain files ignore it.
	flags |= syscall.O_NOFOLLOW | syscall.O_NONBLOCK | syscall.O_CLOEXEC
	fd, err := retry(func() (int, error) {
		return syscall.Openat(int(dir.Fd()), name, flags, 0o600)
	})
	if err != nil {
		if err == syscall.ELOOP || err == syscall.ENXIO {
			err = ErrRefused
		}
		return nil, 0, &os.PathError{Op: "open log", Path: name, Err: err}
	}
	var stat syscall.Stat_t
	if err := syscall.Fstat(fd, &stat); err != nil {
		syscall.Close(fd)
		return nil, 0, &os.PathError{Op: "stat log", Path: name, Err: err}
	}
	if stat.Mode&syscall.S_IFMT != syscall.S_IFREG || stat.Nlink > 1 {
		syscall.Close(fd)
		return nil, 0, &os.PathError{Op: "open log", Path: name, Err: ErrRefused}
	}
	return os.NewFile(uintptr(fd), name), stat.Size, nil
}

// listSegments returns the files of a stream, lowest number first, and how many
// bytes each but the newest was made to hold; 0: nothing says. Sizes come
// from lstat: a link has the size of its text and is refused once opened.
func listSegments(dir *os.File, stream string) (segments []segment, each int64, err error) {
	// A fresh open: an *os.File reads its directory once only.
	fd, err := retry(func() (int, error) {
		return syscall.Openat(int(dir.Fd()), ".", syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, 0, &os.PathError{Op: "list logs", Path: dir.Name(), Err: err}
	}
	again := os.NewFile(uintptr(fd), dir.Name())
	defer again.Close()
	names, err := again.Readdirnames(-1)
	if err != nil {
		return nil, 0, fmt.Errorf("list logs: %w", err)
	}
	for _, name := range names {
		if size, ok := parseSize(stream, name); ok {
			each = max(each, size)
		}
		number, ok := parseSegment(stream, name)
		if !ok {
			continue
		}
		if len(segments) == segmentsMax {
			return nil, 0, fmt.Errorf("list logs %s: more than %d files", dir.Name(), segmentsMax)
		}
		size, err := sizeAt(dir, name)
		if errors.Is(err, syscall.ENOENT) {
			continue // rotated away since
		}
		if err != nil {
			return nil, 0, &os.PathError{Op: "stat log", Path: name, Err: err}
		}
		segments = append(segments, segment{number: number, size: size})
	}
	sort.Slice(segments, func(i, j int) bool { return segments[i].number < segments[j].number })
	return segments, each, nil
}

// retry repeats a call that a signal interrupted.
func retry(call func() (int, error)) (int, error) {
	for {
		fd, err := call()
		if err != syscall.EINTR {
			return fd, err
		}
	}
}

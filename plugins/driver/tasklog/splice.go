//go:build linux

package tasklog

import (
	"io"
	"syscall"
)

// Bounds of Splice.
const (
	spliceBytesMax = 1 << 20
	scratchBytes   = 64 << 10
)

// Splice waits for bytes in a pipe and moves what is there into the stream,
// within the kernel: bytes are in the pipe or in a file at every moment, so
// that not one is lost or doubled when the writing process is killed and
// another one goes on with the same pipe. It returns io.EOF at the pipe's end.
// What cannot be written is dropped and counted, as by Write. A Writer that
// splices must do so from its first byte on; the pipe must be blocking.
func (w *Writer) Splice(pipe int) error {
	w.splicing = true
	w.confess()
	for w.file == nil || w.size >= w.bytesMax {
		if err := w.rotate(); err != nil {
			return w.discard(pipe, err)
		}
	}
	if w.refused {
		return w.copy(pipe)
	}
	offset := w.size
	var n int64
	var err error
	length := int(min(w.bytesMax-w.size, spliceBytesMax))
	control, controlErr := w.file.SyscallConn()
	if controlErr == nil {
		controlErr = control.Control(func(fd uintptr) {
			n, err = syscall.Splice(pipe, nil, int(fd), &offset, length, 0)
		})
	}
	switch {
	case controlErr != nil:
		return w.discard(pipe, controlErr)
	case err == syscall.EINTR:
		return nil
	case err == syscall.EINVAL:
		w.refused = true
		return nil
	case err != nil:
		return w.discard(pipe, err)
	case n == 0:
		return io.EOF
	}
	w.note(w.size)
	w.size += n
	return nil
}

// copy is for file systems that do not splice.
func (w *Writer) copy(pipe int) error {
	n, err := w.readPipe(pipe)
	if n > 0 {
		if left := w.append(w.scratch[:n]); left > 0 {
			w.lost += int64(left)
		}
	}
	return err
}

// discard empties the pipe a little when its bytes cannot be kept: the task
// must not wait for a disk.
func (w *Writer) discard(pipe int, why error) error {
	w.lostCause = cause(why)
	n, err := w.readPipe(pipe)
	w.lost += int64(n)
	return err
}

func (w *Writer) readPipe(pipe int) (int, error) {
	if w.scratch == nil {
		w.scratch = make([]byte, scratchBytes)
	}
	n, err := syscall.Read(pipe, w.scratch)
	switch {
	case err == syscall.EINTR:
		return 0, nil
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

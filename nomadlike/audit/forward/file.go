package forward

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// File appends lines to a file, as they are. One that was renamed or removed, as
// logrotate does, is begun anew.
type File struct {
	Path string

	out *os.File
}

// Send implements Target.
func (f *File) Send(_ context.Context, lines []byte) error {
	if err := f.open(); err != nil {
		return err
	}
	stat, err := f.out.Stat()
	if err != nil {
		return fmt.Errorf("write %s: %w", f.Path, err)
	}
	if _, err := f.out.Write(lines); err != nil {
		// They are sent again: what has room of them now must not stay.
		return errors.Join(fmt.Errorf("write %s: %w", f.Path, err), f.out.Truncate(stat.Size()))
	}
	return nil
}

func (f *File) open() error {
	if f.out != nil {
		here, err := f.out.Stat()
		if err != nil {
			return fmt.Errorf("open %s: %w", f.Path, err)
		}
		if there, err := os.Stat(f.Path); err == nil && os.SameFile(here, there) {
			return nil
		}
		_ = f.Close()
	}
	out, err := os.OpenFile(f.Path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("open file for audit records: %w", err)
	}
	f.out = out
	return nil
}

// Close implements Target.
func (f *File) Close() error {
	if f.out == nil {
		return nil
	}
	out := f.out
	f.out = nil
	return out.Close()
}

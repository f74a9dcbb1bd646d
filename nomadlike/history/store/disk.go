package store

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// file is one that is read and written on.
type file interface {
	io.ReadWriteSeeker
	io.ReaderAt
	io.Closer
	Truncate(size int64) error
	Sync() error
}

// disk is the directory of a history.
type disk interface {
	// list names what there is, with sizes.
	list(dir string) (map[string]int64, error)
	open(path string, flag int) (file, error)
	// write makes a whole file that is there after a crash, or not at all.
	write(path string, data []byte) error
	rename(from, to string) error
	remove(path string) error
	// syncDir has what was made, renamed and removed stay so.
	syncDir(dir string) error
}

// osDisk is that of the machine.
type osDisk struct{}

func (osDisk) list(dir string) (map[string]int64, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	sizes := make(map[string]int64)
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			return nil, err
		}
		if info.Mode().IsRegular() {
			sizes[entry.Name()] = info.Size()
		}
	}
	return sizes, nil
}

func (osDisk) open(path string, flag int) (file, error) { return os.OpenFile(path, flag, 0o600) }

func (d osDisk) write(path string, data []byte) error {
	out, err := d.open(path+tempSuffix, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	_, err = out.Write(data)
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return errors.Join(err, os.Remove(path+tempSuffix))
	}
	if err := os.Rename(path+tempSuffix, path); err != nil {
		return err
	}
	return d.syncDir(filepath.Dir(path))
}

func (osDisk) rename(from, to string) error { return os.Rename(from, to) }

func (osDisk) remove(path string) error { return os.Remove(path) }

func (osDisk) syncDir(dir string) error {
	in, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(in.Sync(), in.Close())
}

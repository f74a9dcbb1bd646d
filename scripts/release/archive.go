package main

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// entry is one file of an archive or a package.
type entry struct {
	name string // in the archive
	from string // on this machine; "" for text
	text []byte
	mode int64
}

func (e entry) contents() ([]byte, error) {
	if e.from == "" {
		return e.text, nil
	}
	return os.ReadFile(e.from)
}

// writeArchive writes files below a directory named dir, in their order, all of
// the same time and owner.
func writeArchive(to io.Writer, dir string, at time.Time, files []entry) error {
	pressed, err := gzip.NewWriterLevel(to, gzip.BestCompression)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(pressed)
	write := func(header *tar.Header, contents []byte) error {
		header.ModTime, header.Format, header.Uname, header.Gname = at, tar.FormatPAX, "root", "root"
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		_, err := archive.Write(contents)
		return err
	}
	if err := write(&tar.Header{Name: dir + "/", Mode: 0o755, Typeflag: tar.TypeDir}, nil); err != nil {
		return err
	}
	for _, file := range files {
		contents, err := file.contents()
		if err != nil {
			return fmt.Errorf("archive %s: %w", file.name, err)
		}
		header := &tar.Header{Name: dir + "/" + file.name, Mode: file.mode, Size: int64(len(contents)), Typeflag: tar.TypeReg}
		if err := write(header, contents); err != nil {
			return fmt.Errorf("archive %s: %w", file.name, err)
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return pressed.Close()
}

// create writes a file of the release, or leaves none.
func create(path string, write func(io.Writer) error) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	err = write(file)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		os.Remove(path)
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	return nil
}

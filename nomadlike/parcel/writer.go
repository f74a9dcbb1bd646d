package parcel

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"time"

	"nomadlike/nomadlike/structs"
)

// Writer writes a parcel. One goroutine uses it. The same entries are the same bytes,
// whoever writes them and when.
type Writer struct {
	gz    *gzip.Writer // nil: not compressed
	tar   *tar.Writer
	top   string
	head  Head
	names names
	list  []Entry
	bytes int64
}

// NewWriter begins a parcel whose files lie in the directory top, with what stands in
// its head; at is the time that the head and the manifest bear. Head.Format is filled in.
func NewWriter(to io.Writer, compress bool, top string, head Head, at time.Time) (*Writer, error) {
	w := &Writer{top: top, head: head}
	if !local(top) {
		return nil, wrong("parcel.path", top)
	}
	if compress {
		// What jobs write is compressed already, or as large as a disk: speed counts.
		w.gz, _ = gzip.NewWriterLevel(to, gzip.BestSpeed) // the level is one that there is
		to = w.gz
	}
	w.tar = tar.NewWriter(to)
	w.head.Format = Format
	if w.head.LeftOut == nil {
		w.head.LeftOut = []LeftOut{}
	}
	data, err := json.MarshalIndent(w.head, "", "  ")
	if err != nil {
		return nil, err
	}
	data = append(data, '\n')
	if len(data) > HeadSizeMax {
		return nil, structs.NewError(structs.CodeTooLarge, "parcel.head_too_large", "max", HeadSizeMax)
	}
	if head.Entries > EntriesMax-2 {
		return nil, structs.NewError(structs.CodeTooLarge, "parcel.too_many", "max", EntriesMax)
	}
	return w, w.put(Entry{Path: HeadName, Kind: KindFile, Mode: 0o644, Size: int64(len(data))}, at, bytes.NewReader(data))
}

// Add writes one entry. Of a file, from has its bytes, as many as Size says: fewer are an
// error that names it, and more are not read. SHA256 is found out.
func (w *Writer) Add(e Entry, at time.Time, from io.Reader) error {
	w.bytes += e.Size
	return w.put(e, at, from)
}

func (w *Writer) put(e Entry, at time.Time, from io.Reader) error {
	if err := w.names.add(&e); err != nil {
		return err
	}
	// GNU's form takes names of any bytes and length, and every tar reads it.
	header := &tar.Header{Format: tar.FormatGNU, Name: w.top + "/" + e.Path, Mode: int64(e.Mode), ModTime: at.Truncate(time.Second), Typeflag: tar.TypeReg, Size: e.Size}
	switch e.Kind {
	case KindDir:
		header.Typeflag, header.Name = tar.TypeDir, header.Name+"/"
	case KindLink:
		header.Typeflag, header.Linkname, header.Mode = tar.TypeSymlink, e.Target, 0o777
	}
	if err := w.tar.WriteHeader(header); err != nil {
		return err
	}
	if e.Kind == KindFile {
		sum := sha256.New()
		_, err := io.CopyN(w.tar, io.TeeReader(from, sum), e.Size)
		if errors.Is(err, io.EOF) {
			return structs.NewError(structs.CodeConflict, "parcel.changed", "path", shown(e.Path))
		}
		if err != nil {
			return err
		}
		e.SHA256 = hex.EncodeToString(sum.Sum(nil))
	}
	w.list = append(w.list, e)
	return nil
}

// Close writes the manifest, and all that is left. It returns the digest of the manifest,
// which is the parcel's name, and is an error when the head promised something else.
func (w *Writer) Close(at time.Time) (digest string, err error) {
	if len(w.list)-1 != w.head.Entries || w.bytes != w.head.Bytes {
		return "", structs.NewError(structs.CodeInternal, "parcel.promise", "entries", len(w.list)-1, "bytes", w.bytes)
	}
	data, err := Manifest{Format: Format, Entries: w.list}.encode()
	if err != nil {
		return "", err
	}
	if len(data) > ManifestSizeMax {
		return "", structs.NewError(structs.CodeTooLarge, "parcel.too_many", "max", EntriesMax)
	}
	if err := w.put(Entry{Path: ManifestName, Kind: KindFile, Mode: 0o644, Size: int64(len(data))}, at, bytes.NewReader(data)); err != nil {
		return "", err
	}
	err = w.tar.Close()
	if w.gz != nil {
		err = errors.Join(err, w.gz.Close())
	}
	return digestOf(data), err
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

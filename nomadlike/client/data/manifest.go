package data

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"unicode/utf8"
)

// manifestFile names what a copy says of itself.
const manifestFile = "manifest"

// manifest is what a copy says of itself, written file by file:
// {"bytes": …, "files": [manifestEntry, …]}.
type manifest struct {
	file  *os.File
	to    *bufio.Writer
	count int
}

// manifestEntry is one file of a manifest.
type manifestEntry struct {
	Path   string `json:"path"`
	Raw    []byte `json:"raw,omitempty"` // the path, where it is no UTF-8
	Size   int64  `json:"size"`
	Digest []byte `json:"digest"` // of the digests of its chunks
	// Chunks are those digests, where there are several.
	Chunks [][]byte `json:"chunks,omitempty"`
	// Ends are where the chunks end; none: after every chunkBytes.
	Ends []int64 `json:"ends,omitempty"`
}

// name is the path of the file.
func (h *manifestEntry) name() string {
	if h.Raw != nil {
		return string(h.Raw)
	}
	return h.Path
}

func createManifest(name string, bytes int64) (*manifest, error) {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	m := &manifest{file: file, to: bufio.NewWriterSize(file, 1<<16)}
	fmt.Fprintf(m.to, `{"bytes":%d,"files":[`, bytes) // close tells
	return m, nil
}

func (m *manifest) add(h *manifestEntry) error {
	if !utf8.ValidString(h.Path) { // JSON would have another name
		h.Raw = []byte(h.Path)
	}
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if m.count++; m.count > 1 {
		text = append([]byte{','}, text...)
	}
	_, err = m.to.Write(text)
	return err
}

func (m *manifest) close() error {
	_, err := m.to.WriteString("]}")
	return errors.Join(err, m.to.Flush(), m.file.Close())
}

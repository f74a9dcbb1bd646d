package codestore

import (
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

// verified reads a chunk and compares it with its digest at the end.
type verified struct {
	store   *Store
	project *project
	ref     structs.CodeRef
	chunk   tree.Chunk
	file    string // name of the chunk's file
	from    *os.File
	sum     hash.Hash
	left    int64 // bytes that are still to come
}

// Read implements io.Reader.
func (v *verified) Read(into []byte) (int, error) {
	n, err := v.from.Read(into)
	v.sum.Write(into[:n])
	v.left -= int64(n)
	switch {
	case v.left < 0, errors.Is(err, io.EOF) && (v.left != 0 || hexOf(v.sum.Sum(nil)) != v.file):
		v.store.damaged(v.project, filepath.Join(chunksDir, v.file))
		v.store.lost(v.project, v.ref)
		return 0, fmt.Errorf("chunk %s of project %s is damaged: %w", v.chunk.Digest, v.ref.Project, ErrLacking)
	case err == nil || errors.Is(err, io.EOF):
		return n, err
	}
	return n, fmt.Errorf("read chunk: %w", err)
}

// Close ends the reading.
func (v *verified) Close() error { return v.from.Close() }

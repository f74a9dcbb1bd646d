package httpapi

import (
	"errors"
	"os"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/codestore"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

// archive answers code.archive: the archive becomes a directory on this server's disk,
// which is read as the command line reads one, and goes the way of all code.
func (h *codeHandlers) archive(r *front.Request, _ *structs.CodeTree) (*api.CodeArchived, error) {
	if err := h.takes(); err != nil {
		return nil, err
	}
	done, err := h.archives.turn(r)
	if err != nil {
		return nil, err
	}
	defer done()
	project := r.Object.Project
	most := h.store.Snapshot().Project(project).CodeMost()
	dir, remove, err := h.code.Scratch(project, most)
	if err != nil {
		return nil, err
	}
	defer remove()
	if err := h.untar(r, dir, most); err != nil {
		return nil, err
	}
	manifest, left, err := tree.Scan(r.Context(), dir, tree.Options{Alone: true, BytesMax: most})
	if large := new(tree.TooLargeError); errors.As(err, &large) {
		return nil, structs.NewError(structs.CodeTooLarge, "code.too_large", "size", large.Bytes, "max", most, "project", project)
	}
	if err != nil {
		return nil, err
	}
	if manifest.Files() == 0 {
		return nil, structs.NewError(structs.CodeInvalid, "code.archive_empty", "count", len(left))
	}
	if err := h.keep(project, dir, manifest); err != nil {
		return nil, err
	}
	made, err := h.take(r, manifest.Encode())
	if err != nil {
		return nil, err
	}
	return &api.CodeArchived{CodeMade: *made, LeftOut: leftOut(left), Left: len(left)}, nil
}

func (h *codeHandlers) untar(r *front.Request, dir string, most int64) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return tree.Untar(r.Context(), r.Body, root, most)
}

// keep puts the chunks of a directory that are not here yet, as many at once as one body
// may bring.
func (h *codeHandlers) keep(project, dir string, manifest tree.Manifest) error {
	missing, err := h.code.Missing(project, manifest.Chunks())
	if err != nil || len(missing) == 0 {
		return err
	}
	lacking := make(map[tree.Digest]bool, len(missing))
	for _, digest := range missing {
		lacking[digest] = true
	}
	source, err := tree.OpenSource(dir, manifest)
	if err != nil {
		return err
	}
	defer source.Close() // it was only read
	var pieces []codestore.Piece
	held := int64(0)
	flush := func() error {
		_, err := h.code.Put(project, pieces)
		pieces, held = nil, 0
		return err
	}
	for _, chunk := range manifest.Chunks() {
		if !lacking[chunk.Digest] {
			continue
		}
		data, err := source.Read(chunk)
		if err != nil {
			return err
		}
		pieces, held = append(pieces, codestore.Piece{Chunk: chunk, Data: data}), held+chunk.Size
		if held >= api.CodeBytesMax || len(pieces) == api.CodeChunksMax {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if len(pieces) == 0 {
		return nil
	}
	return flush()
}

func leftOut(left []tree.LeftOut) []api.CodeLeftOut {
	out := make([]api.CodeLeftOut, 0, min(len(left), api.CodeLeftOutMax))
	for _, one := range left[:cap(out)] {
		out = append(out, api.CodeLeftOut{Path: one.Path, Dir: one.Dir, Rule: one.Text, File: one.File, Line: one.Line})
	}
	return out
}

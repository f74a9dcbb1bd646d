package codestore

import (
	"errors"
	"io"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

// Replies is the answering end of a stream of code.
type Replies interface {
	Send(*structs.CodePart) error
	Recv() (*structs.CodeAsk, error)
}

// Serve answers on a stream whoever may read a tree: with its manifest, and then with
// those of its chunks that are asked for, until there are no more questions. A chunk
// that is not of the tree is not told from one that is not here. What is not here, or
// damaged, is an error with CodeUnavailable: another server has it.
func (s *Store) Serve(ref structs.CodeRef, to Replies) error {
	data, err := s.Manifest(ref)
	if err != nil {
		return unavailable(err)
	}
	manifest, err := tree.Decode(data)
	if err != nil {
		return err
	}
	if err := sendManifest(ref.Digest, data, to); err != nil {
		return err
	}
	chunks := manifest.Chunks()
	ours := make(map[structs.CodeChunk]bool, len(chunks))
	for _, chunk := range chunks {
		ours[structs.CodeChunk{Digest: string(chunk.Digest), Size: chunk.Size}] = true
	}
	return s.answer(ref, func(chunk structs.CodeChunk) bool { return ours[chunk] }, to)
}

// ServeProject answers another server with whatever chunks of a project are here, and
// says which are not.
func (s *Store) ServeProject(project string, to Replies) error {
	if _, _, id := OfHome(project); id != "" {
		return structs.NewError(structs.CodeInvalid, id, "name", clip(project), "max", structs.NameLengthMax)
	}
	return s.answer(structs.CodeRef{Project: project}, nil, to)
}

// answer sends chunks for as long as there are questions. With ours it is a tree's
// that are asked for.
func (s *Store) answer(ref structs.CodeRef, ours func(structs.CodeChunk) bool, to Replies) error {
	buffer := make([]byte, structs.CodePartMax)
	for {
		ask, err := to.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(ask.Chunks) > structs.CodeAskMax {
			return structs.NewError(structs.CodeTooLarge, "code.too_many_asked", "max", structs.CodeAskMax)
		}
		for _, asked := range ask.Chunks {
			chunk := tree.Chunk{Digest: tree.Digest(asked.Digest), Size: asked.Size}
			switch {
			case ours == nil && s.lacks(ref.Project, chunk):
				err = to.Send(&structs.CodePart{Lacks: true})
			case ours == nil || ours(asked):
				err = s.sendChunk(ref, chunk, buffer, to)
			default:
				err = structs.NewError(structs.CodeForbidden, "code.not_of_tree", "digest", clip(asked.Digest))
			}
			if err != nil {
				return err
			}
		}
	}
}

func (s *Store) lacks(project string, chunk tree.Chunk) bool {
	missing, err := s.Missing(project, []tree.Chunk{chunk})
	return err != nil || len(missing) > 0
}

func sendManifest(digest string, data []byte, to Replies) error {
	for first := true; first || len(data) > 0; first = false {
		part := &structs.CodePart{Data: data[:min(len(data), structs.CodePartMax)]}
		data = data[len(part.Data):]
		part.End = len(data) == 0
		if first {
			part.Digest = digest
		}
		if err := to.Send(part); err != nil {
			return err
		}
	}
	return nil
}

// sendChunk sends a chunk as it is read. The last piece goes when the whole is verified.
func (s *Store) sendChunk(ref structs.CodeRef, chunk tree.Chunk, buffer []byte, to Replies) error {
	from, err := s.Open(ref, chunk)
	if err != nil {
		return unavailable(err)
	}
	defer from.Close()
	for {
		n, err := io.ReadFull(from, buffer)
		end := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !end {
			return unavailable(err)
		}
		if err := to.Send(&structs.CodePart{Data: buffer[:n], End: end}); err != nil || end {
			return err
		}
	}
}

// unavailable has whoever asks try another server.
func unavailable(err error) error {
	if errors.Is(err, ErrLacking) {
		return structs.NewError(structs.CodeUnavailable, "code.lacking").Because(err)
	}
	return err
}

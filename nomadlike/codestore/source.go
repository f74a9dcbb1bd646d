package codestore

import (
	"bytes"
	"context"
	"errors"
	"io"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

// Stream is the asking end of a stream of code.
type Stream interface {
	Send(*structs.CodeAsk) error
	Recv() (*structs.CodePart, error)
	Close()
}

// Source is one server that is asked for the code of one tree. It is for one goroutine,
// and has to be closed.
type Source struct {
	stream Stream
	ask    structs.CodeAsk
	asked  bool
	loose  bool // no tree was named
	digest tree.Digest
}

// NewSource asks over a stream for the tree that ask names: of an allocation, or by
// its digest. One that names a project alone has chunks, and no manifest. The source
// owns the stream.
func NewSource(stream Stream, ask structs.CodeAsk) *Source {
	return &Source{stream: stream, ask: structs.CodeAsk{AllocID: ask.AllocID, Tree: ask.Tree}, loose: ask.AllocID == "" && ask.Tree.Digest == ""}
}

// Close ends the stream.
func (s *Source) Close() { s.stream.Close() }

// Digest is the tree's, once Manifest has returned. Whoever knows which it should be
// compares them.
func (s *Source) Digest() tree.Digest { return s.digest }

// Manifest returns the manifest of the tree, whose bytes are those of the digest that
// the server named. It is asked for once, before any chunk.
func (s *Source) Manifest() (tree.Manifest, error) {
	data, err := s.manifest()
	if err != nil {
		return tree.Manifest{}, err
	}
	return tree.Decode(data)
}

func (s *Source) manifest() ([]byte, error) {
	if s.asked {
		return nil, errors.New("the manifest was asked for before")
	}
	s.asked = true
	if err := s.send(&s.ask); err != nil {
		return nil, err
	}
	var data bytes.Buffer
	for {
		part, err := s.recv()
		if err != nil {
			return nil, err
		}
		if part.Digest != "" {
			s.digest = tree.Digest(part.Digest)
		}
		data.Write(part.Data)
		switch {
		case data.Len() > tree.ManifestSizeMax:
			return nil, structs.NewError(structs.CodeTooLarge, "tree.manifest_too_large", "max", tree.ManifestSizeMax)
		case part.End && tree.DigestOf(data.Bytes()) != s.digest:
			return nil, brokenAnswer(s.digest)
		case part.End:
			return data.Bytes(), nil
		}
	}
}

// Chunks asks for chunks of the tree, any number of them, and calls took with each, in
// their order, with its bytes, which are verified and valid until took returns. After
// an error the source is of no use; what took was called with is good, so that another
// server can be asked for the rest. An error of took is returned as it is.
func (s *Source) Chunks(want []tree.Chunk, took func(tree.Chunk, []byte) error) error {
	switch {
	case s.asked:
	case s.loose:
		s.asked = true
		if err := s.send(&s.ask); err != nil {
			return err
		}
	default:
		if _, err := s.manifest(); err != nil {
			return err
		}
	}
	var data bytes.Buffer
	for len(want) > 0 {
		some := want[:min(len(want), structs.CodeAskMax)]
		want = want[len(some):]
		ask := &structs.CodeAsk{Chunks: make([]structs.CodeChunk, len(some))}
		for i, chunk := range some {
			ask.Chunks[i] = structs.CodeChunk{Digest: string(chunk.Digest), Size: chunk.Size}
		}
		if err := s.send(ask); err != nil {
			return err
		}
		for _, chunk := range some {
			there, err := s.chunk(chunk, &data)
			if err != nil {
				return err
			}
			if !there {
				continue
			}
			if err := took(chunk, data.Bytes()); err != nil {
				return err
			}
		}
	}
	return nil
}

// chunk receives one chunk.
func (s *Source) chunk(chunk tree.Chunk, into *bytes.Buffer) (there bool, err error) {
	into.Reset()
	for {
		part, err := s.recv()
		if err != nil {
			return false, err
		}
		if part.Lacks && s.loose {
			return false, nil
		}
		into.Write(part.Data)
		if int64(into.Len()) > chunk.Size || part.End && tree.DigestOf(into.Bytes()) != chunk.Digest {
			return false, brokenAnswer(chunk.Digest)
		}
		if part.End {
			return true, nil
		}
	}
}

// send asks, and returns why the stream has ended where it has.
func (s *Source) send(ask *structs.CodeAsk) error {
	err := s.stream.Send(ask)
	if err == nil {
		return nil
	}
	if _, told := s.recv(); told != nil {
		return told
	}
	return err
}

// recv takes an end of the stream for a server that broke off.
func (s *Source) recv() (*structs.CodePart, error) {
	part, err := s.stream.Recv()
	if errors.Is(err, io.EOF) {
		return nil, structs.NewError(structs.CodeUnavailable, "code.broken_off")
	}
	return part, err
}

func brokenAnswer(digest tree.Digest) error {
	return structs.NewError(structs.CodeUnavailable, "code.broken_answer", "digest", digest.Short())
}

// fetchBytes is how many bytes Fetch has the disk write at once, about.
const fetchBytes = 8 << 20

// Fetch brings a tree of a project from a source to this disk. What came before it
// failed stays, so that the next source has less to send.
func (s *Store) Fetch(ctx context.Context, ref structs.CodeRef, from *Source) error {
	stop := context.AfterFunc(ctx, from.Close)
	defer stop()
	data, err := from.manifest()
	if err != nil {
		return err
	}
	if from.digest != tree.Digest(ref.Digest) {
		return brokenAnswer(tree.Digest(ref.Digest))
	}
	manifest, err := tree.Decode(data)
	if err != nil {
		return err
	}
	if err := s.FetchChunks(ref.Project, manifest.Chunks(), from); err != nil {
		return err
	}
	_, err = s.Commit(ref.Project, data)
	return err
}

// FetchChunks brings those of some chunks that are not here.
func (s *Store) FetchChunks(project string, chunks []tree.Chunk, from *Source) error {
	missing, err := s.Missing(project, chunks)
	if err != nil || len(missing) == 0 {
		return err
	}
	lacking := make(map[tree.Digest]bool, len(missing))
	for _, digest := range missing {
		lacking[digest] = true
	}
	var want []tree.Chunk
	for _, chunk := range chunks {
		if lacking[chunk.Digest] {
			want, lacking[chunk.Digest] = append(want, chunk), false
		}
	}
	var batch []Piece
	held := 0
	put := func() error {
		_, err := s.Put(project, batch)
		batch, held = batch[:0], 0
		return err
	}
	err = from.Chunks(want, func(chunk tree.Chunk, data []byte) error {
		batch, held = append(batch, Piece{chunk, bytes.Clone(data)}), held+len(data)
		if held < fetchBytes {
			return nil
		}
		return put()
	})
	if len(batch) > 0 { // also of a source that broke off
		err = errors.Join(err, put())
	}
	return err
}

package codestore

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

// pipe is a stream between a source and whoever answers it.
type pipe struct {
	up     chan *structs.CodeAsk
	down   chan *structs.CodePart
	done   chan struct{} // closed when either side has ended
	end    func()
	failed error // of the answering side; read after done
	change func(n int, part *structs.CodePart)
	sent   int
}

// answered makes a source that asks for a tree of an answering side.
func answered(ref structs.CodeRef, change func(n int, part *structs.CodePart), answer func(Replies) error) *Source {
	p := &pipe{up: make(chan *structs.CodeAsk), down: make(chan *structs.CodePart), done: make(chan struct{}), change: change}
	p.end = sync.OnceFunc(func() { close(p.done) })
	go func() {
		if _, err := (&replies{p}).Recv(); err == nil { // which tree: judged by callers
			p.failed = answer(&replies{p})
		}
		p.end()
	}()
	return NewSource(p, structs.CodeAsk{Tree: ref})
}

func (p *pipe) Send(ask *structs.CodeAsk) error {
	select {
	case p.up <- ask:
		return nil
	case <-p.done:
		return io.EOF
	}
}

func (p *pipe) Recv() (*structs.CodePart, error) {
	select {
	case part := <-p.down:
		return part, nil
	case <-p.done:
		if p.failed != nil {
			return nil, p.failed
		}
		return nil, io.EOF
	}
}

func (p *pipe) Close() { p.end() }

type replies struct{ *pipe }

func (r *replies) Recv() (*structs.CodeAsk, error) {
	select {
	case ask := <-r.up:
		return ask, nil
	case <-r.done:
		return nil, io.EOF
	}
}

func (r *replies) Send(part *structs.CodePart) error {
	own := &structs.CodePart{Digest: part.Digest, Data: slices.Clone(part.Data), End: part.End, Lacks: part.Lacks} // as the network would
	if r.change != nil {
		r.change(r.sent, own)
	}
	r.sent++
	select {
	case r.down <- own:
		return nil
	case <-r.done:
		return io.ErrClosedPipe
	}
}

func manyTexts() (texts []string) {
	for i := range structs.CodeAskMax + 50 {
		texts = append(texts, fmt.Sprintf("file %d", i))
	}
	return append(texts, strings.Repeat("0123456789abcdef", 3*structs.CodePartMax/16), strings.Repeat("x", 2*structs.CodePartMax+1))
}

func TestATreeIsFetched(t *testing.T) {
	one, two := testStore(t, nil), testStore(t, nil)
	texts := manyTexts()
	ref := keep(t, one, "team-a", texts...)
	source := answered(ref, nil, func(to Replies) error { return one.Serve(ref, to) })
	if err := two.Fetch(t.Context(), ref, source); err != nil {
		t.Fatal(err)
	}
	_, pieces := treeOf(texts...)
	for _, piece := range pieces {
		if got, err := readChunk(two, ref, piece.Chunk); err != nil || got != string(piece.Data) {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
	}
	if !two.Has(ref) {
		t.Error("the tree is not there")
	}
}

// What came of a server that broke off, or that answers wrongly, is not asked for again.
func TestAnotherServerIsAskedForTheRest(t *testing.T) {
	one, two := testStore(t, nil), testStore(t, nil)
	texts := manyTexts()
	ref := keep(t, one, "team-a", texts...)
	_, pieces := treeOf(texts...)
	missing := func() int {
		t.Helper()
		missing, err := two.Missing("team-a", chunksOf(pieces))
		if err != nil {
			t.Fatal(err)
		}
		return len(missing)
	}
	serve := func(to Replies) error { return one.Serve(ref, to) }
	before := missing()
	for what, change := range map[string]func(n int, part *structs.CodePart){
		"another byte": func(n int, part *structs.CodePart) {
			if n == 100 {
				part.Data[0] ^= 1
			}
		},
		"more bytes": func(n int, part *structs.CodePart) {
			if n > 100 {
				part.End, part.Data = false, append(part.Data, 'x')
			}
		},
		"fewer bytes": func(n int, part *structs.CodePart) {
			if n == 200 {
				part.Data = nil
			}
		},
		"a damaged manifest": func(n int, part *structs.CodePart) {
			if n == 0 {
				part.Data[20] ^= 1
			}
		},
		"another tree": func(n int, part *structs.CodePart) {
			if n == 0 {
				part.Data = tree.Manifest{}.Encode()
				part.Digest, part.End = string(tree.DigestOf(part.Data)), true
			}
		},
	} {
		err := two.Fetch(t.Context(), ref, answered(ref, change, serve))
		if structs.CodeOf(err) != structs.CodeUnavailable {
			t.Errorf("%s: %v", what, err)
		}
		if two.Has(ref) {
			t.Fatalf("%s: the tree is said to be there", what)
		}
	}
	if now := missing(); now > before-99 {
		t.Errorf("%d of %d chunks are missing: what was good is not kept", now, before)
	}
	cut := answered(ref, nil, func(to Replies) error {
		return one.Serve(ref, &cutOff{to, 10})
	})
	if err := two.Fetch(t.Context(), ref, cut); err == nil {
		t.Error("a server that broke off was taken for one that has ended")
	}
	left := missing()
	asked := 0
	last := answered(ref, func(_ int, part *structs.CodePart) {
		if part.End {
			asked++
		}
	}, serve)
	if err := two.Fetch(t.Context(), ref, last); err != nil {
		t.Fatal(err)
	}
	if asked != left+1 { // and the manifest
		t.Errorf("%d chunks were missing, %d answers came", left, asked)
	}
}

type cutOff struct {
	Replies
	left int
}

func (c *cutOff) Send(part *structs.CodePart) error {
	if c.left--; c.left < 0 {
		return errors.New("cut off")
	}
	return c.Replies.Send(part)
}

// A chunk of the project that is not of the tree is not to be had through the tree.
func TestOnlyChunksOfTheTreeAreServed(t *testing.T) {
	s := testStore(t, nil)
	ref := keep(t, s, "team-a", "mine")
	keep(t, s, "team-a", "of a colleague")
	for _, chunk := range []tree.Chunk{pieceOf("of a colleague").Chunk, pieceOf("of nobody").Chunk, {Digest: pieceOf("mine").Chunk.Digest, Size: 400}} {
		source := answered(ref, nil, func(to Replies) error { return s.Serve(ref, to) })
		err := source.Chunks([]tree.Chunk{chunk}, func(tree.Chunk, []byte) error {
			t.Error("something came")
			return nil
		})
		if errorID(err) != "code.not_of_tree" {
			t.Errorf("%s of %d bytes: %v", chunk.Digest.Short(), chunk.Size, err)
		}
	}
	if !s.Has(ref) {
		t.Error("a question took the tree away")
	}
}

// A server without the tree, or with a damaged copy, has others asked.
func TestLackingIsUnavailable(t *testing.T) {
	s := testStore(t, nil)
	ref := structs.CodeRef{Project: "team-a", Digest: string(tree.DigestOf(nil))}
	if err := s.Serve(ref, nil); structs.CodeOf(err) != structs.CodeUnavailable {
		t.Errorf("%v", err)
	}
}

// An upload may have come to several servers, of which one commits it.
func TestChunksOfAProjectAreGathered(t *testing.T) {
	one, two, three := testStore(t, nil), testStore(t, nil), testStore(t, nil)
	data, pieces := treeOf("one", "two", "three", "four")
	for server, parts := range map[*Store][]Piece{one: pieces[:2], two: pieces[2:3], three: pieces[3:]} {
		if _, err := server.Put("team-a", parts); err != nil {
			t.Fatal(err)
		}
	}
	for _, other := range []*Store{two, three} {
		source := answered(structs.CodeRef{Project: "team-a"}, nil, func(to Replies) error { return other.ServeProject("team-a", to) })
		if err := one.FetchChunks("team-a", chunksOf(pieces), source); err != nil {
			t.Fatal(err)
		}
		source.Close()
	}
	if _, err := one.Commit("team-a", data); err != nil {
		t.Error(err)
	}
	foreign := answered(structs.CodeRef{Project: "team-b"}, nil, func(to Replies) error { return one.ServeProject("team-b", to) })
	if err := foreign.Chunks(chunksOf(pieces), func(tree.Chunk, []byte) error {
		t.Error("a chunk of another project came")
		return nil
	}); err != nil {
		t.Error(err)
	}
}

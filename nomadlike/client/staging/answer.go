package staging

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

const (
	servedMax    = 12                     // pieces that the node sends at a time
	servedOne    = 4                      // of them, to one node
	busyFor      = 20 * time.Millisecond  // until a node that sends as many is asked again
	sendWait     = 250 * time.Millisecond // that a piece waits for its share of the network
	judgedFor    = time.Minute
	judgedMax    = 8192 // answers that are remembered
	judgedAtOnce = 8
	refusedFor   = time.Second // until a node that was refused is judged again
	heldMax      = 4           // copies that are open for others
)

// judged is a node that may read a version, for an allocation of its own.
type judged struct {
	key
	node, alloc string
}

// held is a whole copy that is open for others.
type held struct {
	key
	pieces  *pieces
	text    []byte
	root    *os.Root
	users   int
	dropped bool
}

// Answer hands another node what it asks for. nodeID is the one that its certificate names.
func (e *Exchange) Answer(ctx context.Context, nodeID string, ask *structs.StagingAsk) (*structs.StagingReply, error) {
	if !e.open() {
		return nil, notHere()
	}
	of := key{ask.Project, tree.Digest(ask.Digest)}
	if busy, err := e.judge(ctx, judged{of, nodeID, ask.AllocID}); err != nil || busy > 0 {
		if err != nil {
			e.refused.Add(1)
			return nil, err
		}
		return &structs.StagingReply{Busy: busy.Milliseconds()}, nil
	}
	e.mu.Lock()
	m := e.mu.making[of]
	e.mu.Unlock()
	if m != nil {
		if _, known := m.known.Load(nodeID); !known {
			select {
			case m.strangers <- struct{}{}:
			default:
			}
		}
		m.mu.Lock()
		have, count := append(bits(nil), m.mu.have...), m.mu.count
		m.mu.Unlock()
		return e.answer(ctx, nodeID, ask, source{m.pieces, m.text, m.root, have, count})
	}
	h, err := e.hold(of)
	if err != nil {
		return nil, err
	}
	defer e.release(h)
	reply, err := e.answer(ctx, nodeID, ask, source{h.pieces, h.text, h.root, nil, h.pieces.count()})
	if structs.CodeOf(err) == structs.CodeNotFound { // the copy was removed
		e.forget(h)
	}
	return reply, err
}

func notHere() *structs.Error { return structs.NewError(structs.CodeNotFound, "staging.not_here") }

// judge asks a server whether a node may read a version, and remembers it for a while.
func (e *Exchange) judge(ctx context.Context, who judged) (busy time.Duration, err error) {
	now := e.config.Now()
	e.mu.Lock()
	until, refused := e.mu.judged[who], e.mu.refused[who.node]
	e.mu.Unlock()
	switch {
	case now.Before(until):
		return 0, nil
	case now.Before(refused):
		return refused.Sub(now), nil
	}
	select {
	case e.judging <- struct{}{}:
		defer func() { <-e.judging }()
	default:
		return busyFor, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	err = e.config.Servers.May(ctx, &structs.StagingMayAsk{NodeID: who.node, AllocID: who.alloc, Project: who.project, Digest: string(who.digest)})
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil {
		for node, until := range e.mu.refused {
			if now.After(until) {
				delete(e.mu.refused, node)
			}
		}
		e.mu.refused[who.node] = now.Add(refusedFor)
		e.config.Log.Warn("a node may not read the data that it asks for", logkey.NodeID, who.node, logkey.AllocID, who.alloc, logkey.Error, err)
		return 0, err
	}
	if len(e.mu.judged) >= judgedMax {
		clear(e.mu.judged) // they are asked for again
	}
	e.mu.judged[who] = now.Add(judgedFor)
	return 0, nil
}

// source is a copy, whole or in the making.
type source struct {
	pieces *pieces
	text   []byte
	root   *os.Root
	have   bits // nil: all
	count  int
}

func (e *Exchange) answer(ctx context.Context, nodeID string, ask *structs.StagingAsk, from source) (*structs.StagingReply, error) {
	reply := &structs.StagingReply{Count: from.count, Whole: from.count == from.pieces.count()}
	if !reply.Whole && from.count != ask.Known {
		reply.Have = from.have
	}
	switch ask.What {
	case structs.StagingHave:
		return reply, nil
	case structs.StagingManifest:
		offset := min(max(ask.Offset, 0), int64(len(from.text)))
		rest := from.text[offset:]
		reply.Data, reply.Total = rest[:min(len(rest), structs.StagingPieceMax)], int64(len(from.text))
		return reply, nil
	case structs.StagingRead:
	default:
		return nil, structs.NewError(structs.CodeInvalid, "staging.question", "what", ask.What[:min(len(ask.What), 40)])
	}
	if ask.Piece < 0 || ask.Piece >= from.pieces.count() || from.have != nil && !from.have.has(ask.Piece) {
		return nil, notHere()
	}
	end, ok := e.serve(nodeID)
	if !ok {
		reply.Busy = busyFor.Milliseconds()
		return reply, nil
	}
	defer end()
	wait, ok := e.out.take(e.config.Now(), from.pieces.bytes[ask.Piece], sendWait)
	if !ok {
		reply.Busy = max(wait.Milliseconds(), 1)
		return reply, nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	var err error
	reply.Data, err = from.read(ask.Piece)
	if err != nil {
		return nil, notHere().Because(err)
	}
	e.sent.Add(int64(len(reply.Data)))
	return reply, nil
}

// serve takes a place among what the node sends.
func (e *Exchange) serve(nodeID string) (end func(), ok bool) {
	select {
	case e.sending <- struct{}{}:
	default:
		return nil, false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.mu.serving[nodeID] >= servedOne {
		<-e.sending
		return nil, false
	}
	e.mu.serving[nodeID]++
	return func() {
		<-e.sending
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.mu.serving[nodeID]--; e.mu.serving[nodeID] == 0 {
			delete(e.mu.serving, nodeID)
		}
	}, true
}

// read reads a piece. Whoever asked compares it.
func (s *source) read(piece int) ([]byte, error) {
	content := make([]byte, s.pieces.bytes[piece])
	rest := content
	var file *os.File
	at := -1
	defer func() { _ = file.Close() }() // nothing was written
	for _, spot := range s.pieces.of(piece) {
		if spot.file != at {
			_ = file.Close() // likewise
			var err error
			if file, err = s.root.OpenFile(s.pieces.path(spot), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0); err != nil {
				return nil, err
			}
			at = spot.file
		}
		size := s.pieces.chunk(spot).Size
		if _, err := file.ReadAt(rest[:size], spot.offset); err != nil {
			return nil, err
		}
		rest = rest[size:]
	}
	return content, nil
}

// hold opens a whole copy of the node, or takes the one that is open.
func (e *Exchange) hold(of key) (*held, error) {
	e.mu.Lock()
	for i, h := range e.mu.held {
		if h.key == of {
			e.mu.held = append(append(e.mu.held[:i:i], e.mu.held[i+1:]...), h)
			h.users++
			e.mu.Unlock()
			return h, nil
		}
	}
	e.mu.Unlock()
	opened, err := e.config.Copies.Hold(of.project, of.digest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, notHere()
	}
	if err != nil {
		return nil, notHere().Because(err)
	}
	m, err := tree.Decode(opened.Text)
	if err != nil {
		_ = opened.Root.Close() // nothing was written
		return nil, err
	}
	h := &held{key: of, pieces: cut(m), text: opened.Text, root: opened.Root, users: 1}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.mu.held = append(e.mu.held, h); len(e.mu.held) > heldMax {
		oldest := e.mu.held[0]
		e.mu.held = e.mu.held[1:]
		oldest.drop()
	}
	return h, nil
}

// drop closes a copy when its last user is done.
func (h *held) drop() {
	if h.dropped = true; h.users == 0 {
		_ = h.root.Close() // nothing was written
	}
}

// forget has a copy opened anew when somebody asks for it next.
func (e *Exchange) forget(h *held) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if i := slices.Index(e.mu.held, h); i >= 0 {
		e.mu.held = slices.Delete(e.mu.held, i, i+1)
		h.drop()
	}
}

func (e *Exchange) release(h *held) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if h.users--; h.users == 0 && h.dropped {
		_ = h.root.Close() // nothing was written
	}
}

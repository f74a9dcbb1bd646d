package code

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

const (
	askEvery   = 500 * time.Millisecond
	askRounds  = 20               // of all servers, without anything new, until the node gives up
	askSilence = 30 * time.Second // of one server
	// askRefusals of all servers in a row are final: one that has not heard of the
	// allocation yet has heard of it by then.
	askRefusals = 5
	batchChunks = 512 // asked of a server at a time
)

// ErrCorrupt is returned when every server has something else than the tree that the
// job names.
var ErrCorrupt = errors.New("what the server sent is not what the job names")

// ownError is an error of this node, which another server does not cure.
type ownError struct{ error }

func (e ownError) Unwrap() error { return e.error }

// Progress reports how much has come of what the node did not have of a tree, in bytes.
type Progress func(done, total int64)

// fetch brings a tree into the cache, and returns its list and how many bytes came.
func (s *Store) fetch(ctx context.Context, of Wanted, progress Progress) (tree.Manifest, int64, error) {
	unclaim, err := s.claim(ctx, of.key())
	if err != nil {
		return tree.Manifest{}, 0, err
	}
	defer unclaim()
	f := fetching{store: s, of: of, progress: progress}
	if f.listed, err = s.known(of); err == nil && f.listed != nil {
		err = f.look()
	}
	if err != nil || f.listed != nil && len(f.todo) == 0 {
		return f.manifest(), 0, err
	}
	err = s.ask(ctx, of, f.from)
	return f.manifest(), f.total, err
}

// known is the list of a tree that is in the cache; nil when it is not.
func (s *Store) known(of Wanted) (*tree.Manifest, error) {
	path := s.treePath(of.key())
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var manifest tree.Manifest
	if err == nil {
		manifest, err = read(text, of.Tree)
	}
	if err != nil {
		s.config.Log.Warn("a list of code was damaged on the disk and is fetched again", logkey.Path, path, logkey.Error, err)
		return nil, nil
	}
	now := s.config.Now()
	return &manifest, os.Chtimes(path, now, now)
}

// read takes the list of a tree for what it says only if it is the one that is named.
func read(text []byte, named tree.Digest) (tree.Manifest, error) {
	if sum := tree.DigestOf(text); sum != named {
		return tree.Manifest{}, fmt.Errorf("%w: a list with the digest %s instead of %s", ErrCorrupt, sum, named)
	}
	return tree.Decode(text)
}

// fetching is one tree on its way to the node.
type fetching struct {
	store    *Store
	of       Wanted
	progress Progress       // nil: nobody asks
	listed   *tree.Manifest // nil before it is known
	todo     []tree.Chunk   // what is still to come
	total    int64          // bytes that were to come, and of them those that came
	done     int64
}

func (f *fetching) manifest() tree.Manifest {
	if f.listed == nil {
		return tree.Manifest{}
	}
	return *f.listed
}

// look finds out what of the tree the cache does not have, and makes room for it and
// for a copy. What lies there is compared when it is used.
func (f *fetching) look() error {
	for _, chunk := range f.listed.Chunks() {
		info, err := os.Lstat(f.store.chunkPath(f.of.Project, chunk.Digest))
		switch {
		case err == nil && info.Size() == chunk.Size:
			continue
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return ownError{fmt.Errorf("look for code on the disk: %w", err)}
		}
		f.todo, f.total = append(f.todo, chunk), f.total+chunk.Size
	}
	if err := f.store.makeRoom(f.total, f.listed.Bytes()); err != nil {
		return ownError{err}
	}
	return nil
}

// from has what is still to come of one server: the list, and then the chunks.
func (f *fetching) from(from Source, heard func()) error {
	if f.listed == nil {
		manifest, err := from.Manifest()
		if err == nil {
			err = f.list(manifest)
		}
		if err != nil {
			return err
		}
		heard()
	}
	for len(f.todo) > 0 {
		batch := f.todo[:min(len(f.todo), batchChunks)]
		left, err := f.batch(from, batch, heard)
		if f.todo = append(left, f.todo[len(batch):]...); err != nil {
			return err
		}
	}
	return nil
}

// list takes what a server says to be the list of the tree, and keeps it before there
// are chunks: what is listed is not swept.
func (f *fetching) list(said tree.Manifest) error {
	text := said.Encode()
	manifest, err := read(text, f.of.Tree)
	if err != nil {
		return err
	}
	path, now := f.store.treePath(f.of.key()), f.store.config.Now()
	if err := f.store.keep(path, text); err != nil {
		return ownError{f.store.unkept(err)}
	}
	if err := os.Chtimes(path, now, now); err != nil {
		return ownError{err}
	}
	f.listed = &manifest
	return f.look()
}

// batch has chunks of one server, and returns those that did not come.
func (f *fetching) batch(from Source, chunks []tree.Chunk, heard func()) (left []tree.Chunk, err error) {
	wanted := make(map[tree.Digest]tree.Chunk, len(chunks))
	for _, chunk := range chunks {
		wanted[chunk.Digest] = chunk
	}
	err = from.Chunks(chunks, func(said tree.Chunk, content []byte) error {
		chunk, ok := wanted[said.Digest]
		if !ok {
			return nil // a second time, or never asked for
		}
		if err := f.store.take(f.of.Project, chunk, content); err != nil {
			return err
		}
		delete(wanted, chunk.Digest)
		heard()
		if f.progress != nil {
			f.done += chunk.Size
			f.progress(f.done, f.total)
		}
		return nil
	})
	for _, chunk := range chunks {
		if _, ok := wanted[chunk.Digest]; ok {
			left = append(left, chunk)
		}
	}
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("%w: %d chunks are missing", ErrCorrupt, len(left))
	}
	return left, err
}

// take puts a chunk that a server has sent into the cache, if it is the one.
func (s *Store) take(project string, chunk tree.Chunk, content []byte) error {
	if !is(chunk, content) {
		return fmt.Errorf("%w: chunk %s", ErrCorrupt, chunk.Digest)
	}
	if err := s.keep(s.chunkPath(project, chunk.Digest), content); err != nil {
		return ownError{s.unkept(err)}
	}
	return nil
}

// unkept says what a failed write to the cache means.
func (s *Store) unkept(err error) error {
	if full(err) {
		return s.noRoom(err)
	}
	return fmt.Errorf("keep code: %w", err)
}

// noRoom says that the disk was full in the middle.
func (s *Store) noRoom(err error) error {
	return structs.NewError(structs.CodeUnavailable, "client.code_full", "path", s.config.Dir).Because(errors.Join(ErrNoRoom, err))
}

// open is a chunk of a tree that was fetched. One that is damaged is fetched again.
func (s *Store) open(ctx context.Context, of Wanted, chunk tree.Chunk) (io.ReadCloser, error) {
	path := s.chunkPath(of.Project, chunk.Digest)
	const looks = 3 // a disk that breaks everything at once is not asked for ever
	for look := range looks {
		content, err := os.ReadFile(path)
		if err == nil && is(chunk, content) {
			return io.NopCloser(bytes.NewReader(content)), nil
		}
		if look > 0 || err == nil {
			s.config.Log.Warn("code was damaged on the disk and is fetched again", logkey.Path, path)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.config.Log.Warn("code cannot be read from the disk and is fetched again", logkey.Path, path, logkey.Error, err)
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("remove damaged code: %w", err)
		}
		again := fetching{store: s, of: of, listed: new(tree.Manifest), todo: []tree.Chunk{chunk}}
		if err := s.ask(ctx, of, again.from); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("the disk does not keep chunk %s of the code", chunk.Digest)
}

// ask lets try have what it wants of one server after the other, the first one first.
// Servers that are away are asked again for a while, as long as something comes from
// one of them; what all of them refuse is refused.
func (s *Store) ask(ctx context.Context, of Wanted, try func(from Source, heard func()) error) error {
	if s.config.Ask == nil || s.config.Servers == nil {
		return structs.NewError(structs.CodeUnavailable, "client.code_unreachable", "cause", "this node asks no server")
	}
	failure, refusals := errors.New("no server is known"), 0
	for round := 0; round < askRounds; round++ {
		refused, asked := 0, 0
		for _, addr := range s.config.Servers() {
			news, err := s.askOne(ctx, addr, of, try)
			var own ownError
			switch {
			case err == nil:
				return nil
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case errors.As(err, &own):
				return own.error
			case errors.Is(err, ErrCorrupt):
				s.config.Log.Warn("a server sent something else than the code of a job", logkey.Addr, addr, logkey.Error, err)
			default:
				s.config.Log.Debug("a server does not have the code of a job", logkey.Addr, addr, logkey.Error, err)
			}
			failure = err
			if asked++; refusal(err) {
				refused++
			}
			if news {
				round = 0
			}
		}
		if asked == 0 || refused < asked {
			refusals = 0
		} else if refusals++; refusals == askRefusals {
			return failure // in the server's words
		}
		select {
		case <-time.After(askEvery):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if errors.Is(failure, ErrCorrupt) {
		return structs.NewError(structs.CodeConflict, "client.code_corrupt", "cause", failure).Because(failure)
	}
	return structs.NewError(structs.CodeUnavailable, "client.code_unreachable", "cause", failure).Because(failure)
}

// askOne asks one server until nothing is heard of it for a while.
func (s *Store) askOne(ctx context.Context, addr string, of Wanted, try func(from Source, heard func()) error) (news bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(askSilence, func() {
		cancel(structs.NewError(structs.CodeUnavailable, "client.code_silent", "addr", addr, "time", askSilence.String()))
	})
	defer silence.Stop()
	from, err := s.config.Ask(ctx, addr, of.AllocID)
	if err == nil {
		err = try(from, func() { news = true; silence.Reset(askSilence) })
		from.Close()
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return news, err
}

// refusal reports whether a server said no, rather than nothing. One that has not heard
// of the allocation yet says no as well.
func refusal(err error) bool {
	switch structs.CodeOf(err) {
	case structs.CodeForbidden, structs.CodeNotFound, structs.CodeInvalid, structs.CodeTooLarge:
		return true
	}
	return false
}

func is(chunk tree.Chunk, content []byte) bool {
	return int64(len(content)) == chunk.Size && tree.DigestOf(content) == chunk.Digest
}

package data

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"nomadlike/internal/logkey"
)

// A copy is compared with its manifest when it is used again: all of it at the
// first use since the store was opened, a few parts at later ones. A job waits
// for the first at most VerifyWait; what is left is read on by one reader while
// the job runs. A copy that is not what it was made as is made again, and those
// that read it hear of it as of a disk that refused it.
const (
	// VerifyWaitDefault bounds how long a job waits until all of a copy was read.
	VerifyWaitDefault = 30 * time.Second
	sampleParts       = 16 // of one chunk at most: 256 MiB
)

// ErrDamaged is returned of a copy that does not hold what it was made with.
var ErrDamaged = errors.New("the copy on the node's fast storage is damaged")

// check is a look at all of a copy.
type check struct {
	key     string          // of the listing that the copy was asked for by
	waiting map[string]bool // users that do not read it yet; guarded by the store's lock
	hurry   time.Time       // until then all processors take part
	done    chan struct{}   // closed when it is over
	err     error           // after that
}

// Verified says how much of a copy was compared before it was given out.
type Verified string

// How much of a copy was compared.
const (
	VerifiedMade   Verified = ""       // it was written now
	VerifiedWhole  Verified = "whole"  // all of it, now
	VerifiedSample Verified = "sample" // some parts, all of it earlier
	VerifiedSoon   Verified = "soon"   // it is being read on
)

// verification compares the copies of a store with what was copied.
type verification struct{ *Store }

// confirm compares a copy that was found with its manifest. An error that wraps
// ErrDamaged says that it is believed no more.
func (s verification) confirm(ctx context.Context, digest, key, user string) (Verified, error) {
	s.mu.Lock()
	c, known := s.mu.checks[digest]
	if !known {
		c = &check{key: key, waiting: make(map[string]bool), hurry: s.config.Now().Add(s.config.VerifyWait), done: make(chan struct{})}
		s.mu.checks[digest] = c
		s.settling.Go(func() { s.verify(digest, c) })
	}
	if c.over() {
		s.mu.Unlock()
		return VerifiedSample, s.sample(ctx, digest, key, user, c)
	}
	c.waiting[user] = true
	s.mu.Unlock()
	patience := time.NewTimer(s.config.VerifyWait)
	defer patience.Stop()
	select {
	case <-c.done:
	case <-patience.C:
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(c.waiting, user)
	switch {
	case c.over():
		return VerifiedWhole, c.err
	case ctx.Err() != nil:
		return "", ctx.Err()
	}
	return VerifiedSoon, nil
}

// over reports whether the look at the copy is over.
func (c *check) over() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// trustedLocked notes that a copy was made now, of bytes that were hashed on
// their way.
func (s verification) trustedLocked(digest string) {
	c := &check{done: make(chan struct{})}
	close(c.done)
	s.mu.checks[digest] = c
}

// looked reports whether a copy was read, or is being read, since the store was
// opened.
func (s verification) looked(digest string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.mu.checks[digest]
	return ok
}

// verify reads all of a copy.
func (s verification) verify(digest string, c *check) {
	err := s.compareAll(digest, c)
	if s.life.Err() != nil {
		err = s.life.Err() // asked again by the next agent
	}
	s.spoil(digest, c, "", err)
}

// spoil ends a check: if it found damage, the copy is believed no more, and
// those that read it already hear of it. except is a user who does not.
func (s verification) spoil(digest string, c *check, except string, err error) {
	s.mu.Lock()
	if !c.over() {
		c.err = err
		close(c.done)
	}
	mine := s.mu.checks[digest] == c // otherwise it was removed meanwhile
	if err != nil && mine {
		delete(s.mu.checks, digest) // the next user asks again
	}
	if !errors.Is(err, ErrDamaged) || !mine {
		s.mu.Unlock()
		return
	}
	_ = os.Remove(s.path("sets", digest, markerFile)) // the next line says whether there is such a directory
	wrong := writeOrigin(s.path("sets", digest), origin{Key: c.key})
	entries, readErr := os.ReadDir(s.path("uses", digest))
	var users []string
	for _, entry := range entries {
		if user := entry.Name(); user != except && !c.waiting[user] {
			users = append(users, user)
		}
	}
	s.mu.Unlock()
	err = errors.Join(err, wrong, readErr)
	s.config.Log.Error("prepared data is damaged", logkey.Path, digest, logkey.Error, err)
	if s.config.Broken != nil && len(users) > 0 {
		s.config.Broken(users, err)
	}
}

// part is a stretch of a file of a copy, with what it must be.
type part struct {
	path           string
	offset, length int64
	digest         []byte // of the stretch; nil: of the digests of all chunks of the file, or of its only one
	chunks         []byte // that digest
}

// parts are those of a file. One that was noted by an older version has no
// digests of its chunks, and is one part.
func (h *manifestEntry) parts() []part {
	if len(h.Chunks) == 0 {
		return []part{{path: h.name(), length: h.Size, chunks: h.Digest}}
	}
	list := make([]part, 0, len(h.Chunks))
	if len(h.Ends) == len(h.Chunks) {
		offset := int64(0)
		for i, digest := range h.Chunks {
			list = append(list, part{path: h.name(), offset: offset, length: h.Ends[i] - offset, digest: digest})
			offset = h.Ends[i]
		}
		return list
	}
	for i, digest := range h.Chunks {
		offset := int64(i) * chunkBytes
		list = append(list, part{path: h.name(), offset: offset, length: min(chunkBytes, h.Size-offset), digest: digest})
	}
	return list
}

// compareAll reads all of a copy, with all processors at first and with one after
// that.
func (s verification) compareAll(digest string, c *check) error {
	root, err := os.OpenRoot(s.path("sets", digest, "tree"))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	defer root.Close()
	ctx, cancel := context.WithCancelCause(s.life)
	defer cancel(nil)
	parts := make(chan part, 64)
	var readers sync.WaitGroup
	for i := range runtime.NumCPU() {
		readers.Go(func() {
			buffer := make([]byte, bufferBytes)
			for p := range parts {
				if ctx.Err() != nil {
					continue // what is in the line is left
				}
				if err := p.compare(ctx, root, buffer); err != nil {
					cancel(err)
				}
				if i > 0 && s.config.Now().After(c.hurry) {
					return
				}
			}
		})
	}
	err = s.eachEntry(digest, func(h *manifestEntry) error {
		for _, p := range h.parts() {
			select {
			case parts <- p:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	close(parts)
	readers.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// sample compares a few parts of a copy, others each time.
func (s verification) sample(ctx context.Context, digest, key, user string, c *check) error {
	root, err := os.OpenRoot(s.path("sets", digest, "tree"))
	if err == nil {
		defer root.Close()
		err = s.eachSampled(digest, func(p part) error { return p.compare(ctx, root, make([]byte, bufferBytes)) })
	} else {
		err = fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if errors.Is(err, ErrDamaged) {
		s.mu.Lock()
		c.key = key
		s.mu.Unlock()
		s.spoil(digest, c, user, err)
	}
	return err
}

// compare reads a part.
func (p *part) compare(ctx context.Context, root *os.Root, buffer []byte) error {
	f, err := root.OpenFile(p.path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	defer f.Close()
	whole, chunk, chunks := sha256.New(), sha256.New(), sha256.New()
	for at := int64(0); at < p.length; {
		if err := ctx.Err(); err != nil {
			return err
		}
		into := buffer[:min(int64(len(buffer)), p.length-at, chunkBytes-at%chunkBytes)]
		n, err := f.ReadAt(into, p.offset+at)
		if n < len(into) {
			return fmt.Errorf("%w: %s: %w", ErrDamaged, p.path, err)
		}
		whole.Write(into)
		if at += int64(n); p.digest == nil && p.length > chunkBytes {
			if chunk.Write(into); at%chunkBytes == 0 || at == p.length {
				chunks.Write(chunk.Sum(nil))
				chunk.Reset()
			}
		}
	}
	sum := whole.Sum(nil)
	one := sha256.Sum256(sum) // of a file that came in one piece
	if bytes.Equal(p.digest, sum) || p.digest == nil && (bytes.Equal(p.chunks, one[:]) || bytes.Equal(p.chunks, chunks.Sum(nil))) {
		return nil
	}
	return fmt.Errorf("%w: %s: its contents have changed", ErrDamaged, p.path)
}

// eachEntry reads a manifest.
func (s verification) eachEntry(digest string, yield func(h *manifestEntry) error) error {
	f, err := os.Open(s.path("sets", digest, manifestFile))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	defer f.Close()
	from := json.NewDecoder(bufio.NewReaderSize(f, 1<<16))
	for token := json.Token(nil); token != json.Delim('['); {
		if token, err = from.Token(); err != nil {
			return fmt.Errorf("%w: manifest: %w", ErrDamaged, err)
		}
	}
	for from.More() {
		var h manifestEntry
		if err := from.Decode(&h); err != nil {
			return fmt.Errorf("%w: manifest: %w", ErrDamaged, err)
		}
		if err := yield(&h); err != nil {
			return err
		}
	}
	if _, err := from.Token(); err != nil { // it ends with the list
		return fmt.Errorf("%w: manifest: %w", ErrDamaged, err)
	}
	return nil
}

// eachSampled yields a few parts of a copy by chance, without reading all of the
// manifest: of a place in it the file is taken that begins next. So a file with
// many chunks comes more often than a small one.
func (s verification) eachSampled(digest string, yield func(part) error) error {
	f, err := os.Open(s.path("sets", digest, manifestFile))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	for range sampleParts {
		h, err := entryNear(f, rand.Int64N(max(info.Size(), 1)), info.Size())
		if err != nil {
			return err
		}
		if h == nil {
			continue
		}
		list := h.parts()
		if p := list[rand.IntN(len(list))]; p.length <= chunkBytes { // longer ones are read with all others
			if err := yield(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// entryBegins is how a file begins in a manifest, and nothing within one: in its
// texts quotes are escaped.
var entryBegins = []byte(`{"path":"`)

// entryNear reads the first file of a manifest that begins at a place or after it,
// or the first of all when none does; nil when there is none.
func entryNear(f io.ReaderAt, at, size int64) (*manifestEntry, error) {
	for _, from := range []int64{at, 0} {
		r := bufio.NewReader(io.NewSectionReader(f, from, size-from))
		var seen []byte
		for {
			b, err := r.ReadByte()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("%w: manifest: %w", ErrDamaged, err)
			}
			seen = append(seen, b)
			if len(seen) > len(entryBegins) {
				seen = slices.Delete(seen, 0, 1)
			}
			if !bytes.Equal(seen, entryBegins) {
				continue
			}
			var h manifestEntry
			if err := json.NewDecoder(io.MultiReader(bytes.NewReader(entryBegins), r)).Decode(&h); err != nil {
				return nil, fmt.Errorf("%w: manifest: %w", ErrDamaged, err)
			}
			return &h, nil
		}
	}
	return nil, nil
}

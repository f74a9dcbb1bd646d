package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"time"

	"nomadlike/nomadlike/client/data"
)

// opener begins a response with the bytes of a file from offset on.
type opener func(ctx context.Context, offset, length int64) (io.ReadCloser, error)

// ranged reads a range of a file. After a cut, or when a server stalls, it asks
// again for what is missing.
type ranged struct {
	ctx    context.Context // of one piece of a copy, from open to close
	open   opener
	stall  time.Duration
	wait   func(attempt int) time.Duration
	at     int64 // where the next byte lies
	end    int64
	failed int // requests since the last byte

	body   io.ReadCloser
	cancel context.CancelCauseFunc
	guard  *time.Timer
}

var errStalled = errors.New("the server sends nothing")

// lasting marks an error that the same request would meet again.
type lasting struct{ error }

func (l lasting) Unwrap() error { return l.error }

// hopeless reports whether there is no use in asking again.
func hopeless(err error) bool {
	var last lasting
	var stranger *tls.CertificateVerificationError
	return errors.As(err, &last) || errors.As(err, &stranger) || errors.Is(err, data.ErrChanged) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, errRefused)
}

// Read implements io.Reader.
func (r *ranged) Read(p []byte) (int, error) {
	if r.at == r.end {
		return 0, io.EOF
	}
	for {
		n, err := r.once(p[:min(int64(len(p)), r.end-r.at)])
		if n > 0 {
			r.at, r.failed = r.at+int64(n), 0
			return n, nil
		}
		if err == nil {
			continue
		}
		r.drop()
		if r.ctx.Err() != nil {
			return 0, context.Cause(r.ctx)
		}
		if r.failed++; hopeless(err) || r.failed == attempts {
			return 0, err
		}
		if err := pause(r.ctx, r.wait(r.failed)); err != nil {
			return 0, err
		}
	}
}

// once reads from the response that is there, or from a new one.
func (r *ranged) once(p []byte) (int, error) {
	if r.body == nil {
		ctx, cancel := context.WithCancelCause(r.ctx)
		r.cancel = cancel
		r.guard = time.AfterFunc(r.stall, func() { cancel(errStalled) })
		body, err := r.open(ctx, r.at, r.end-r.at)
		if err != nil {
			return 0, r.cause(ctx, err)
		}
		r.body = &guarded{body, ctx}
	}
	r.guard.Reset(r.stall)
	n, err := r.body.Read(p)
	r.guard.Stop() // how long the disk takes is not the server's business
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("the answer ends %d bytes early: %w", r.end-r.at-int64(n), io.ErrUnexpectedEOF)
	}
	return n, err
}

// cause names a stall for what it is.
func (r *ranged) cause(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errStalled) {
		return fmt.Errorf("%w for %v", errStalled, r.stall)
	}
	return err
}

// guarded reports why a body was broken off.
type guarded struct {
	io.ReadCloser
	ctx context.Context // of the response
}

func (g *guarded) Read(p []byte) (int, error) {
	n, err := g.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && errors.Is(context.Cause(g.ctx), errStalled) {
		err = errStalled
	}
	return n, err
}

// drop discards the response.
func (r *ranged) drop() {
	if r.guard != nil {
		r.guard.Stop()
	}
	if r.cancel != nil {
		r.cancel(nil)
	}
	if r.body != nil {
		r.body.Close()
	}
	r.body, r.guard, r.cancel = nil, nil, nil
}

// Close implements io.Closer.
func (r *ranged) Close() error {
	r.drop()
	return nil
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// repeat calls act again as Read does, for requests whose answers are small or
// many. act calls alive whenever something has come.
func repeat(ctx context.Context, server *Server, act func(ctx context.Context, alive func()) error) error {
	for failed := 1; ; failed++ {
		once, cancel := context.WithCancelCause(ctx)
		guard := time.AfterFunc(server.StallMax, func() { cancel(errStalled) })
		err := act(once, func() { guard.Reset(server.StallMax) })
		guard.Stop()
		if err != nil && errors.Is(context.Cause(once), errStalled) {
			err = fmt.Errorf("%w for %v", errStalled, server.StallMax)
		}
		cancel(nil)
		if err == nil || hopeless(err) || failed == attempts || ctx.Err() != nil {
			return err
		}
		if err := pause(ctx, server.Wait(failed)); err != nil {
			return err
		}
	}
}

// living calls alive for everything that is read.
type living struct {
	io.Reader
	alive func()
}

func (l living) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	if n > 0 {
		l.alive()
	}
	return n, err
}

// listWorkers is how many files are asked for at a time.
const listWorkers = 32

// each does act for every index below n, by several goroutines, until one
// fails.
func each(ctx context.Context, n int, act func(context.Context, int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(listWorkers, n) {
		workers.Go(func() {
			for i := range next {
				if err := act(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	for i := 0; i < n && ctx.Err() == nil; i++ {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	workers.Wait()
	return context.Cause(ctx)
}

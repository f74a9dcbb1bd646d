package session

import (
	"context"
	"fmt"
	"io"
	"sync"

	"nomadlike/nomadlike/structs"
)

// FakeServers stands in for the cluster's servers in tests: streams are
// pairs of channels. Serve runs in a goroutine of its own for each stream.
type FakeServers struct {
	// Serve is a server's side of one stream; the stream ends when it
	// returns.
	Serve func(addr string, stream *FakeStream)

	mu struct {
		sync.Mutex
		down    map[string]bool
		dialled []string
	}
	running sync.WaitGroup
}

// Down makes a server unreachable, or reachable again.
func (f *FakeServers) Down(addr string, down bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.down == nil {
		f.mu.down = make(map[string]bool)
	}
	f.mu.down[addr] = down
}

// Dialled lists the addresses that were dialled, in order.
func (f *FakeServers) Dialled() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.mu.dialled...)
}

// Wait returns when every Serve has returned.
func (f *FakeServers) Wait() { f.running.Wait() }

// Open is an Opener.
func (f *FakeServers) Open(ctx context.Context, addr string) (Stream, error) {
	f.mu.Lock()
	f.mu.dialled = append(f.mu.dialled, addr)
	down := f.mu.down[addr]
	f.mu.Unlock()
	if down {
		return nil, fmt.Errorf("%s: connection refused", addr)
	}
	stream := &FakeStream{
		Context: ctx,
		up:      make(chan *structs.SessionUp),
		down:    make(chan *structs.SessionDown),
		ended:   make(chan struct{}),
	}
	f.running.Go(func() {
		defer close(stream.ended)
		f.Serve(addr, stream)
	})
	return (*fakeClientEnd)(stream), nil
}

// FakeStream is the server's end of a stream.
type FakeStream struct {
	Context context.Context // of the client: done when it has hung up
	up      chan *structs.SessionUp
	down    chan *structs.SessionDown
	ended   chan struct{} // the server has hung up
}

// Send says something to the node.
func (s *FakeStream) Send(down *structs.SessionDown) error {
	select {
	case s.down <- down:
		return nil
	case <-s.Context.Done():
		return s.Context.Err()
	}
}

// Recv takes what the node says; io.EOF after its last word.
func (s *FakeStream) Recv() (*structs.SessionUp, error) {
	select {
	case up, ok := <-s.up:
		if !ok {
			return nil, io.EOF
		}
		return up, nil
	case <-s.Context.Done():
		return nil, s.Context.Err()
	}
}

type fakeClientEnd FakeStream

func (s *fakeClientEnd) Send(up *structs.SessionUp) error {
	select {
	case s.up <- up:
		return nil
	case <-s.ended:
		return io.EOF
	case <-s.Context.Done():
		return s.Context.Err()
	}
}

func (s *fakeClientEnd) CloseSend() error {
	close(s.up)
	return nil
}

func (s *fakeClientEnd) Recv() (*structs.SessionDown, error) {
	select {
	case down := <-s.down:
		return down, nil
	case <-s.ended:
		return nil, io.EOF
	case <-s.Context.Done():
		return nil, s.Context.Err()
	}
}

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/taskport"
)

// Bounds of a tunnel.
const (
	tunnelPatience  = 2 * time.Minute // with a cluster that does not answer, before giving up
	tunnelRetry     = 500 * time.Millisecond
	tunnelRetryMost = 5 * time.Second
)

// tunnel makes ports of this machine ports of one rank, for as long as that rank
// runs and its caller may enter it. All goes over one connection of ssh inside of an
// exec stream, as with nomadlike ssh: a program inside of the task dials, so what is
// reached is what the task itself reaches.
type tunnel struct {
	host   string // by which the cluster certifies this attempt of the rank
	open   func(context.Context) (taskStream, ssh.PublicKey, error)
	runs   func(context.Context) error // nil: the same attempt of the rank runs
	ports  []*tunnelPort
	places chan struct{} // of connections
	note   sync.Mutex
	say    func(id string, params ...any) // called with note held

	mu   sync.Mutex
	link *link // nil: being made anew
}

// tunnelPort is one port.
type tunnelPort struct {
	listener net.Listener
	number   int         // of the task
	told     atomic.Bool // that it was not reached, since it was
}

// taskStream carries the bytes of ssh to a task.
type taskStream interface {
	net.Conn
	Ending() error // why it ended, if somebody said so
}

// link is one connection of ssh with the task.
type link struct {
	*ssh.Client
	stream taskStream
}

// newTunnel is a tunnel to an allocation. Its connection is made by connect.
func newTunnel(client *api.Client, alloc *structs.Allocation, say func(string, ...any)) *tunnel {
	target := structs.SSHTarget{Job: alloc.JobID, Rank: alloc.Rank, Subjob: alloc.Subjob, Attempt: alloc.Attempt}
	return &tunnel{
		host: target.Host(), say: say, places: make(chan struct{}, taskport.ConnsMax),
		open: func(ctx context.Context) (taskStream, ssh.PublicKey, error) { return openTask(ctx, client, alloc) },
		runs: func(ctx context.Context) error {
			_, err := sshRank(ctx, client, target)
			return err
		},
	}
}

// openTask opens a stream to a task, and asks by which key the cluster certifies what
// answers there.
func openTask(ctx context.Context, client *api.Client, alloc *structs.Allocation) (taskStream, ssh.PublicKey, error) {
	authority, err := client.SSHAuthority(ctx)
	if err != nil {
		return nil, nil, err
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(authority.Key))
	if err != nil {
		return nil, nil, fmt.Errorf("read the cluster's key for ssh: %w", err)
	}
	conn, err := client.Exec(ctx, alloc.ID, structs.ExecStart{Attempt: alloc.Attempt, SSH: new(structs.SSHHost)})
	if err != nil {
		return nil, nil, err
	}
	return &taskport.Stream{
		Recv: func() (*structs.ExecDown, error) { return conn.Recv(ctx) },
		Send: func(data []byte) error { return conn.SendStdin(ctx, data) },
		End:  conn.Close,
	}, key, nil
}

// tell says something, one thing at a time.
func (t *tunnel) tell(id string, params ...any) {
	t.note.Lock()
	defer t.note.Unlock()
	t.say(id, params...)
}

func (t *tunnel) close() {
	for _, port := range t.ports {
		port.listener.Close()
	}
	if link := t.current(); link != nil {
		link.Close()
	}
}

func (t *tunnel) current() *link {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.link
}

func (t *tunnel) set(link *link) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.link = link
}

// connect makes the connection with the task. What answers must be certified by the
// cluster for this attempt of this rank.
func (t *tunnel) connect(ctx context.Context) error {
	stream, cluster, err := t.open(ctx)
	if err != nil {
		return err
	}
	client, err := taskport.Connect(stream, t.host, cluster)
	if err != nil {
		if said := stream.Ending(); said != nil {
			return said
		}
		return err
	}
	t.set(&link{Client: client, stream: stream})
	return nil
}

// serve carries connections until the rank ends, the right to enter it does, or ctx.
func (t *tunnel) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var serving sync.WaitGroup
	defer serving.Wait()
	defer t.close()
	defer cancel()
	for _, port := range t.ports {
		serving.Go(func() { t.accept(ctx, &serving, port) })
	}
	for {
		link := t.current()
		left := context.AfterFunc(ctx, func() { link.Close() })
		_ = link.Wait() // the stream says why
		left()
		t.set(nil)
		link.Close()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if said := link.stream.Ending(); said != nil && !passing(said) {
			return said
		}
		if err := t.reconnect(ctx); err != nil {
			return err
		}
	}
}

// passing reports whether an error may be gone at the next try: a server or agent in
// between restarts.
func passing(err error) bool {
	told, ok := errors.AsType[*structs.Error](err)
	return !ok || told.Code == structs.CodeUnavailable || told.Code == structs.CodeTimeout
}

// reconnect makes the connection anew, if the same attempt of the rank still runs. That
// it broke is told only if it can be made again: another end has its own words.
func (t *tunnel) reconnect(ctx context.Context) error {
	lost := sync.OnceFunc(func() { t.tell("cli.forward.lost") })
	patience := time.NewTimer(tunnelPatience)
	defer patience.Stop()
	for wait := tunnelRetry; ; wait = min(2*wait, tunnelRetryMost) {
		err := t.runs(ctx)
		if err == nil {
			err = t.connect(ctx)
		}
		if ctx.Err() != nil || err != nil && !passing(err) {
			return err
		}
		lost()
		if err == nil {
			t.tell("cli.forward.back")
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-patience.C:
			return err
		case <-time.After(wait):
		}
	}
}

// accept takes the connections of one port until it is closed.
func (t *tunnel) accept(ctx context.Context, serving *sync.WaitGroup, port *tunnelPort) {
	for {
		select {
		case t.places <- struct{}{}:
		case <-ctx.Done():
			return
		}
		local, err := port.listener.Accept()
		if err != nil {
			<-t.places
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			select { // this process has no descriptors left, or the like
			case <-ctx.Done():
			case <-time.After(tunnelRetry):
			}
			continue
		}
		serving.Go(func() {
			defer func() { <-t.places }()
			defer context.AfterFunc(ctx, func() { local.Close() })()
			t.carry(ctx, port, local)
		})
	}
}

// carry connects one connection with the task's port. The caller learns that there is
// none as it would in the task: the connection is reset.
func (t *tunnel) carry(ctx context.Context, port *tunnelPort, local net.Conn) {
	defer local.Close()
	remote, err := t.dial(ctx, port.number)
	if err != nil {
		if tcp, ok := local.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // closing it is enough otherwise
		}
		if cause := taskport.Refusal(err); cause != "" && ctx.Err() == nil && !port.told.Swap(true) {
			id := "cli.forward.unreached"
			if taskport.Nobody(err) {
				id = "cli.forward.nobody"
			}
			t.tell(id, "port", port.number, "address", port.listener.Addr(), "cause", safe(cause))
		}
		return
	}
	port.told.Store(false)
	defer remote.Close()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		if _, err := io.Copy(remote, local); err != nil {
			remote.Close()
			return
		}
		if half, ok := remote.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite() // the other end may be gone
		}
	}()
	_, _ = io.Copy(local, remote) // how it ends is the end of the connection
	local.Close()
	<-sent
}

// dial has the task connect with a port of its own, wherever on its loopback the
// program listens.
func (t *tunnel) dial(ctx context.Context, port int) (net.Conn, error) {
	link := t.current()
	if link == nil {
		return nil, net.ErrClosed
	}
	return taskport.Dial(ctx, link.Client, port)
}

package rankshell

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/structs"
)

const (
	// requestTimeout bounds the time from a connection to its request.
	requestTimeout = 10 * time.Second
	// connectionsMax bounds the shells of one allocation at one time: a
	// launcher opens one for each other rank.
	connectionsMax = 4096
	signalsMax     = 16
	// stdinMax bounds the frames of stdin that the command has not read yet;
	// beyond it the shell waits, and its signals with it.
	stdinMax = 64
)

// IO connects a command with the shell that asked for it. Input brings stdin
// in pieces and is closed at its end; it is not closed when the shell is gone:
// then the handler's context ends.
type IO struct {
	Input   <-chan []byte
	Stdout  io.Writer
	Stderr  io.Writer
	Signals <-chan string
}

// Handler runs what a shell asks for and returns how it ended. ctx ends when
// the shell is gone or the server is closed. Called in a goroutine of its own
// for each request.
type Handler func(ctx context.Context, request Request, streams IO) Exit

// Server answers the shells of one allocation.
type Server struct {
	path     string
	token    string
	uid      int
	handle   Handler
	logger   *slog.Logger
	listener *net.UnixListener
	cancel   context.CancelFunc
	serving  sync.WaitGroup
}

// Config is what a Server needs.
type Config struct {
	Path    string // of the socket; its directory exists
	Token   string
	UID     int // the task's user; root may connect as well
	GID     int
	Handler Handler
	Logger  *slog.Logger
}

// Listen makes the socket, mode 0600 and owned by the task's user, and
// answers shells until Close. A socket that an earlier process of the agent
// left is replaced.
func Listen(config Config) (*Server, error) {
	if config.Token == "" {
		return nil, errors.New("listen for rank shells: no token")
	}
	if err := os.Remove(config.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listen for rank shells: %w", err)
	}
	listener, err := listen(config.Path)
	if err != nil {
		return nil, fmt.Errorf("listen for rank shells: %w", err)
	}
	err = os.Chmod(config.Path, 0o600)
	if err == nil && os.Geteuid() == 0 {
		err = os.Lchown(config.Path, config.UID, config.GID)
	}
	if err != nil {
		listener.Close()
		return nil, fmt.Errorf("listen for rank shells: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{
		path: config.Path, token: config.Token, uid: config.UID, handle: config.Handler,
		logger: config.Logger, listener: listener, cancel: cancel,
	}
	s.serving.Go(func() { s.accept(ctx) })
	return s, nil
}

// Close ends every shell and removes the socket; it returns after all
// handlers have.
func (s *Server) Close() error {
	s.cancel()
	err := s.listener.Close()
	s.serving.Wait()
	if removeErr := os.Remove(s.path); err == nil && !errors.Is(removeErr, fs.ErrNotExist) {
		err = removeErr
	}
	return err
}

func (s *Server) accept(ctx context.Context) {
	var connections sync.WaitGroup
	defer connections.Wait()
	slots := make(chan struct{}, connectionsMax)
	for {
		conn, err := s.listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			s.logger.Warn("accept rank shell", logkey.Path, s.path, logkey.Error, err)
			select {
			case <-ctx.Done():
				return
			case <-time.After(100 * time.Millisecond): // out of descriptors, perhaps
			}
			continue
		}
		select {
		case slots <- struct{}{}:
		default:
			conn.Close()
			continue
		}
		connections.Go(func() {
			defer func() { <-slots }()
			s.serve(ctx, conn)
		})
	}
}

// serve lives through one connection.
func (s *Server) serve(ctx context.Context, conn *net.UnixConn) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer conn.Close()
	hangUp := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer hangUp()

	frames := newFrameWriter(conn)
	request, err := s.admit(conn)
	if err != nil {
		s.logger.Warn("refuse rank shell", logkey.Path, s.path, logkey.Error, err)
		refusal := structs.NewError(structs.CodeForbidden, "client.rsh_refused", "cause", "who asks is not the task")
		_ = frames.json(kindExit, Exit{Code: CodeFailed, Err: refusal}) // it may be gone already
		return
	}
	chunks := make(chan []byte, stdinMax)
	signals := make(chan string, signalsMax)
	var reading sync.WaitGroup
	reading.Go(func() {
		defer cancel() // the shell is gone
		if err := receive(ctx, conn, chunks, signals); err != nil && !errors.Is(err, io.EOF) && ctx.Err() == nil {
			s.logger.Debug("rank shell hung up", logkey.Path, s.path, logkey.Error, err)
		}
	})
	exit := s.handle(ctx, request, IO{Input: chunks, Stdout: frames.stream(kindStdout), Stderr: frames.stream(kindStderr), Signals: signals})
	if err := frames.json(kindExit, exit); err != nil && ctx.Err() == nil {
		s.logger.Debug("answer rank shell", logkey.Path, s.path, logkey.Error, err)
	}
	cancel()
	reading.Wait()
}

// admit reads the request and checks who asks.
func (s *Server) admit(conn *net.UnixConn) (Request, error) {
	uid, err := peerUID(conn)
	if err != nil {
		return Request{}, err
	}
	if uid != 0 && uid != s.uid {
		return Request{}, fmt.Errorf("user %d is neither root nor the task's user %d", uid, s.uid)
	}
	if err := conn.SetReadDeadline(time.Now().Add(requestTimeout)); err != nil {
		return Request{}, err
	}
	k, payload, err := readFrame(conn)
	if err != nil {
		return Request{}, err
	}
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		return Request{}, err
	}
	var request Request
	if k != kindRequest {
		return Request{}, fmt.Errorf("first frame is of kind %q", byte(k))
	}
	if err := json.Unmarshal(payload, &request); err != nil {
		return Request{}, fmt.Errorf("parse request: %w", err)
	}
	if subtle.ConstantTimeCompare([]byte(request.Token), []byte(s.token)) != 1 {
		return Request{}, errors.New("wrong token")
	}
	request.Token = ""
	return request, nil
}

// receive takes the shell's frames until it is gone. Signals that come faster
// than they are taken are dropped.
func receive(ctx context.Context, conn io.Reader, chunks chan<- []byte, signals chan<- string) error {
	open := true
	for {
		k, payload, err := readFrame(conn)
		if err != nil {
			return err
		}
		switch k {
		case kindStdin:
			if open {
				select {
				case chunks <- payload:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		case kindStdinEnd:
			if open {
				open = false
				close(chunks)
			}
		case kindSignal:
			select {
			case signals <- string(payload):
			default:
			}
		default:
			return fmt.Errorf("unexpected frame of kind %q", byte(k))
		}
	}
}

// peerUID is the user at the other end.
func peerUID(conn syscall.Conn) (int, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("ask for peer: %w", err)
	}
	var credentials *unix.Ucred
	controlErr := raw.Control(func(fd uintptr) {
		credentials, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err = errors.Join(err, controlErr); err != nil {
		return 0, fmt.Errorf("ask for peer: %w", err)
	}
	return int(credentials.Uid), nil
}

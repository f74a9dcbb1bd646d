package taskssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"nomadlike/internal/logkey"
	"nomadlike/plugins/driver"
)

// Bounds of one connection.
const (
	handshakePatience = 30 * time.Second
	// channelsMax is below what a task's supervisor serves at once.
	channelsMax = 96
	wordsMax    = 64 << 10 // bytes of a command
	envMax      = 64       // variables of a session
	envBytesMax = 4096     // of one of them
	signalsMax  = 16
	requestsMax = 1024 // of a session before its command runs
)

// Config says what connections reach.
type Config struct {
	HostKey ssh.Signer // certified for the names by which clients know the task
	// Run executes a command inside of the task, as its driver does.
	Run    func(context.Context, driver.ExecSpec, driver.Streams) (driver.ExitResult, error)
	Logger *slog.Logger
}

// algorithms leaves out what rests on SHA-1, on CBC, on RSA or on MACs over the
// plain text. Strict key exchange, against prefix truncation, is always offered.
func algorithms() ssh.Config {
	return ssh.Config{
		KeyExchanges: []string{ssh.KeyExchangeMLKEM768X25519, ssh.KeyExchangeCurve25519, ssh.KeyExchangeECDHP256, ssh.KeyExchangeECDHP384},
		Ciphers:      []string{ssh.CipherAES128GCM, ssh.CipherAES256GCM, ssh.CipherChaCha20Poly1305},
		MACs:         []string{ssh.HMACSHA256ETM, ssh.HMACSHA512ETM},
	}
}

// connection is one client in one task.
type connection struct {
	config   Config
	channels chan struct{} // a place for each
	refused  atomic.Bool   // forwarding to the client was asked for
}

// Serve speaks with one client over a stream until it leaves or ctx ends. An error
// says why there was no connection.
func Serve(ctx context.Context, config Config, stream io.ReadWriteCloser) error {
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := &ssh.ServerConfig{Config: algorithms(), NoClientAuth: true, MaxAuthTries: 3, ServerVersion: "SSH-2.0-nomadlike"}
	server.AddHostKey(config.HostKey)
	closed := context.AfterFunc(ctx, func() { stream.Close() })
	defer closed()
	patience := time.AfterFunc(handshakePatience, func() { stream.Close() })
	conn, channels, requests, err := ssh.NewServerConn(pipe{stream}, server)
	patience.Stop()
	if err != nil {
		return fmt.Errorf("ssh handshake: %w", err)
	}
	c := &connection{config: config, channels: make(chan struct{}, channelsMax)}
	var serving sync.WaitGroup
	defer serving.Wait()
	defer cancel()
	defer conn.Close()
	serving.Go(func() { c.answerGlobal(requests) })
	for {
		select {
		case <-ctx.Done():
			return nil
		case offered, open := <-channels:
			if !open {
				return nil
			}
			select {
			case c.channels <- struct{}{}:
			default:
				_ = offered.Reject(ssh.ResourceShortage, fmt.Sprintf("nomadlike: %d channels are open", channelsMax)) // it is gone otherwise
				continue
			}
			serving.Go(func() {
				defer func() { <-c.channels }()
				defer c.survive()
				c.serve(ctx, offered)
			})
		}
	}
}

// survive keeps a panic of one channel from ending the agent.
func (c *connection) survive() {
	if cause := recover(); cause != nil {
		c.config.Logger.Error("ssh channel", logkey.Error, fmt.Sprint(cause))
	}
}

// answerGlobal answers requests about the whole connection. Forwarding from the
// task to the client is refused; so is a keep-alive, which that is answer enough for.
func (c *connection) answerGlobal(requests <-chan *ssh.Request) {
	for request := range requests {
		if request.Type == "tcpip-forward" || request.Type == "streamlocal-forward@openssh.com" {
			c.refused.Store(true)
		}
		if request.WantReply {
			_ = request.Reply(false, nil) // the connection is gone otherwise
		}
	}
}

func (c *connection) serve(ctx context.Context, offered ssh.NewChannel) {
	switch offered.ChannelType() {
	case "session":
		c.session(ctx, offered)
	case "direct-tcpip":
		c.forward(ctx, offered, parseTCP)
	case "direct-streamlocal@openssh.com":
		c.forward(ctx, offered, parseSocket)
	default:
		_ = offered.Reject(ssh.UnknownChannelType, "nomadlike: this kind of channel is not there")
	}
}

// pipe makes a connection of a stream, as package ssh wants one.
type pipe struct{ io.ReadWriteCloser }

type address struct{}

func (address) Network() string { return "nomadlike" }
func (address) String() string  { return "nomadlike" }

func (pipe) LocalAddr() net.Addr              { return address{} }
func (pipe) RemoteAddr() net.Addr             { return address{} }
func (pipe) SetDeadline(time.Time) error      { return errors.ErrUnsupported }
func (pipe) SetReadDeadline(time.Time) error  { return errors.ErrUnsupported }
func (pipe) SetWriteDeadline(time.Time) error { return errors.ErrUnsupported }

package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"nomadlike/internal/logkey"
)

const (
	// complaintMax bounds what go-plugin's explanations add to an error.
	complaintMax = 300
	// stderrLineMax bounds a line of a plugin's stderr in the agent's log.
	stderrLineMax = 4 << 10
	// stderrLinesMax bounds the lines that a plugin may put there in each
	// stderrWindow: one that crashes again and again writes hundreds each time.
	stderrLinesMax = 100
	stderrWindow   = time.Minute
)

// contract is how plugins of one kind are recognised and spoken to.
type contract[R remote] struct {
	what        string // for messages: "driver plugin"
	version     int
	unavailable error // what calls fail with while the program is down
	service     string
	handshake   plugin.HandshakeConfig
	adapter     plugin.Plugin
	dial        []grpc.DialOption
}

// source is where a plugin's program comes from and how it is started.
type source struct {
	name string // what it must call itself
	args []string
	env  []string
	open func() (*program, error) // called, and checked anew, at each start
}

// running is one life of a plugin program.
type running[R remote] struct {
	client  *plugin.Client
	process *exec.Cmd
	remote  R
	gone    chan struct{} // closed by kill's goroutine when the program has ended
}

// launch starts a program and shakes hands. It must be called from a
// goroutine that is locked to its thread until the program has ended: the
// kernel kills the program when that thread ends, so that none outlives the
// agent.
func launch[R remote](ctx context.Context, p *process[R]) (*running[R], error) {
	program, err := p.source.open()
	if err != nil {
		return nil, err
	}
	defer program.close() // it has been executed by then
	process := &exec.Cmd{
		Path: program.path(),
		Args: append([]string{p.source.name}, p.source.args...),
		Env:  append(append([]string{}, p.source.env...), plugin.EnvUnixSocketDir+"="+p.runDir),
		Dir:  "/",
		SysProcAttr: &syscall.SysProcAttr{
			Setpgid:   true, // all that it forks is killed with it
			Pdeathsig: syscall.SIGKILL,
		},
	}
	client := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  p.contract.handshake,
		Plugins:          plugin.PluginSet{p.contract.service: p.contract.adapter},
		Cmd:              process,
		SkipHostEnv:      true,
		AutoMTLS:         true,
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		StartTimeout:     p.timing.start,
		GRPCDialOptions:  p.contract.dial,
		Logger:           hclog.NewNullLogger(),
		Stderr:           p.stderr,
	})
	r := &running[R]{client: client, process: process, gone: make(chan struct{})}
	// go-plugin has calls of its own without deadlines: whatever hangs there
	// ends when the program does.
	connected := make(chan error, 1)
	if _, err := client.Start(); err != nil {
		r.kill()
		return nil, explainHandshake(p.contract.what, p.contract.version, err)
	}
	go func() { connected <- r.connect(ctx, p.contract.service, p.source.name) }()
	timer := time.NewTimer(p.timing.start)
	defer timer.Stop()
	select {
	case err = <-connected:
	case <-timer.C:
		err = errors.New("it does not answer its first call")
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		r.kill()
		return nil, err
	}
	return r, nil
}

// connect gets the contract's end and asks for the plugin's name.
func (r *running[R]) connect(ctx context.Context, service, name string) error {
	protocol, err := r.client.Client()
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	dispensed, err := protocol.Dispense(service)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	end, ok := dispensed.(R)
	if !ok {
		return fmt.Errorf("connect: got a %T", dispensed)
	}
	told, err := end.Ping(ctx)
	if err != nil {
		return err
	}
	if told != name {
		return fmt.Errorf("it calls itself %.80q", told)
	}
	r.remote = end
	return nil
}

// kill ends the program with all that it has forked, and waits until it is
// gone, at most killLimit. Asking it first would mean trusting it to answer.
func (r *running[R]) kill() {
	if r.process.Process != nil {
		_ = syscall.Kill(-r.process.Process.Pid, syscall.SIGKILL) // gone already is fine
	}
	go func() { // ends with the program
		defer close(r.gone)
		r.client.Kill()
	}()
	timer := time.NewTimer(killLimit)
	defer timer.Stop()
	select {
	case <-r.gone:
	case <-timer.C:
	}
}

// exited reports whether the program has ended by itself.
func (r *running[R]) exited() bool { return r.client.Exited() }

// explainHandshake shortens go-plugin's message to its cause, and adds what a
// person can do.
func explainHandshake(what string, version int, err error) error {
	complaint, _, _ := strings.Cut(err.Error(), "\n")
	return fmt.Errorf("shake hands: %.*s (this agent speaks version %d of the %s contract; build the plugin against that)",
		complaintMax, complaint, version, strings.TrimSuffix(what, " plugin"))
}

// stderrLog writes a plugin's stderr into the agent's log, line by line.
type stderrLog struct {
	log  *slog.Logger
	what string

	mu struct {
		sync.Mutex
		pending []byte
		begun   time.Time // of the window
		lines   int       // in the window, those left out included
		last    string    // since take was called
	}
}

// take returns the last line since it was called last.
func (w *stderrLog) take() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := w.mu.last
	w.mu.last = ""
	return last
}

var _ io.Writer = (*stderrLog)(nil)

// Write never fails.
func (w *stderrLog) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.pending = append(w.mu.pending, p...)
	for {
		line, rest, whole := bytes.Cut(w.mu.pending, []byte("\n"))
		if !whole && len(w.mu.pending) < stderrLineMax {
			return len(p), nil
		}
		if len(line) > stderrLineMax {
			line, rest = w.mu.pending[:stderrLineMax], w.mu.pending[stderrLineMax:]
		}
		w.tellLocked(string(line))
		w.mu.pending = append(w.mu.pending[:0], rest...)
	}
}

// tellLocked writes one line, unless there were too many of late.
func (w *stderrLog) tellLocked(line string) {
	if line != "" {
		w.mu.last = line[:min(len(line), complaintMax)]
	}
	if now := time.Now(); now.Sub(w.mu.begun) > stderrWindow {
		if left := w.mu.lines - stderrLinesMax; left > 0 {
			w.log.Info(w.what+" said more", logkey.Count, left)
		}
		w.mu.begun, w.mu.lines = now, 0
	}
	if w.mu.lines++; w.mu.lines <= stderrLinesMax {
		w.log.Info(w.what+" says", logkey.Reason, line)
	}
}

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

	"nomadlike/internal/logkey"
	"nomadlike/plugins/driver/driverplugin"
)

const (
	// complaintMax bounds what go-plugin's explanations add to an error.
	complaintMax = 300
	// stderrLineMax bounds a line of a plugin's stderr in the agent's log.
	stderrLineMax = 4 << 10
)

// running is one life of a plugin program.
type running struct {
	client  *plugin.Client
	process *exec.Cmd
	driver  *driverplugin.Client
}

// launch starts a program and shakes hands. It must be called from a
// goroutine that is locked to its thread until the program has ended: the
// kernel kills the program when that thread ends, so that none outlives the
// agent.
func launch(ctx context.Context, config Config, each PluginConfig, log *slog.Logger) (*running, error) {
	program, err := openProgram(config.PluginDir, each.Name, each.SHA256)
	if err != nil {
		return nil, err
	}
	defer program.close() // it has been executed by then
	process := &exec.Cmd{
		Path: program.path(),
		Args: append([]string{each.Name}, each.Args...),
		Env:  append(append([]string{}, each.Env...), plugin.EnvUnixSocketDir+"="+config.RunDir),
		Dir:  "/",
		SysProcAttr: &syscall.SysProcAttr{
			Setpgid:   true, // all that it forks is killed with it
			Pdeathsig: syscall.SIGKILL,
		},
	}
	client := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  driverplugin.Handshake(),
		Plugins:          plugin.PluginSet{driverplugin.Name: &driverplugin.Adapter{PluginName: each.Name}},
		Cmd:              process,
		SkipHostEnv:      true,
		AutoMTLS:         true,
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		StartTimeout:     config.timing.start,
		GRPCDialOptions:  driverplugin.DialOptions(),
		Logger:           hclog.NewNullLogger(),
		Stderr:           &stderrLog{log: log},
	})
	r := &running{client: client, process: process}
	// go-plugin has calls of its own without deadlines: whatever hangs there
	// ends when the program does.
	connected := make(chan error, 1)
	if _, err := client.Start(); err != nil {
		r.kill()
		return nil, explainHandshake(err)
	}
	go func() { connected <- r.connect(ctx, each.Name) }()
	timer := time.NewTimer(config.timing.start)
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

// connect gets the driver and asks for its name.
func (r *running) connect(ctx context.Context, name string) error {
	protocol, err := r.client.Client()
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	dispensed, err := protocol.Dispense(driverplugin.Name)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	d, ok := dispensed.(*driverplugin.Client)
	if !ok {
		return fmt.Errorf("connect: got a %T", dispensed)
	}
	told, err := d.Ping(ctx)
	if err != nil {
		return err
	}
	if told != name {
		return fmt.Errorf("it calls itself %q", told)
	}
	r.driver = d
	return nil
}

// kill ends the program with all that it has forked, and waits until it is
// gone. Asking it first would mean trusting it to answer.
func (r *running) kill() {
	if r.process.Process != nil {
		_ = syscall.Kill(-r.process.Process.Pid, syscall.SIGKILL) // gone already is fine
	}
	r.client.Kill()
}

// exited tells whether the program has ended by itself.
func (r *running) exited() bool { return r.client.Exited() }

// explainHandshake shortens go-plugin's message to its cause, and adds what a
// person can do.
func explainHandshake(err error) error {
	complaint, _, _ := strings.Cut(err.Error(), "\n")
	return fmt.Errorf("shake hands: %.*s (this agent speaks version %d of the driver contract; build the plugin against that)",
		complaintMax, complaint, driverplugin.ProtocolVersion)
}

// stderrLog writes a plugin's stderr into the agent's log, line by line.
type stderrLog struct {
	log *slog.Logger

	mu struct {
		sync.Mutex
		pending []byte
	}
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
		w.log.Info("driver plugin says", logkey.Reason, string(line))
		w.mu.pending = append(w.mu.pending[:0], rest...)
	}
}

package taskssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"golang.org/x/crypto/ssh"

	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/taskside"
)

// The words for a task's shell: bash where the image has it, as people expect,
// else sh. The command comes as an argument, never as a part of the text.
const (
	shellCommand = `if command -v bash >/dev/null 2>&1; then exec bash -c "$1"; fi; exec /bin/sh -c "$1"`
	shellLogin   = `if command -v bash >/dev/null 2>&1; then exec bash -l; fi; exec /bin/sh -l`
	shellPlain   = `if command -v bash >/dev/null 2>&1; then exec bash; fi; exec /bin/sh`
)

// codeLost is the exit code of what could not be run, as ssh has it for itself.
const codeLost = 255

// session is one session's wishes, until its command runs.
type session struct {
	*connection
	channel ssh.Channel
	env     []string
	tty     bool
	size    driver.WindowSize
	agent   bool // forwarding of the client's agent was asked for
	resize  chan driver.WindowSize
	signals chan string
}

func (c *connection) session(ctx context.Context, offered ssh.NewChannel) {
	channel, requests, err := offered.Accept()
	if err != nil {
		return // the connection is gone
	}
	defer channel.Close()
	s := &session{
		connection: c, channel: channel,
		resize: make(chan driver.WindowSize, 1), signals: make(chan string, signalsMax),
	}
	spec, ok := s.prepare(ctx, requests)
	if !ok {
		go ssh.DiscardRequests(requests) // ends with the channel
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer cancel() // the channel was closed: nobody waits for the command any more
		for request := range requests {
			ok := s.whileRunning(request)
			if request.WantReply {
				_ = request.Reply(ok, nil)
			}
		}
	}()
	s.tellRefused()
	streams := driver.Streams{Stdin: channel, Stdout: channel, Stderr: channel.Stderr(), Resize: s.resize, Signals: s.signals}
	result, err := c.config.Run(ctx, spec, streams)
	s.end(result, err)
}

// prepare takes the session's requests until one says what to run.
func (s *session) prepare(ctx context.Context, requests <-chan *ssh.Request) (spec driver.ExecSpec, ok bool) {
	for range requestsMax {
		var request *ssh.Request
		select {
		case <-ctx.Done():
			return spec, false
		case request = <-requests:
		}
		if request == nil {
			return spec, false
		}
		runs, known := false, false
		if spec, runs = s.command(request); runs {
			known = true
		} else {
			known = s.before(request)
		}
		if request.WantReply {
			_ = request.Reply(known, nil)
		}
		if runs {
			return spec, true
		}
	}
	return spec, false
}

// command makes of a request what is to be run.
func (s *session) command(request *ssh.Request) (spec driver.ExecSpec, ok bool) {
	spec = driver.ExecSpec{Env: s.env, TTY: s.tty, Size: s.size}
	switch request.Type {
	case "shell":
		spec.Command = []string{"/bin/sh", "-c", shellPlain}
		if s.tty {
			spec.Command[2] = shellLogin
		}
		return spec, true
	case "exec":
		text, ok := parseText(request.Payload)
		if !ok || text == "" {
			return spec, false
		}
		spec.Command = []string{"/bin/sh", "-c", shellCommand, "sh", text}
		return spec, true
	case "subsystem":
		name, ok := parseText(request.Payload)
		if !ok || name != "sftp" {
			return spec, false
		}
		return driver.ExecSpec{Command: []string{taskside.SFTP}, Side: true}, true
	}
	return spec, false
}

// before takes a request that says how the command is to be run.
func (s *session) before(request *ssh.Request) bool {
	switch request.Type {
	case "pty-req":
		term, size, ok := parseTerminal(request.Payload)
		if !ok {
			return false
		}
		s.tty, s.size = true, size
		if term != "" {
			s.env = append(s.env, "TERM="+term)
		}
		return true
	case "env":
		name, value, ok := parseEnv(request.Payload)
		if !ok || len(s.env) >= envMax {
			return false
		}
		s.env = append(s.env, name+"="+value)
		return true
	case "auth-agent-req@openssh.com":
		s.agent = true
		return false
	case "window-change":
		if size, ok := parseSize(request.Payload); ok {
			s.size = size
			return true
		}
	}
	return false
}

// whileRunning takes a request about a command that runs.
func (s *session) whileRunning(request *ssh.Request) bool {
	switch request.Type {
	case "window-change":
		size, ok := parseSize(request.Payload)
		if !ok {
			return false
		}
		select {
		case <-s.resize: // the newest counts
		default:
		}
		select {
		case s.resize <- size:
		default:
		}
		return true
	case "signal":
		name, ok := parseText(request.Payload)
		if !ok || !signalName.MatchString(name) {
			return false
		}
		select {
		case s.signals <- "SIG" + name:
		default: // the command has enough of them
		}
		return true
	}
	return false
}

var signalName = regexp.MustCompile(`^[A-Z][A-Z0-9]{0,15}$`)

// tellRefused says on a terminal what the client asked for and does not get. Programs
// that read what a command writes are told nothing.
func (s *session) tellRefused() {
	if !s.tty {
		return
	}
	if s.refused.Load() {
		fmt.Fprint(s.channel.Stderr(), "nomadlike: forwarding from the task to your machine (-R) is not there; -L and -D are\r\n")
	}
	if s.agent {
		fmt.Fprint(s.channel.Stderr(), "nomadlike: the task does not get your ssh agent (-A)\r\n")
	}
}

// end tells the client how its command ended. The client may be gone.
func (s *session) end(result driver.ExitResult, err error) {
	var unstarted *driver.StartError
	switch {
	case errors.As(err, &unstarted):
		result = driver.ExitResult{Code: unstarted.ExitCode}
		s.complain(unstarted)
	case errors.Is(err, driver.ErrNoSide):
		result = driver.ExitResult{Code: codeLost}
		s.complain(errors.New("files and forwarding are not there: " + err.Error()))
	case err != nil:
		result = driver.ExitResult{Code: codeLost}
		s.complain(err)
	case result.Err != nil:
		s.complain(result.Err)
	}
	if result.Signal != "" {
		_, _ = s.channel.SendRequest("exit-signal", false, ssh.Marshal(struct {
			Signal     string
			CoreDumped bool
			Message    string
			Language   string
		}{strings.TrimPrefix(result.Signal, "SIG"), false, "", ""}))
		return
	}
	_, _ = s.channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{uint32(result.Code)}))
}

func (s *session) complain(err error) {
	_, _ = io.WriteString(s.channel.Stderr(), "nomadlike: "+err.Error()+"\r\n")
}

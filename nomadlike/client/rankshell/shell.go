package rankshell

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"nomadlike/internal/messages"
	"nomadlike/nomadlike/launch"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// CodeFailed is the exit code of a shell that could not do its work, as ssh
// has it.
const CodeFailed = 255

// RunShell is the hidden command `nomadlike mpi-rsh`: it runs the command in
// args, in ssh's form, in the task of the rank that args names, and returns
// its exit code, or CodeFailed after a line on stderr. environ is the
// environment of the task that it runs in, as NAME=value. main calls it once.
func RunShell(args, environ []string, stdin io.Reader, stdout, stderr io.Writer) int {
	getenv := lookup(environ)
	language := messages.Detect(getenv("LC_ALL"), getenv("LC_MESSAGES"), getenv("LANG"))
	fail := func(err *structs.Error) int {
		fmt.Fprintf(stderr, "nomadlike mpi-rsh: %s\n", messages.Text(language, err.ID, err.Params))
		return CodeFailed
	}
	host, command, err := launch.ParseRemoteShell(args)
	if err != nil {
		var told *structs.Error
		if !errors.As(err, &told) {
			told = structs.NewError(structs.CodeInvalid, "client.rsh_usage", "cause", err)
		}
		return fail(told)
	}
	path, token := getenv(EnvSocket), getenv(EnvToken)
	if path == "" || token == "" {
		return fail(structs.NewError(structs.CodeInvalid, "client.rsh_outside"))
	}
	conn, err := dial(path)
	if err != nil {
		return fail(structs.NewError(structs.CodeUnavailable, "client.rsh_no_agent", "cause", err))
	}
	defer conn.Close()
	exit, err := converse(conn, Request{Token: token, Host: host, Command: command}, stdin, stdout, stderr)
	if err != nil {
		return fail(structs.NewError(structs.CodeUnavailable, "client.rsh_no_agent", "cause", err))
	}
	if exit.Err != nil {
		return fail(exit.Err)
	}
	return exit.Code
}

// lookup reads variables of an environment; a missing one is "".
func lookup(environ []string) func(string) string {
	return func(name string) string {
		for _, entry := range environ {
			if value, ok := strings.CutPrefix(entry, name+"="); ok {
				return value
			}
		}
		return ""
	}
}

// forwarded lists the signals that the shell hands on.
func forwarded() []os.Signal {
	return []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2}
}

// converse carries the streams until the command has ended. The goroutines
// that read stdin and signals end with the process.
func converse(conn io.ReadWriter, request Request, stdin io.Reader, stdout, stderr io.Writer) (Exit, error) {
	signals := make(chan os.Signal, signalsMax)
	signal.Notify(signals, forwarded()...)
	defer signal.Stop(signals)
	frames := newFrameWriter(conn)
	if err := frames.json(kindRequest, request); err != nil {
		return Exit{}, err
	}
	done := make(chan struct{})
	defer close(done)
	go func() {
		for {
			select {
			case s := <-signals:
				if number, ok := s.(syscall.Signal); ok {
					_ = frames.frame(kindSignal, []byte(driver.SignalName(number))) // a broken connection is seen by the reader
				}
			case <-done:
				return
			}
		}
	}()
	go func() {
		if stdin != nil {
			_, _ = io.Copy(frames.stream(kindStdin), stdin) // as above; an unreadable stdin is an ended one
		}
		_ = frames.frame(kindStdinEnd, nil)
	}()
	for {
		k, payload, err := readFrame(conn)
		if errors.Is(err, io.EOF) {
			return Exit{}, errors.New("the connection ended before the command")
		}
		if err != nil {
			return Exit{}, err
		}
		switch k {
		case kindStdout:
			_, err = stdout.Write(payload)
		case kindStderr:
			_, err = stderr.Write(payload)
		case kindExit:
			var exit Exit
			return exit, json.Unmarshal(payload, &exit)
		default:
			err = fmt.Errorf("unexpected frame of kind %q", byte(k))
		}
		if err != nil {
			return Exit{}, err
		}
	}
}

// Package rankprocs starts the processes of one rank side by side, each with
// variables of its own: the hidden command `nomadlike task-procs`, which runs in
// the task, in containers too.
//
// Flow: launch writes how many there are and what each gets; all of them write
// into the task's log and belong to its process group, so signals that the rank
// gets reach each of them.
//
// Limits: when one process fails, the others are told to end and are killed after
// a while; what those have started ends with the task.
package rankprocs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"nomadlike/internal/messages"
	"nomadlike/nomadlike/launch"
)

// Patience is how long the others may take to end when one process has failed.
const Patience = 10 * time.Second

// Exit codes as a shell has them.
const (
	codeUsage     = 2
	codeNotRun    = 126
	codeNotFound  = 127
	codeBySignal  = 128
	codesReserved = 1 // of an end that nobody can name
)

// Run starts the processes that args asks for and waits for all of them. It
// returns the exit code of the first that failed, 0 when none did. environ is the
// environment of the task, as NAME=value.
func Run(ctx context.Context, args, environ []string, stdout, stderr *os.File) int {
	// The group's signals are the processes' own; this one waits for their end.
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2)
	defer signal.Stop(heard)
	return run(ctx, args, environ, stdout, stderr)
}

func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	language := messages.Detect(valueOf(environ, "LC_ALL"), valueOf(environ, "LC_MESSAGES"), valueOf(environ, "LANG"))
	say := func(id string, params map[string]string) {
		fmt.Fprintf(stderr, "nomadlike task-procs: %s\n", messages.Text(language, id, params))
	}
	procs, err := launch.ParseProcs(args)
	if err != nil {
		say("client.procs_usage", nil)
		return codeUsage
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	codes, started := make(chan int), 0
	first := 0
	for i := range procs.Count {
		cmd := exec.CommandContext(ctx, procs.Command[0], procs.Command[1:]...)
		cmd.Env = append(append([]string{}, environ...), procs.Env(i)...)
		cmd.Stdout, cmd.Stderr = stdout, stderr
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		cmd.WaitDelay = Patience
		if err := cmd.Start(); err != nil {
			say("client.procs_not_started", map[string]string{"command": procs.Command[0], "cause": err.Error()})
			first = codeNotRun
			if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
				first = codeNotFound
			}
			end()
			break
		}
		started++
		go func() { codes <- codeOf(cmd.Wait(), cmd.ProcessState) }()
	}
	for range started {
		if code := <-codes; code != 0 && first == 0 {
			first = code
			end()
		}
	}
	return first
}

// codeOf is the exit code of a process as a shell tells it.
func codeOf(err error, state *os.ProcessState) int {
	if state == nil {
		return codesReserved
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return codeBySignal + int(status.Signal())
	}
	if err != nil && state.ExitCode() == 0 {
		return 0 // it had ended well when it was told to
	}
	return state.ExitCode()
}

func valueOf(environ []string, name string) string {
	for _, entry := range environ {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

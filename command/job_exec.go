package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/term"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

func jobExec(set *flag.FlagSet) func(*Env, []string) error {
	connection := declareConnection(set)
	tty := set.Bool("t", false, "cli.flag.tty")
	rank := set.Int("rank", 0, "cli.flag.exec_rank")
	subjob := set.Int("subjob", 0, "cli.flag.subjob")
	return func(env *Env, args []string) error {
		if len(args) < 2 {
			return usagef("cli.missing_argument", "argument", "JOB COMMAND")
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		alloc, err := runningRank(env.Context, client, args[0], *subjob, *rank)
		if err != nil {
			return err
		}
		return env.exec(client, alloc, args[1:], *tty)
	}
}

// runningRank finds the allocation of a rank in the newest attempt.
func runningRank(ctx context.Context, client *api.Client, job string, subjob, rank int) (*structs.Allocation, error) {
	list, _, err := client.Allocations(ctx, job, api.AllocationFilter{}, nil)
	if err != nil {
		return nil, err
	}
	var found *structs.Allocation
	for i := range list.Allocations {
		alloc := &list.Allocations[i]
		if alloc.Subjob == subjob && alloc.Rank == rank && (found == nil || alloc.Attempt > found.Attempt) {
			found = alloc
		}
	}
	if found == nil || !found.Enterable() {
		return nil, structs.NewError(structs.CodeConflict, "cli.exec.not_running", "job", job, "rank", rank)
	}
	return found, nil
}

// exec runs a command inside a task with this process's streams and ends
// with the command's exit code.
func (env *Env) exec(client *api.Client, alloc *structs.Allocation, command []string, tty bool) error {
	ctx, cancel := context.WithCancel(context.WithoutCancel(env.Context)) // signals go to the command instead
	var sending sync.WaitGroup
	defer sending.Wait()
	defer cancel()
	start := structs.ExecStart{Attempt: alloc.Attempt, Command: command, TTY: tty}
	if term := env.Getenv("TERM"); tty && term != "" {
		start.Env = map[string]string{"TERM": term}
	}
	restore, size, err := env.rawTerminal(tty)
	if err != nil {
		return err
	}
	defer restore()
	start.Size = size
	conn, err := client.Exec(ctx, alloc.ID, start)
	if err != nil {
		return err
	}
	defer conn.Close()
	go env.sendInput(ctx, conn) // a read of standard input cannot be waited for; it ends with the process
	sending.Go(func() { env.sendSignals(ctx, conn, tty) })
	for {
		down, err := conn.Recv(ctx)
		if err != nil {
			return err
		}
		switch {
		case down.Exit != nil:
			return execEnd(down.Exit)
		case len(down.Stdout) > 0:
			if _, err := env.Stdout.Write(down.Stdout); err != nil {
				return fmt.Errorf("write output: %w", err)
			}
		case len(down.Stderr) > 0:
			if _, err := env.Stderr.Write(down.Stderr); err != nil {
				return fmt.Errorf("write output: %w", err)
			}
		}
	}
}

func execEnd(exit *structs.ExecExit) error {
	switch {
	case exit.Err != nil:
		code := exit.Code
		if code == 0 {
			code = ExitError
		}
		return &exitError{code: code, err: exit.Err}
	case exit.Signal > 0:
		return &exitError{code: 128 + exit.Signal}
	case exit.Code != 0:
		return &exitError{code: exit.Code}
	}
	return nil
}

// rawTerminal puts the terminal into raw mode when a TTY is wanted.
func (env *Env) rawTerminal(tty bool) (restore func(), size *structs.TTYSize, err error) {
	file, isFile := env.Stdin.(*os.File)
	if !tty || !isFile || !term.IsTerminal(int(file.Fd())) {
		return func() {}, nil, nil
	}
	old, err := term.MakeRaw(int(file.Fd()))
	if err != nil {
		return nil, nil, fmt.Errorf("make terminal raw: %w", err)
	}
	return func() { _ = term.Restore(int(file.Fd()), old) }, terminalSize(file), nil
}

func terminalSize(file *os.File) *structs.TTYSize {
	width, height, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return nil
	}
	return &structs.TTYSize{Rows: uint16(height), Cols: uint16(width)}
}

func (env *Env) sendInput(ctx context.Context, conn *api.ExecConn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := env.Stdin.Read(buffer)
		if n > 0 {
			if conn.SendStdin(ctx, buffer[:n]) != nil {
				return // Recv tells what happened to the connection
			}
		}
		if errors.Is(err, io.EOF) {
			_ = conn.CloseStdin(ctx)
			return
		}
		if err != nil {
			return
		}
	}
}

// sendSignals forwards signals, and window sizes of a terminal, until ctx
// ends.
func (env *Env) sendSignals(ctx context.Context, conn *api.ExecConn, tty bool) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGWINCH)
	defer signal.Stop(signals)
	for {
		select {
		case got := <-signals:
			env.sendSignal(ctx, conn, got, tty)
		case <-ctx.Done():
			return
		}
	}
}

func (env *Env) sendSignal(ctx context.Context, conn *api.ExecConn, got os.Signal, tty bool) {
	if got == syscall.SIGWINCH {
		if file, ok := env.Stdin.(*os.File); ok && tty {
			if size := terminalSize(file); size != nil {
				_ = conn.Resize(ctx, *size)
			}
		}
		return
	}
	names := map[os.Signal]string{os.Interrupt: "SIGINT", syscall.SIGTERM: "SIGTERM", syscall.SIGHUP: "SIGHUP"}
	_ = conn.Signal(ctx, names[got])
}

// Package command is the command line: it parses flags, calls package api and
// prints. The binary's other lives (agent, supervisor, remote shell) are
// verbs here too.
//
// Flow: Main finds the verb in the tree, parses its flags, runs it with an
// Env, and returns the process's exit code. Flags may be written -json or
// --json and may stand before or after arguments, as in Nomad; everything
// after "--" is an argument.
//
// Exit codes: 0 done, 1 the cluster refused or the job failed without a code
// of its own, 2 the command line is wrong, 130 interrupted; `job run -wait`
// and `job exec` exit with the job's own code.
//
// Limits: no state of its own besides the context file of package api; every
// text comes from the message catalogue.
package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"nomadlike/internal/messages"
)

// Exit codes that scripts can rely on.
const (
	ExitOK          = 0
	ExitError       = 1
	ExitUsage       = 2
	ExitStorage     = 74  // of an agent whose disk cannot be trusted
	ExitExpired     = 124 // as timeout(1) says it
	ExitInterrupted = 130 // the person, or whatever stopped the job
)

// verb is one command of the tree. Its summary, arguments and flags are
// rendered from the catalogue: cli.<path>.summary and so on.
type verb struct {
	path   string // words below the program's name, "job run"
	args   string // what stands after the flags, "FILE" or "[JOB]"
	hidden bool   // not listed: the binary's inner lives
	raw    bool   // arguments are not parsed as flags at all
	// stopAtArg says that flags end at the given number of arguments: what
	// follows belongs to a command that runs elsewhere. 0: flags anywhere.
	stopAtArg int
	// setup declares flags and returns what runs with the arguments left.
	setup func(*flag.FlagSet) func(*Env, []string) error
}

// exitError ends the program with a code and, when err is nil, no message.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usageError is a mistake on the command line.
type usageError struct {
	id     string
	params []any
}

func (e *usageError) Error() string { return messages.Textf(messages.English, e.id, e.params...) }

func usagef(id string, params ...any) error { return &usageError{id: id, params: params} }

// verbs is the whole tree in the order of the help.
func verbs() []verb {
	var all []verb
	all = append(all, jobVerbs()...)
	all = append(all, sshVerbs()...)
	all = append(all, controlVerbs()...)
	all = append(all, queueVerbs()...)
	all = append(all, forecastVerbs()...)
	all = append(all, outlookVerbs()...)
	all = append(all, poolVerbs()...)
	all = append(all, projectVerbs()...)
	all = append(all, nodeVerbs()...)
	all = append(all, imageVerbs()...)
	all = append(all, maintenanceVerbs()...)
	all = append(all, availableVerbs()...)
	all = append(all, deviceVerbs()...)
	all = append(all, clusterVerbs()...)
	all = append(all, keyVerbs()...)
	all = append(all, settingsVerbs()...)
	all = append(all, userVerbs()...)
	all = append(all, loginVerbs()...)
	all = append(all, serviceAccountVerbs()...)
	all = append(all, templateVerbs()...)
	all = append(all, secretVerbs()...)
	all = append(all, dataVerbs()...)
	all = append(all, lineageVerbs()...)
	all = append(all, dataBytesVerbs()...)
	all = append(all, notifyVerbs()...)
	all = append(all, tokenVerbs()...)
	all = append(all, auditVerbs()...)
	all = append(all, reportVerbs()...)
	all = append(all, shareVerbs()...)
	all = append(all, simVerbs()...)
	all = append(all, agentVerbs()...)
	all = append(all, checkpointVerbs()...)
	return append(all, otherVerbs()...)
}

// Main runs the command line with the arguments after the program's name and
// returns the exit code. It is called once, from main.
func Main(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first signal asks, the second one ends.
	defer context.AfterFunc(ctx, stop)()
	return Run(NewEnv(ctx), args)
}

// Run is Main with its surroundings given, for tests.
func Run(env *Env, args []string) int {
	args = env.takeLanguage(args)
	if len(args) == 1 && (args[0] == "-v" || args[0] == "-version" || args[0] == "--version") {
		args = []string{"version"}
	}
	chosen, rest, ok := find(args)
	if !ok {
		return env.help(args)
	}
	return env.exitCode(chosen, execute(env, chosen, rest))
}

// execute parses the flags of a verb and runs it.
func execute(env *Env, v verb, args []string) error {
	set := flag.NewFlagSet(v.path, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	run := v.setup(set)
	if v.raw {
		return run(env, args)
	}
	left, err := parseFlags(set, args, v.stopAtArg)
	if errors.Is(err, flag.ErrHelp) {
		env.helpVerb(v)
		return nil
	}
	if err != nil {
		return err
	}
	return run(env, left)
}

// find takes the longest path of words that names a verb.
func find(args []string) (verb, []string, bool) {
	var best verb
	length := 0
	for _, v := range verbs() {
		words := strings.Fields(v.path)
		if len(words) <= length || len(args) < len(words) {
			continue
		}
		if strings.Join(args[:len(words)], " ") == v.path {
			best, length = v, len(words)
		}
	}
	return best, args[length:], length > 0
}

// exitCode prints what went wrong, if anything, and returns the exit code.
func (env *Env) exitCode(v verb, err error) int {
	if err == nil {
		return ExitOK
	}
	var wrong *usageError
	if errors.As(err, &wrong) {
		env.printError(env.text(wrong.id, wrong.params...), env.text("cli.usage.hint", "command", v.path))
		return ExitUsage
	}
	var exit *exitError
	if errors.As(err, &exit) {
		if exit.err != nil {
			env.reportError(exit.err)
		}
		return exit.code
	}
	if env.Context.Err() != nil && errors.Is(err, context.Canceled) {
		return ExitInterrupted
	}
	env.reportError(err)
	if code, known := agentExit(err); known {
		return code
	}
	return ExitError
}

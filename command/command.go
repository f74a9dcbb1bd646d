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
// of its own, 2 the command line is wrong; `job run -wait` and `job exec`
// exit with the job's own code.
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
	"sort"
	"strings"
	"syscall"

	"nomadlike/internal/messages"
)

// Exit codes that scripts can rely on.
const (
	ExitOK    = 0
	ExitError = 1
	ExitUsage = 2
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
	all = append(all, nodeVerbs()...)
	all = append(all, clusterVerbs()...)
	all = append(all, tokenVerbs()...)
	all = append(all, agentVerbs()...)
	return append(all, otherVerbs()...)
}

// Main runs the command line with the arguments after the program's name and
// returns the exit code. It is called once, from main.
func Main(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return Run(ctx, NewEnv(ctx), args)
}

// Run is Main with its surroundings given, for tests.
func Run(ctx context.Context, env *Env, args []string) int {
	args = env.takeLanguage(args)
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
		env.helpVerb(v, set)
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

// exitCode prints what went wrong, if anything, and gives the exit code.
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
	env.reportError(err)
	return ExitError
}

// help answers `nomadlike`, `nomadlike help`, `nomadlike job` and mistakes.
func (env *Env) help(args []string) int {
	asked := len(args) == 0
	words := args[:0:0]
	for _, arg := range args {
		switch arg {
		case "help", "-h", "-help", "--help":
			asked = true
		default:
			words = append(words, arg)
		}
	}
	if v, rest, ok := find(words); ok && asked && len(rest) == 0 {
		set := flag.NewFlagSet(v.path, flag.ContinueOnError)
		v.setup(set)
		env.helpVerb(v, set)
		return ExitOK
	}
	prefix := strings.Join(words, " ")
	group := matching(prefix)
	if len(group) > 0 && (asked || len(words) == 1) {
		env.helpList(group)
		if asked {
			return ExitOK
		}
		return ExitUsage
	}
	if asked && len(words) == 0 {
		env.helpList(matching(""))
		return ExitOK
	}
	env.printError(env.text("cli.unknown_command", "command", safe(prefix)), env.suggestVerb(prefix))
	return ExitUsage
}

func matching(prefix string) []verb {
	var group []verb
	for _, v := range verbs() {
		if !v.hidden && (prefix == "" || v.path == prefix || strings.HasPrefix(v.path, prefix+" ")) {
			group = append(group, v)
		}
	}
	return group
}

func (env *Env) helpList(group []verb) {
	fmt.Fprintf(env.Stdout, "%s\n\n", env.text("cli.usage.main"))
	table := newTable(env, "", "")
	for _, v := range group {
		table.row("  "+v.path, env.text("cli."+key(v.path)))
	}
	table.print()
	fmt.Fprintf(env.Stdout, "\n%s\n", env.text("cli.usage.more"))
}

func (env *Env) helpVerb(v verb, set *flag.FlagSet) {
	fmt.Fprintf(env.Stdout, "nomadlike %s %s\n\n%s\n", v.path, strings.TrimSpace(env.text("cli.usage.flags")+" "+v.args), env.text("cli."+key(v.path)))
	table := newTable(env, "", "")
	set.VisitAll(func(f *flag.Flag) {
		name := "  -" + f.Name
		if value, _ := flag.UnquoteUsage(f); value != "" {
			name += " " + strings.ToUpper(value)
		}
		table.row(name, env.text(f.Usage))
	})
	fmt.Fprintln(env.Stdout)
	table.print()
}

// key turns a path into a part of a message id.
func key(path string) string {
	return strings.NewReplacer(" ", ".", "-", "_").Replace(path)
}

func (env *Env) suggestVerb(typed string) string {
	var paths []string
	for _, v := range matching("") {
		paths = append(paths, v.path)
	}
	if near := nearest(typed, paths); near != "" {
		return env.text("cli.did_you_mean", "name", near)
	}
	return env.text("cli.usage.see_help")
}

// nearest gives the candidate with the smallest edit distance to typed, or ""
// when none is near enough to be a slip.
func nearest(typed string, candidates []string) string {
	sort.Strings(candidates)
	best, limit := "", max(2, len(typed)/3)+1
	for _, candidate := range candidates {
		if d := distance(typed, candidate); d < limit {
			best, limit = candidate, d
		}
	}
	return best
}

// distance is the Levenshtein distance between a and b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}

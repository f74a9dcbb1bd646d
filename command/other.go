package command

import (
	"flag"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"nomadlike/jobspec"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// Version is the version of this build; the linker sets it in releases.
var Version = "dev"

func otherVerbs() []verb {
	return []verb{
		{path: "version", setup: version},
		{path: "docs", args: "[TOPIC]", setup: docs},
		{path: "completion", args: "bash|zsh|fish", setup: completion},
		{path: "cli-reference", raw: true, hidden: true, setup: cliReference},
		{path: "file-reference", args: "job|pool|project|agent", raw: true, hidden: true, setup: fileReference},
		{path: "complete-words", raw: true, hidden: true, setup: completeWords},
	}
}

func version(set *flag.FlagSet) func(*Env, []string) error {
	output := declareOutput(set)
	return func(env *Env, args []string) error {
		if err := none(args); err != nil {
			return err
		}
		value := struct {
			Version  string `json:"version"`
			Protocol int    `json:"protocol"`
			Go       string `json:"go"`
			Platform string `json:"platform"`
		}{Version, wire.ProtocolVersion, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
		return env.show(output, value, func() {
			fmt.Fprintf(env.Stdout, "nomadlike %s (%s %d, %s, %s)\n", value.Version, env.text("cli.col.protocol"), value.Protocol, value.Go, value.Platform)
		})
	}
}

// completion prints a script that asks this binary for the words that fit:
// the hidden verb complete-words knows verbs and flags, so scripts never
// grow old.
func completion(_ *flag.FlagSet) func(*Env, []string) error {
	return func(env *Env, args []string) error {
		shell, err := one(args, "bash|zsh|fish")
		if err != nil {
			return err
		}
		script, ok := completionScript(shell)
		if !ok {
			return usagef("cli.bad_shell", "shell", safe(shell))
		}
		fmt.Fprint(env.Stdout, script)
		return nil
	}
}

func completionScript(shell string) (string, bool) {
	switch shell {
	case "bash":
		return `_nomadlike() {
  local IFS=$'\n'
  COMPREPLY=($(nomadlike complete-words "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _nomadlike nomadlike
`, true
	case "zsh":
		return `#compdef nomadlike
_nomadlike() {
  local -a found
  found=("${(@f)$(nomadlike complete-words "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  compadd -a found
  _files
}
compdef _nomadlike nomadlike
`, true
	case "fish":
		return `complete -c nomadlike -a '(nomadlike complete-words (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
`, true
	}
	return "", false
}

// completeWords prints what may follow: the last word is the one being typed.
func completeWords(_ *flag.FlagSet) func(*Env, []string) error {
	return func(env *Env, args []string) error {
		if len(args) == 0 {
			args = []string{""}
		}
		before, typed := args[:len(args)-1], args[len(args)-1]
		words := candidates(before, typed)
		if v, _, ok := find(before); ok && len(words) == 0 && before[0] != "help" && !strings.HasPrefix(typed, "-") {
			words = env.names(v, before, typed)
		}
		for _, word := range words {
			fmt.Fprintln(env.Stdout, word)
		}
		return nil
	}
}

// candidates lists the words that may follow before and begin with typed: the
// next word of a verb, a flag, or the value of a flag that has few. Names are asked of
// the cluster, see names; files are the shell's own business.
func candidates(before []string, typed string) []string {
	if len(before) > 0 && before[0] == "help" {
		return nextWords(before[1:], typed)
	}
	v, _, ok := find(before)
	if !ok {
		words := nextWords(before, typed)
		if len(before) == 0 && strings.HasPrefix("help", typed) {
			words = append(words, "help")
		}
		return words
	}
	var words []string
	if strings.HasPrefix(typed, "-") {
		for _, f := range flagsOf(v) {
			words = append(words, "-"+f.Name)
		}
	} else {
		words = valuesOf(v, before[len(before)-1])
	}
	return slices.DeleteFunc(words, func(word string) bool { return !strings.HasPrefix(word, typed) })
}

// valuesOf lists what may stand behind the last word: the values of a flag,
// or the argument of a verb.
func valuesOf(v verb, last string) []string {
	switch v.path + " " + strings.TrimLeft(last, "-") {
	case "job init kind":
		return jobspec.SkeletonKinds()
	case "job list state":
		return strings.Split(joined(structs.JobStates()), ", ")
	case "completion completion":
		return []string{"bash", "zsh", "fish"}
	}
	return nil
}

// nextWords lists the words that go on from before to a verb.
func nextWords(before []string, typed string) []string {
	var words []string
	prefix := strings.Join(before, " ")
	for _, v := range matching(prefix) {
		word, _, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(v.path, prefix)), " ")
		if word != "" && strings.HasPrefix(word, typed) && !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return words
}

package command

import (
	"flag"
	"fmt"
	"runtime"
	"strings"

	"nomadlike/nomadlike/wire"
)

// Version is the version of this build; the linker sets it in releases.
var Version = "dev"

func otherVerbs() []verb {
	return []verb{
		{path: "version", setup: version},
		{path: "completion", args: "bash|zsh|fish", setup: completion},
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
		for _, word := range candidates(before, typed) {
			fmt.Fprintln(env.Stdout, word)
		}
		return nil
	}
}

func candidates(before []string, typed string) []string {
	var words []string
	if v, _, ok := find(before); ok {
		if strings.HasPrefix(typed, "-") {
			set := flag.NewFlagSet(v.path, flag.ContinueOnError)
			v.setup(set)
			set.VisitAll(func(f *flag.Flag) {
				if name := "-" + f.Name; strings.HasPrefix(name, typed) {
					words = append(words, name)
				}
			})
		}
		return words
	}
	prefix := strings.Join(before, " ")
	seen := make(map[string]bool)
	for _, v := range matching("") {
		rest, ok := strings.CutPrefix(v.path, prefix)
		if !ok || prefix != "" && !strings.HasPrefix(rest, " ") {
			continue
		}
		word, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
		if word != "" && strings.HasPrefix(word, typed) && !seen[word] {
			seen[word] = true
			words = append(words, word)
		}
	}
	return words
}

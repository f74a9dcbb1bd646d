package command

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
)

// help answers `nomadlike`, `nomadlike help`, `nomadlike job` and mistakes.
func (env *Env) help(args []string) int {
	asked := len(args) == 0
	var words []string
	for _, arg := range args {
		switch arg {
		case "help", "-h", "-help", "--help":
			asked = true
		default:
			words = append(words, arg)
		}
	}
	if v, rest, ok := find(words); ok && asked && len(rest) == 0 {
		env.helpVerb(v)
		return ExitOK
	}
	typed := strings.Join(words, " ")
	if group := matching(typed); len(group) > 0 {
		if asked {
			env.helpList(env.Stdout, group)
			return ExitOK
		}
		env.helpList(env.Stderr, group)
		return ExitUsage
	}
	wrong, near := suggest(words)
	hint := env.text("cli.usage.see_help")
	if group := groupOf(words); group != "" {
		hint = env.text("cli.usage.hint", "command", group)
	}
	if near != "" {
		hint = env.text("cli.did_you_mean", "name", near)
	}
	env.printError(env.text("cli.unknown_command", "command", safe(wrong)), hint)
	return ExitUsage
}

// matching lists the verbs whose path begins with the words of prefix.
func matching(prefix string) []verb {
	var group []verb
	for _, v := range verbs() {
		if !v.hidden && (prefix == "" || v.path == prefix || strings.HasPrefix(v.path, prefix+" ")) {
			group = append(group, v)
		}
	}
	return group
}

func (env *Env) helpList(on *Screen, group []verb) {
	fmt.Fprintf(on, "%s\n\n", env.text("cli.usage.main"))
	table := newTable(on, "", "")
	for _, v := range group {
		table.row("  "+v.path, env.text("cli."+key(v.path)))
	}
	table.print()
	fmt.Fprintf(on, "\n%s\n", env.text("cli.usage.more"))
}

func (env *Env) helpVerb(v verb) {
	fmt.Fprintf(env.Stdout, "%s\n\n%s\n", usage(v), env.text("cli."+key(v.path)))
	table := newTable(env.Stdout, "", "")
	for _, f := range flagsOf(v) {
		table.row("  "+f.written(), f.explained(env))
	}
	if len(table.rows) > 0 {
		fmt.Fprintln(env.Stdout)
		table.print()
	}
}

// usage is the line that shows how a verb is written.
func usage(v verb) string {
	line := "nomadlike " + v.path
	if len(flagsOf(v)) > 0 {
		line += " [FLAGS]"
	}
	if v.args != "" {
		line += " " + v.args
	}
	return line
}

// verbFlag is a flag as help and the reference page show it.
type verbFlag struct{ *flag.Flag }

// flagsOf lists the flags of a verb by name.
func flagsOf(v verb) []verbFlag {
	set := flag.NewFlagSet(v.path, flag.ContinueOnError)
	v.setup(set)
	var list []verbFlag
	set.VisitAll(func(f *flag.Flag) { list = append(list, verbFlag{f}) })
	return list
}

// written is the flag with the kind of its value.
func (f verbFlag) written() string {
	return strings.TrimSpace("-" + f.Name + " " + valueKind(f.Flag))
}

// explained says what the flag does, and what holds without it.
func (f verbFlag) explained(env *Env) string {
	text := env.text(f.Usage)
	switch f.DefValue {
	case "", "0", "-1", "false":
		return text
	}
	return env.text("cli.usage.default", "text", text, "value", f.DefValue)
}

// key turns a path into a part of a message id.
func key(path string) string {
	return strings.NewReplacer(" ", ".", "-", "_").Replace(path)
}

// elsewhere are words of Slurm, Kubernetes and Nomad, and what they are called
// here: whole commands, or the second word of one.
var elsewhere = map[string][]string{
	"sbatch": {"job run"}, "srun": {"job run"}, "squeue": {"queue"}, "scancel": {"job stop"}, "sinfo": {"node status"}, "sacct": {"job list"}, "salloc": {"job run"},
	"list": {"status"}, "ls": {"list", "status"}, "get": {"status", "list"}, "info": {"status"}, "show": {"status", "inspect"}, "describe": {"status", "inspect"},
	"cancel": {"stop"}, "kill": {"stop"}, "delete": {"remove"}, "rm": {"delete", "remove"}, "submit": {"run"}, "dispatch": {"run"}, "log": {"logs"}, "eligibility": {"cordon"},
	"port-forward": {"job forward", "forward"}, "tunnel": {"job forward", "forward"},
}

// elsewhereCalled returns the verb whose name in another system was typed, or "".
func elsewhereCalled(words []string) string {
	is := func(path string) bool {
		return slices.ContainsFunc(matching(path), func(v verb) bool { return v.path == path })
	}
	for _, path := range elsewhere[words[0]] {
		if is(path) {
			return path
		}
	}
	if len(words) > 1 {
		for _, word := range elsewhere[words[1]] {
			if path := words[0] + " " + word; is(path) {
				return path
			}
		}
	}
	return ""
}

// suggest finds what of the words names no verb, and the verb that was
// probably meant: one whose last word was typed alone ("logs" for "job logs"),
// or one that is written nearly the same.
func suggest(words []string) (wrong, near string) {
	words = beforeFlags(words)
	paths := make(map[int][]string) // by number of words
	ends := make(map[string]string) // path by its last word
	longest := 0
	for _, v := range matching("") {
		parts := strings.Fields(v.path)
		longest = max(longest, len(parts))
		paths[len(parts)] = append(paths[len(parts)], v.path)
		if last := parts[len(parts)-1]; ends[last] == "" {
			ends[last] = v.path
		}
	}
	if len(words) > 0 && ends[words[0]] != "" {
		return words[0], ends[words[0]]
	}
	known := len(strings.Fields(groupOf(words)))
	if len(words) > known {
		if path := elsewhereCalled(words); path != "" {
			return strings.Join(words[:known+1], " "), path
		}
	}
	if known > 0 && known < len(words) && ends[words[known]] != "" {
		return strings.Join(words[:known+1], " "), ends[words[known]] // right word, wrong group
	}
	for n := min(longest, len(words)); n > known; n-- {
		typed := strings.Join(words[:n], " ")
		if found := nearest(typed, paths[n]); found != "" {
			return typed, found
		}
	}
	if known > 0 {
		return strings.Join(words[:min(known+1, len(words))], " "), ""
	}
	if len(words) > 0 {
		if found := nearest(words[0], slices.Collect(maps.Keys(ends))); found != "" {
			return words[0], ends[found]
		}
	}
	return strings.Join(words[:min(2, len(words))], " "), ""
}

// groupOf returns the most of the first words that begin the paths of verbs
// ("job" of "job events"), or "".
func groupOf(words []string) string {
	words = beforeFlags(words)
	for n := len(words); n > 0; n-- {
		if group := strings.Join(words[:n], " "); len(matching(group)) > 0 {
			return group
		}
	}
	return ""
}

// beforeFlags cuts off what follows the words of a command.
func beforeFlags(words []string) []string {
	for n, word := range words {
		if n > 0 && strings.HasPrefix(word, "-") {
			return words[:n]
		}
	}
	return words
}

// nearest returns the candidate with the smallest edit distance to typed, or ""
// when none is near enough to be a slip.
func nearest(typed string, candidates []string) string {
	sorted := slices.Clone(candidates)
	sort.Strings(sorted)
	best, limit := "", min(max(2, len(typed)/3)+1, len(typed)) // of a slip something is left
	for _, candidate := range sorted {
		if d := distance(typed, candidate, limit); d < limit {
			best, limit = candidate, d
		}
	}
	return best
}

// distance is the number of bytes to insert, delete, replace or swap with
// their neighbour to make b of a; anything from limit on is as good as limit.
func distance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j-1]+cost, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return min(last[len(b)], limit)
}

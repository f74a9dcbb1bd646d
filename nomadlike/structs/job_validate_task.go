package structs

import (
	"errors"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

func (v *validator) task(j *Job) {
	t := &j.Task
	if !ExternalDriver(t.Driver) {
		v.choice("task.driver", t.Driver, false, DriverExec, DriverDocker)
	}
	v.image(t)
	if everySubtaskHasCommand(j.Batch) && t.Command == "" {
		// each sub-task brings its own
	} else if t.Command == "" {
		v.add("task.command", "job.missing", "job.command.missing.hint")
	} else if v.command("task.command", t.Command) {
		v.inlineScript(j)
	}
	if t.Arguments != "" {
		v.arguments("task.arguments", t.Arguments)
	}
	if t.Dir != "" {
		v.directory("task.dir", t.Dir)
	}
	v.env("task.env", t.Env)
	v.secrets(t)
	if t.User != "" && !userName(t.User) {
		v.add("task.user", "job.user", "", "user", t.User)
	}
	if len(t.Hooks) > HooksMax {
		v.add("task.hook", "job.too_many", "", "what", "hook", "count", len(t.Hooks), "max", HooksMax)
	} else {
		for i, hook := range t.Hooks {
			at := IndexedPath("task.hook", i)
			v.choice(at+".when", hook.When, false, HookPrestart, HookPoststart, HookPrestop, HookPoststop)
			v.span(at+".timeout", hook.Timeout, 0, HookTimeoutMax)
			v.command(at+".command", hook.Command)
		}
	}
	v.ulimits(t.Ulimits)
	v.options(t)
	if logs := t.Logs; logs != nil {
		if logs.FileSizeMax != 0 {
			v.size("task.logs.file_size_max", logs.FileSizeMax, LogFileMin, LogFileMax)
		}
		v.integer("task.logs.files", logs.Files, 0, LogFilesMax)
	}
}

// driverNameMax bounds the name of a driver, which is a file name.
const driverNameMax = 32

// ExternalDriver reports whether name may be that of a driver which nodes load
// from their plugin_dir: 1 to 32 lower-case letters, digits, '_' and '-', and
// nothing that is more likely a mistyped exec or docker. Only the nodes know
// whether there is such a driver: a job that names it waits for one. Pure.
func ExternalDriver(name string) bool {
	builtin := []string{DriverExec, DriverDocker}
	if name == "" || len(name) > driverNameMax || slices.Contains(builtin, name) || Nearest(name, builtin) != "" {
		return false
	}
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") == ""
}

// ulimits checks limits of processes. What a node allows of them, it says
// itself.
func (v *validator) ulimits(limits map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		switch {
		case len(name) > WordMax || len(limits[name]) > WordMax:
			v.add("task.ulimits", "job.too_long", "", "length", max(len(name), len(limits[name])), "max", WordMax)
		case !slices.Contains(UlimitNames(), name):
			v.add(KeyedPath("task.ulimits", name), "job.ulimit_name", "job.ulimit_name.hint", "name", name, "names", strings.Join(UlimitNames(), ", "))
		default:
			if _, _, err := ParseUlimit(name, limits[name]); err != nil {
				v.add(KeyedPath("task.ulimits", name), "job.ulimit", "job.ulimit.hint", "name", name, "value", limits[name])
			}
		}
	}
}

// options checks the settings of the container engine; which of them there are, and
// which are allowed, the node knows.
func (v *validator) options(t *Task) {
	switch {
	case len(t.Options) > 0 && t.Driver != DriverDocker:
		v.add("task.options", "job.options_driver", "", "driver", t.Driver)
		return
	case len(t.Options) > OptionsMax:
		v.add("task.options", "job.too_many", "", "what", "options", "count", len(t.Options), "max", OptionsMax)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(t.Options)) {
		value := t.Options[name]
		switch {
		case name == "" || len(name) > WordMax || len(value) > WordMax:
			v.add("task.options", "job.too_long", "", "length", max(len(name), len(value)), "max", WordMax)
		case name == OptionEntrypoint && value != OptionEntrypointImage:
			v.choice(KeyedPath("task.options", name), value, false, OptionEntrypointImage)
		}
	}
}

func everySubtaskHasCommand(b *Batch) bool {
	if b == nil || len(b.Subtasks) == 0 {
		return false
	}
	return !slices.ContainsFunc(b.Subtasks, func(s BatchSubtask) bool { return s.Command == "" })
}

func (v *validator) image(t *Task) {
	switch {
	case t.Driver == DriverDocker && t.Image == "":
		v.add("task.image", "job.image_missing", "")
	case t.Driver == DriverExec && t.Image != "":
		v.add("task.image", "job.image_exec", "job.image_exec.hint")
	case t.Image != "" && v.word("task.image", t.Image, WordMax) && strings.ContainsAny(t.Image, " \t"):
		v.add("task.image", "job.blank", "")
	case strings.HasPrefix(t.Image, "-"):
		v.add("task.image", "job.image_option", "", "image", t.Image)
	}
	if t.Driver == DriverExec && t.Pull != "" {
		v.add("task.pull", "job.image_exec", "job.image_exec.hint")
		return
	}
	v.choice("task.pull", t.Pull, t.Driver != DriverDocker, PullAlways, PullMissing, PullNever)
}

// userName reports whether text may name a user of a node, or its number with
// an optional group: li, www-data, 1000, 1000:100.
func userName(text string) bool {
	const userNameMax = 32
	user, group, found := strings.Cut(text, ":")
	if found && group == "" {
		return false
	}
	for _, part := range []string{user, group} {
		if len(part) > userNameMax || strings.HasPrefix(part, "-") {
			return false
		}
		for i := 0; i < len(part); i++ {
			c := lowerASCII(part[i])
			if (c < 'a' || c > 'z') && (c < '0' || c > '9') && strings.IndexByte("-_.", c) < 0 {
				return false
			}
		}
	}
	return user != ""
}

// directory checks an absolute path on a node or in a task.
func (v *validator) directory(at, directory string) bool {
	if !v.word(at, directory, PathMax) {
		return false
	}
	if !path.IsAbs(directory) || path.Clean(directory) != strings.TrimSuffix(directory, "/") && directory != "/" {
		v.add(at, "job.directory", "", "value", directory)
		return false
	}
	return true
}

// command checks one command line by the rules of row 70 to 72: it starts
// with an executable and is one statement, because no shell reads it. It
// reports whether the command is fine.
func (v *validator) command(at, command string) bool {
	if strings.Trim(command, " \t\r\n") == "" {
		v.add(at, "job.command.missing", "")
		return false
	}
	return v.words(at, command, true)
}

// arguments checks words that follow a command: they are of the same statement, and
// the first one is nothing special.
func (v *validator) arguments(at, arguments string) { v.words(at, arguments, false) }

// words checks a command line, or the rest of one. It reports whether it is fine.
func (v *validator) words(at, command string, whole bool) bool {
	if !v.text(at, command, CommandMax) {
		return false
	}
	scan, err := scanCommand(command, nil)
	switch {
	case errors.Is(err, ErrQuoteOpen):
		v.add(at, "job.command.quote", "job.command.quote.hint")
		return false
	case err != nil:
		v.add(at, "job.command.backslash", "")
		return false
	}
	before := len(v.problems)
	hint, rewrite := shellHint(command, scan)
	first := ""
	if len(scan.words) > 0 {
		first = scan.words[0].text
	}
	switch {
	case !whole:
	case first == "":
		v.add(at, "job.command.missing", "")
		return false
	case assignment(first):
		v.add(at, "job.command.assignment", assignmentHint(hint), "assignment", first, "rewrite", rewrite)
	case shellOnly(first):
		v.add(at, "job.command.builtin", hint, "word", first, "rewrite", rewrite)
	case first[0] == '-':
		v.add(at, "job.command.option", "", "word", first)
	}
	switch {
	case scan.substitution != "":
		v.add(at, "job.command.substitution", hint, "operator", scan.substitution, "rewrite", rewrite)
	case scan.statement != "":
		v.add(at, "job.command.statements", hint, "operator", scan.statement, "rewrite", rewrite)
	case scan.redirect != "":
		v.add(at, "job.command.redirect", hint, "operator", scan.redirect, "rewrite", rewrite)
	case scan.expansion != "":
		v.add(at, "job.command.expansion", hint, "rewrite", rewrite)
	}
	return len(v.problems) == before
}

// assignment reports whether a word has the form KEY=VALUE.
func assignment(word string) bool {
	end := nameEnd(word)
	return end > 0 && end < len(word) && word[end] == '='
}

// shellOnly reports whether a word is known to shells alone: no such program
// can be executed.
func shellOnly(word string) bool {
	switch word {
	case ".", "source", "cd", "export", "unset", "set", "alias", "ulimit", "umask", "exec", "eval", "trap", "pushd", "popd",
		"if", "for", "while", "until", "case", "function", "{", "!", "[[":
		return true
	}
	return false
}

// inlineScript refuses `python -c` where the launch line of mode pytorch would
// be put around it on several nodes: there is no script to hand on. An
// interpreter by its path stays as typed there, so it may run what it likes.
func (v *validator) inlineScript(j *Job) {
	if j.Distributed.Mode != ModePyTorch || j.Distributed.Rewrite == RewriteNone || j.Nodes < 2 {
		return
	}
	words, err := SplitCommand(j.Task.Command)
	if err != nil || len(words) == 0 || !isPython(words[0]) {
		return
	}
	for _, word := range words[1:] {
		if word == "-c" {
			v.add("task.command", "job.command.inline", "job.command.inline.hint")
			return
		}
		if !strings.HasPrefix(word, "-") || word == "-m" {
			return // the script or module; what follows is its own
		}
	}
}

// isPython reports whether a word names a Python interpreter, with its version
// perhaps and without a path: python, python3.11. Such a command may be rewritten.
func isPython(word string) bool {
	version, found := strings.CutPrefix(word, "python")
	return found && strings.Trim(version, "0123456789.") == ""
}

// env checks variables: their names and sizes, and that none takes a name that
// the system gives a meaning of its own in this job.
func (v *validator) env(at string, env map[string]string) {
	if len(env) > EnvMax {
		v.add(at, "job.too_many", "", "what", "env", "count", len(env), "max", EnvMax)
		return
	}
	size := 0
	for _, name := range slices.Sorted(maps.Keys(env)) {
		path := KeyedPath(at, name)
		size += len(name) + len(env[name])
		if name == "" || len(name) > WordMax || nameEnd(name) != len(name) {
			v.add(path, "job.env_name", "", "name", strconv.Quote(name))
			continue
		}
		if env[name] == Hidden {
			v.add(path, "job.hidden", "job.hidden.hint", "name", name)
			continue
		}
		v.text(path, env[name], EnvValueMax)
		if v.mode.Reserves(name) {
			v.add(path, "job.env_reserved", reservedHint(name), "name", name, "mode", v.mode)
		}
	}
	if size > EnvSizeMax {
		v.add(at, "job.too_long", "", "length", size, "max", EnvSizeMax)
	}
}

package launch

import (
	"path"
	"slices"
	"strings"
)

// launchers of processes that a pytorch command may bring itself: such a
// command is left as typed. The first two are module names.
func pytorchLaunchers() []string {
	return []string{
		"torch.distributed.launch", "torch.distributed.run",
		"torchrun", "accelerate", "deepspeed", "horovodrun", "mpirun", "mpiexec", "msrun",
	}
}

// mpiLaunchers are the programs that start the processes of an MPI job.
func mpiLaunchers() []string {
	return []string{"mpirun", "mpiexec", "orterun", "prterun", "horovodrun", "deepspeed"}
}

// findLauncher looks for one of names among the words of a command. A word
// matches as a program (its base name, with or without a variant as in
// mpiexec.hydra) or as the module of python's -m, which may be one inside of the
// launcher's package: accelerate.commands.launch. When none does, substring
// reports which name is merely contained in some word: the rule of older
// platforms, on which a path such as /data/mpirun_logs counted.
func findLauncher(words, names []string) (found, substring string) {
	module := ""
	if isPython(path.Base(words[0])) {
		module = readPython(words).module
	}
	for _, word := range words {
		base := path.Base(word)
		program, _, _ := strings.Cut(base, ".")
		for _, name := range names {
			if base == name || program == name && launcherVariant(base) || moduleOf(name, module) {
				return name, ""
			}
			if substring == "" && strings.Contains(word, name) {
				substring = name
			}
		}
	}
	return "", substring
}

// moduleOf reports whether a module is a launcher's own, or one of its package.
func moduleOf(launcher, module string) bool {
	rest, ok := strings.CutPrefix(module, launcher)
	return ok && (rest == "" || rest[0] == '.')
}

// launcherVariant reports whether what follows the first dot of a program's name
// is a flavour (mpirun.openmpi, mpiexec.hydra) and not the ending of a file.
func launcherVariant(base string) bool {
	_, variant, ok := strings.Cut(base, ".")
	if !ok {
		return false
	}
	return slices.Contains([]string{"openmpi", "mpich", "hydra", "lam", "mvapich2", "intel"}, variant)
}

// pythonCall is a command `python [flags] script|-m module|-c code …`.
type pythonCall struct {
	python string
	flags  []string // in front of the script, without -m
	module string
	code   bool     // python -c
	script bool     // words[0] of rest is a script
	rest   []string // script and its arguments, or the module's arguments
}

// isPython reports whether word starts a command that may be rewritten: python,
// python3 or python3.11, and not a path: that is one way to keep a command as
// it is.
func isPython(word string) bool {
	rest, ok := strings.CutPrefix(word, "python")
	return ok && strings.Trim(rest, "0123456789.") == ""
}

// readPython takes a python command apart as the interpreter would.
func readPython(words []string) pythonCall {
	call := pythonCall{python: words[0]}
	for i := 1; i < len(words); i++ {
		word := words[i]
		if word == "-" || !strings.HasPrefix(word, "-") {
			call.script = word != "-"
			call.rest = words[i:]
			return call
		}
		if strings.HasPrefix(word, "--") {
			call.flags = append(call.flags, word)
			if word == "--check-hash-based-pycs" && i+1 < len(words) {
				i++
				call.flags = append(call.flags, words[i])
			}
			continue
		}
		// Letters may be joined, and the last may have its value joined: -um mod, -Wignore.
		for k := 1; k < len(word); k++ {
			letter, value := word[k], word[k+1:]
			if !strings.ContainsRune("cmWX", rune(letter)) {
				continue
			}
			next := i + 1
			if value == "" && next < len(words) {
				value = words[next]
				next++
			}
			switch letter {
			case 'c':
				call.code = true
				return call
			case 'm':
				if k > 1 {
					call.flags = append(call.flags, word[:k])
				}
				call.module, call.rest = value, words[next:]
				return call
			}
			call.flags = append(call.flags, words[i:next]...)
			i = next - 1
			word = ""
		}
		if word != "" {
			call.flags = append(call.flags, word)
		}
	}
	return call
}

// under returns the command that runs the call's program under a module which
// takes options, as torch.distributed.launch does.
func (c pythonCall) under(module string, options []string) []string {
	words := append([]string{c.python}, c.flags...)
	words = append(words, "-m", module)
	words = append(words, options...)
	if c.module != "" {
		words = append(words, "-m", c.module)
	}
	return append(words, c.rest...)
}

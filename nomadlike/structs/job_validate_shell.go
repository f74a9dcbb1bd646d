package structs

import (
	"path"
	"slices"
	"strings"
)

// This file knows the shells that a command starts by itself: which word is
// theirs to read, and how a command is written so that one reads it.

// shellPart reports where in the call of a shell a reader is.
type shellPart uint8

const (
	shellNone    shellPart = iota // no shell was named
	shellOptions                  // between the shell and its -c
	shellOption                   // an option that takes a word, as in -o pipefail, before -c
	shellNext                     // after -c: further options, then the command word
	shellCommand                  // in the command word, which the shell reads
)

// isShell reports whether a word names a shell, with or without a path.
func isShell(word string) bool {
	switch path.Base(word) {
	case "sh", "bash", "dash", "ash", "ksh", "zsh":
		return true
	}
	return false
}

// beginShell notes at the beginning of a word whether it is a shell's own.
func (r *commandReader) beginShell() {
	if r.shell == shellNext && r.command[r.at] != '-' && r.command[r.at] != '+' {
		r.shell = shellCommand
		r.scan.shellWords = append(r.scan.shellWords, len(r.scan.words))
	}
}

// endShell takes note of a word that has been read. A shell may stand behind
// what starts it: env, nohup, mpirun.
func (r *commandReader) endShell(word string) {
	option := len(word) > 1 && (word[0] == '-' || word[0] == '+')
	switch {
	case r.shell == shellCommand:
		r.shell = shellNone
	case r.shell == shellOption:
		r.shell = shellOptions
	case r.shell == shellNext:
	case r.shell == shellOptions && option:
		switch {
		case word == "--rcfile" || word == "--init-file":
			r.shell = shellOption
		case strings.HasPrefix(word, "--"):
		case word[0] == '-' && strings.Contains(word, "c"):
			r.shell = shellNext
		case strings.HasSuffix(word, "o") || strings.HasSuffix(word, "O"):
			r.shell = shellOption
		}
	case isShell(word):
		r.shell = shellOptions
	default:
		r.shell = shellNone
	}
}

// shellHint reports how a command that only a shell understands is given to one:
// the message, and the line of a job file that a person may paste.
func shellHint(command string, scan *commandScan) (hint, line string) {
	command = strings.TrimSpace(command)
	switch {
	case len(scan.shellWords) == 0:
		return "job.command.shell.hint", commandLine("bash -c " + shellWord(command))
	case len(scan.words) > 0 && assignment(scan.words[0].text) && scan.substitution+scan.statement+scan.redirect+scan.expansion+scan.glob == "":
		return "job.command.shell.hint", commandLine("env " + command)
	}
	// A shell in a shell would read the same words twice, so nothing is wrapped
	// again: where the rest belongs within the quotes only its writer knows.
	return "job.command.inside.hint", ""
}

// assignmentHint is the hint for a command that begins with KEY=VALUE.
func assignmentHint(hint string) string {
	if hint == "job.command.shell.hint" {
		return "job.command.assignment.hint"
	}
	return hint
}

// shellWord quotes a command as one word, so that a shell and SplitCommand read
// it alike, in the quotes that need the least within.
func shellWord(command string) string {
	if !strings.Contains(command, "'") {
		return "'" + command + "'"
	}
	if !strings.ContainsAny(command, "$`!") {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(command) + `"`
	}
	return "'" + strings.ReplaceAll(command, "'", `'\''`) + "'"
}

// commandLine is the line of a job file that sets a command.
func commandLine(command string) string {
	return `command = "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`, "${", "$${", "%{", "%%{").Replace(command) + `"`
}

// WordsInside is words and, when they start a shell, the words inside of what
// the shell is told to run, parted roughly: only to look for names in them.
func WordsInside(words []string) []string {
	if len(words) == 0 || !isShell(words[0]) {
		return words
	}
	all := slices.Clone(words)
	for _, word := range words[1:] {
		all = append(all, strings.FieldsFunc(word, func(r rune) bool {
			return strings.ContainsRune(" \t\r\n;&|()<>'\"`", r)
		})...)
	}
	return all
}

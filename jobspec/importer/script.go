package importer

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"nomadlike/nomadlike/structs"
)

// script is what a batch script runs: its text, the commands in it, and what is to
// be changed of it.
type script struct {
	text     string
	program  string // the interpreter, as its first line names it
	login    bool   // it asks for a login shell
	file     *syntax.File
	commands []command
	edits    []edit
	preamble []string
}

// command is one simple command of a script.
type command struct {
	call   *syntax.CallExpr
	words  []word
	line   int
	inside bool // of $(…), whose output is used
	behind bool // runs in the background
}

// word is one word of a command.
type word struct {
	text    string // as it is written, quotes resolved where nothing is replaced
	literal bool   // nothing of it is replaced
	from    int    // bytes of the script
	to      int
}

// edit puts a text in the place of a part of the script.
type edit struct {
	from, to int
	text     string
}

// replace changes a part of the script. Parts that overlap are changed once: the
// wider one counts.
func (s *script) replace(from, to int, text string) {
	s.edits = append(s.edits, edit{from, to, text})
}

// result is the script with its changes.
func (s *script) result() string {
	slices.SortStableFunc(s.edits, func(a, b edit) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to)) })
	var b strings.Builder
	at := 0
	for _, e := range s.edits {
		if e.from < at {
			continue
		}
		b.WriteString(s.text[at:e.from])
		b.WriteString(e.text)
		at = e.to
	}
	b.WriteString(s.text[at:])
	return b.String()
}

// scriptMax bounds what is looked at as a shell would.
const scriptMax = 256 << 10

// newScript reads a script; problem is why a shell could not.
func newScript(text string) (s *script, problem string) {
	s = &script{text: text, program: "bash"}
	if first, _, _ := strings.Cut(text, "\n"); strings.HasPrefix(first, "#!") {
		s.interpreter(strings.Fields(first[2:]))
	}
	if !shells[s.program] {
		return s, ""
	}
	if len(text) > scriptMax {
		return s, "too long"
	}
	// The parser has panicked before on what a fuzzer wrote.
	defer func() {
		if recover() != nil {
			s.file, s.commands, problem = nil, nil, "unreadable"
		}
	}()
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return s, err.Error()
	}
	s.file = file
	s.collect()
	return s, ""
}

// shells are the interpreters whose scripts can be read here.
var shells = map[string]bool{"sh": true, "bash": true, "dash": true, "ash": true, "ksh": true, "zsh": true}

// interpreter reads the first line of a script.
func (s *script) interpreter(words []string) {
	if len(words) > 0 && path.Base(words[0]) == "env" {
		words = words[1:]
		for len(words) > 0 && strings.HasPrefix(words[0], "-") {
			words = words[1:]
		}
	}
	if len(words) == 0 {
		return
	}
	s.program = path.Base(words[0])
	for _, option := range words[1:] {
		s.login = s.login || option == "--login" || strings.HasPrefix(option, "-") && !strings.HasPrefix(option, "--") && strings.Contains(option, "l")
	}
}

// collect lists the simple commands.
func (s *script) collect() {
	behind := make(map[*syntax.CallExpr]bool)
	inside := make(map[*syntax.CallExpr]bool)
	syntax.Walk(s.file, func(node syntax.Node) bool {
		switch n := node.(type) {
		case *syntax.Stmt:
			if call, ok := n.Cmd.(*syntax.CallExpr); ok && n.Background {
				behind[call] = true
			}
		case *syntax.CmdSubst:
			syntax.Walk(n, func(within syntax.Node) bool {
				if call, ok := within.(*syntax.CallExpr); ok {
					inside[call] = true
				}
				return true
			})
		case *syntax.CallExpr:
			one := command{call: n, line: int(n.Pos().Line())}
			for _, arg := range n.Args {
				text, whole := literalOf(arg)
				from, to := int(arg.Pos().Offset()), int(arg.End().Offset())
				if !whole {
					text = s.text[from:to]
				}
				one.words = append(one.words, word{text, whole, from, to})
			}
			s.commands = append(s.commands, one)
		}
		return true
	})
	for i := range s.commands {
		s.commands[i].behind, s.commands[i].inside = behind[s.commands[i].call], inside[s.commands[i].call]
	}
}

// literalOf returns the text of a word, and whether nothing of it is replaced.
func literalOf(w *syntax.Word) (string, bool) {
	var b strings.Builder
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			b.WriteString(unescaped(p.Value))
		case *syntax.SglQuoted:
			if p.Dollar {
				return "", false
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			for _, inner := range p.Parts {
				lit, ok := inner.(*syntax.Lit)
				if !ok || strings.Contains(lit.Value, `\`) {
					return "", false
				}
				b.WriteString(lit.Value)
			}
		default:
			return "", false
		}
	}
	return b.String(), true
}

// unescaped resolves backslashes outside of quotes.
func unescaped(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			i++
			if text[i] == '\n' {
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// plain is the script as one command without a shell, when it is no more than
// that.
func plain(text string) (string, bool) {
	file, err := func() (f *syntax.File, err error) {
		defer func() {
			if recover() != nil {
				f = nil
			}
		}()
		return syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	}()
	if err != nil || file == nil || len(file.Stmts) != 1 {
		return "", false
	}
	stmt := file.Stmts[0]
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	if !ok || stmt.Background || stmt.Negated || stmt.Coprocess || len(stmt.Redirs) > 0 || len(call.Assigns) > 0 || len(call.Args) == 0 {
		return "", false
	}
	words := make([]string, len(call.Args))
	for i, arg := range call.Args {
		text, whole := literalOf(arg)
		if !whole || globs(arg) {
			return "", false
		}
		words[i] = text
	}
	if builtins[words[0]] || strings.ContainsAny(strings.Join(words, " "), "\n") {
		return "", false
	}
	return structs.JoinCommand(words), true
}

// globs reports whether a shell would look for files, or read more than is written.
func globs(w *syntax.Word) bool {
	for _, part := range w.Parts {
		if lit, ok := part.(*syntax.Lit); ok && strings.ContainsAny(lit.Value, "*?[]{}~") {
			return true
		}
	}
	return false
}

// builtins are words that only a shell knows, or that need one.
var builtins = func() map[string]bool {
	set := make(map[string]bool)
	for _, name := range strings.Fields(": . source cd export unset set alias ulimit umask exec eval trap pushd popd shopt declare local readonly wait read exit return module ml conda mamba command builtin") {
		set[name] = true
	}
	return set
}()

// comments are the lines of comments of a text that is one command besides.
func comments(text string) []string {
	var lines []string
	for _, line := range strings.Split(text, "\n") {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "#"); ok && !strings.HasPrefix(rest, "!") && strings.Trim(rest, " #-=*") != "" {
			lines = append(lines, strings.TrimSpace(rest))
		}
	}
	return lines
}

// shellCommand is a command that has a shell run a script.
func shellCommand(program string, options []string, script string) string {
	words := append([]string{program}, options...)
	return strings.Join(words, " ") + " '" + strings.ReplaceAll(script, "'", `'\''`) + "'"
}

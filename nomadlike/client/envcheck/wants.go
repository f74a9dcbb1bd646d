package envcheck

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Bounds of what is read of a script.
const (
	scriptMax = 64 << 10 // bytes
	nestedMax = 4        // scripts in scripts
	wantedMax = 64       // names
)

// shellsOwn are the variables that shells set themselves.
var shellsOwn = strings.Fields(`_ COLUMNS DIRSTACK EPOCHREALTIME EPOCHSECONDS EUID FUNCNAME GROUPS HISTCMD HOME HOSTNAME HOSTTYPE IFS LINENO LINES
	MACHTYPE OLDPWD OPTARG OPTERR OPTIND OSTYPE PATH PIPESTATUS PPID PS1 PS2 PS4 PWD RANDOM REPLY SECONDS SHELL SHELLOPTS SHLVL SRANDOM UID`)

// IsShell reports whether a program is a shell that takes a script after -c.
func IsShell(program string) bool {
	return slices.Contains([]string{"sh", "bash", "dash", "ash"}, path.Base(program))
}

// Wants returns the variables that the script of a command such as `bash -c '…'`
// needs from its environment, in the order of their first use: it reads them
// without a default, and neither sets nor tests them. Nil for a command that is no
// shell with a script, and for a script that cannot be known: one that does not
// parse, or that has another file or a text evaluated in itself. What is wanted
// may be set all the same; whether it is, the environment says.
func Wants(command []string) []string {
	script, ok := scriptOf(command)
	if !ok {
		return nil
	}
	r := &reading{known: make(map[string]bool)}
	if !r.script(script, 0) || r.unknown {
		return nil
	}
	wanted := slices.DeleteFunc(r.read, func(name string) bool {
		return r.known[name] || slices.Contains(shellsOwn, name) || strings.HasPrefix(name, "BASH")
	})
	return wanted[:min(len(wanted), wantedMax)]
}

// scriptOf returns the script of a command of a shell: the word after its options,
// of which one has a c.
func scriptOf(command []string) (string, bool) {
	if len(command) < 3 || !IsShell(command[0]) {
		return "", false
	}
	asked := false
	for i := 1; i < len(command); i++ {
		word := command[i]
		switch {
		case strings.HasPrefix(word, "--") && len(word) > 2: // --login, --norc
		case len(word) > 1 && (word[0] == '-' || word[0] == '+'):
			asked = asked || word[0] == '-' && strings.Contains(word, "c")
			if strings.HasSuffix(word, "o") { // -o pipefail
				i++
			}
		default:
			return word, asked
		}
	}
	return "", false
}

// reading is what is found in a script.
type reading struct {
	read    []string        // in the order of their first use, each once
	known   map[string]bool // set or tested by the script
	unknown bool            // it has something evaluated that is not seen
}

// script reads one script, and reports whether it could be.
func (r *reading) script(text string, depth int) (ok bool) {
	if len(text) > scriptMax || depth > nestedMax {
		return false
	}
	// A user wrote the text, and the parser has panicked before on what a fuzzer wrote.
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return false
	}
	ok = true
	syntax.Walk(file, func(node syntax.Node) bool {
		switch n := node.(type) {
		case *syntax.ParamExp:
			r.param(n)
		case *syntax.Assign:
			r.knows(n.Name)
			if n.Naked && n.Name == nil {
				r.declares(n.Value)
			}
		case *syntax.Redirect: // exec {FD}>file sets FD
			if n.N != nil {
				r.known[strings.Trim(n.N.Value, "{}")] = true
			}
		case *syntax.CoprocClause:
			r.known["COPROC"] = true
			if n.Name != nil {
				r.known[n.Name.Lit()] = true
			}
		case *syntax.WordIter:
			r.knows(n.Name)
		case *syntax.TestClause:
			r.tests(n)
		case *syntax.ArithmCmd, *syntax.ArithmExp, *syntax.LetClause, *syntax.CStyleLoop: // there, what is not set is 0
			r.counts(n)
		case *syntax.CallExpr:
			ok = r.call(n, depth) && ok
		}
		return true
	})
	return ok
}

func (r *reading) knows(name *syntax.Lit) {
	if name != nil {
		r.known[name.Value] = true
	}
}

// declares notes what a word behind export, declare and the like sets that is no
// plain assignment: "NAME=$value", or $(cat .env), of which nothing is known.
func (r *reading) declares(word *syntax.Word) {
	if word == nil {
		return
	}
	text, whole := literal(word)
	name, _, assigns := strings.Cut(text, "=")
	if !assigns && !whole {
		r.unknown = true
		return
	}
	r.known[name] = true // an option is nobody's name
}

// param notes a variable that is read, or that has a default.
func (r *reading) param(p *syntax.ParamExp) {
	if p.Param == nil || !syntax.ValidName(p.Param.Value) {
		return
	}
	name := p.Param.Value
	switch {
	case p.Exp != nil && defaulted(p.Exp.Op):
		r.known[name] = true // the script bears that it is not set
	case p.Excl, p.IsSet: // whose value is a name, and what asks whether it is set
		r.known[name] = true
	case !slices.Contains(r.read, name):
		r.read = append(r.read, name)
	}
}

// defaulted reports whether an operator says what is done without a value.
func defaulted(op syntax.ParExpOperator) bool {
	switch op {
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull, syntax.DefaultUnset, syntax.DefaultUnsetOrNull,
		syntax.ErrorUnset, syntax.ErrorUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
		return true
	}
	return false
}

// tests notes that the script looks itself whether variables are set.
func (r *reading) tests(node syntax.Node) {
	syntax.Walk(node, func(inner syntax.Node) bool {
		switch n := inner.(type) {
		case *syntax.ParamExp:
			if n.Param != nil {
				r.known[n.Param.Value] = true
			}
		case *syntax.UnaryTest: // -v NAME
			if word, ok := n.X.(*syntax.Word); ok {
				r.known[word.Lit()] = true
			}
		}
		return true
	})
}

// counts notes the variables that arithmetic names.
func (r *reading) counts(node syntax.Node) {
	syntax.Walk(node, func(inner syntax.Node) bool {
		if word, ok := inner.(*syntax.Word); ok {
			r.known[word.Lit()] = true
		}
		return true
	})
}

// call looks at a command of the script: those that set or test variables, and
// those that have something evaluated.
func (r *reading) call(call *syntax.CallExpr, depth int) bool {
	if len(call.Args) == 0 {
		return true
	}
	words := make([]string, len(call.Args))
	for i, arg := range call.Args {
		if text, whole := literal(arg); whole {
			words[i] = text
		}
	}
	for slices.Contains([]string{"builtin", "command", "exec"}, words[0]) && len(words) > 1 {
		words = words[1:]
		for len(words) > 1 && (words[0] == "-p" || words[0] == "--") {
			words = words[1:]
		}
	}
	switch program := words[0]; program {
	case ".", "source", "eval":
		r.unknown = true
	case "[", "test":
		r.tests(call)
	case "read", "mapfile", "readarray", "getopts", "unset", "wait", "printf":
		for _, word := range words[1:] {
			if syntax.ValidName(word) {
				r.known[word] = true
			}
		}
	default:
		if script, ok := scriptOf(words); ok {
			return r.script(script, depth+1)
		}
	}
	return true
}

// literal returns the text of a word, and whether nothing of it is replaced; of
// others what stands before that.
func literal(word *syntax.Word) (string, bool) {
	text := ""
	for _, part := range word.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			text += p.Value
		case *syntax.SglQuoted:
			text += p.Value
		case *syntax.DblQuoted:
			for _, inner := range p.Parts {
				lit, ok := inner.(*syntax.Lit)
				if !ok {
					return text, false
				}
				text += lit.Value
			}
		default:
			return text, false
		}
	}
	return text, true
}

package structs

import (
	"errors"
	"strings"
)

// What keeps a command from being split into words.
var (
	ErrQuoteOpen      = errors.New("a quote is not closed")            // is returned for: echo "a
	ErrBackslashLast  = errors.New("a backslash stands at the end")    // is returned for: echo \
	ErrCommandNUL     = errors.New("the command contains a NUL byte")  // is returned for bytes that no process can receive
	ErrExpansionShape = errors.New("only $NAME and ${NAME} are known") // is returned by ExpandCommand for ${NAME:-x} and the like
)

// SplitCommand parts a command into words as a POSIX shell would: blanks
// separate, '…' takes everything as it is, "…" lets \ escape $, `, ", \ and
// the end of the line, and \ outside quotes escapes any character. Nothing is
// expanded and operators such as && are ordinary characters; Validate refuses
// them before. An empty command has no words. Pure; any goroutine may call it.
func SplitCommand(command string) ([]string, error) {
	scan, err := scanCommand(command, nil)
	if err != nil {
		return nil, err
	}
	return scan.texts(), nil
}

// ExpandCommand is SplitCommand that also replaces $NAME and ${NAME}, outside
// single quotes, by what lookup returns. What it puts in is never split again.
// The command word of a shell, as in bash -c "…", stays as it is: its
// variables are that shell's, which may set them itself.
// Names that lookup does not know become empty, as in a shell, and are listed
// in missing, so that the caller can say so.
func ExpandCommand(command string, lookup func(name string) (value string, known bool)) (words, missing []string, err error) {
	scan, err := scanCommand(command, func(name string) string {
		value, known := lookup(name)
		if !known {
			missing = append(missing, name)
		}
		return value
	})
	if err != nil {
		return nil, nil, err
	}
	return scan.texts(), missing, nil
}

// commandWord is one word of a command.
type commandWord struct {
	text string // quotes and escapes resolved
	raw  string // as written
}

// commandScan is what reading a command once says: its words, and the first
// of each thing that only a shell would understand.
type commandScan struct {
	words        []commandWord
	statement    string // first unquoted && || ; | & ( ) or line break
	redirect     string // first unquoted < or >
	substitution string // first $( or ` outside single quotes
	expansion    string // first ${ that is no plain name
	glob         string // first word with an unquoted * or ?, or a leading ~
	shellWords   []int  // which words are the command word of a shell
}

func (s *commandScan) texts() []string {
	texts := make([]string, len(s.words))
	for i, w := range s.words {
		texts[i] = w.text
	}
	return texts
}

// commandReader walks over a command byte by byte. Multi-byte characters need
// no care, because every special character is ASCII.
type commandReader struct {
	command string
	at      int
	expand  func(name string) string // nil: leave $NAME as it is
	scan    commandScan
	word    strings.Builder
	start   int  // where the open word began
	open    bool // a word is open, perhaps still empty as in ''
	broken  bool // a line ended after a word: the next word is another statement
	shell   shellPart
}

func scanCommand(command string, expand func(name string) string) (*commandScan, error) {
	if strings.IndexByte(command, 0) >= 0 {
		return nil, ErrCommandNUL
	}
	r := &commandReader{command: command, expand: expand}
	for r.at < len(r.command) {
		if err := r.step(); err != nil {
			return nil, err
		}
	}
	r.endWord()
	return &r.scan, nil
}

// step reads one character, escape, quoted part or expansion.
func (r *commandReader) step() error {
	c := r.command[r.at]
	switch c {
	case ' ', '\t', '\r':
		r.endWord()
		r.at++
	case '\n':
		r.endWord()
		r.broken = len(r.scan.words) > 0
		r.at++
	case '\'':
		return r.single()
	case '"':
		return r.double()
	case '\\':
		return r.escape()
	case '$':
		r.begin()
		if r.shell == shellCommand {
			r.put(c)
			return nil
		}
		return r.dollar()
	default:
		r.operator(c)
		r.put(c)
	}
	return nil
}

// operator notes characters that a shell would act on.
func (r *commandReader) operator(c byte) {
	switch c {
	case '&', '|':
		operator := string(c)
		if r.at+1 < len(r.command) && r.command[r.at+1] == c {
			operator += operator
		}
		r.note(&r.scan.statement, operator)
	case ';', '(', ')':
		r.note(&r.scan.statement, string(c))
	case '<', '>':
		r.note(&r.scan.redirect, string(c))
	case '`':
		r.note(&r.scan.substitution, "`")
	case '*', '?':
		r.note(&r.scan.glob, string(c))
	case '~':
		if !r.open {
			r.note(&r.scan.glob, string(c))
		}
	}
}

func (r *commandReader) note(first *string, what string) {
	if *first == "" {
		*first = what
	}
}

func (r *commandReader) begin() {
	if !r.open {
		r.open, r.start = true, r.at
		r.beginShell()
		if r.broken {
			r.note(&r.scan.statement, "line break")
		}
	}
}

// put takes c into the open word and moves on.
func (r *commandReader) put(c byte) {
	r.begin()
	r.word.WriteByte(c)
	r.at++
}

func (r *commandReader) endWord() {
	if !r.open {
		return
	}
	r.scan.words = append(r.scan.words, commandWord{text: r.word.String(), raw: r.command[r.start:r.at]})
	r.endShell(r.word.String())
	r.word.Reset()
	r.open = false
}

func (r *commandReader) single() error {
	r.begin()
	end := strings.IndexByte(r.command[r.at+1:], '\'')
	if end < 0 {
		return ErrQuoteOpen
	}
	r.word.WriteString(r.command[r.at+1 : r.at+1+end])
	r.at += end + 2
	return nil
}

func (r *commandReader) double() error {
	r.begin()
	r.at++
	for r.at < len(r.command) {
		switch c := r.command[r.at]; c {
		case '"':
			r.at++
			return nil
		case '\\':
			if r.at+1 == len(r.command) {
				return ErrQuoteOpen
			}
			next := r.command[r.at+1]
			switch next {
			case '$', '`', '"', '\\':
				r.word.WriteByte(next)
			case '\n': // a continued line
			default:
				r.word.WriteByte(c)
				r.word.WriteByte(next)
			}
			r.at += 2
		case '$':
			if r.shell == shellCommand {
				r.put(c)
				continue
			}
			if err := r.dollar(); err != nil {
				return err
			}
		default:
			if c == '`' && r.shell != shellCommand {
				r.note(&r.scan.substitution, "`")
			}
			r.put(c)
		}
	}
	return ErrQuoteOpen
}

func (r *commandReader) escape() error {
	if r.at+1 == len(r.command) {
		return ErrBackslashLast
	}
	next := r.command[r.at+1]
	if next == '\n' { // a continued line
		r.at += 2
		return nil
	}
	if next == '\r' && r.at+2 < len(r.command) && r.command[r.at+2] == '\n' {
		r.at += 3
		return nil
	}
	r.begin()
	r.word.WriteByte(next)
	r.at += 2
	return nil
}

// dollar reads $NAME or ${NAME}; a $ before anything else is itself.
func (r *commandReader) dollar() error {
	r.begin()
	rest := r.command[r.at+1:]
	if strings.HasPrefix(rest, "(") {
		r.note(&r.scan.substitution, "$(")
		r.word.WriteByte('$')
		r.at++
		// The parenthesis belongs to the substitution, not to a statement.
		r.word.WriteByte('(')
		r.at++
		return nil
	}
	if strings.HasPrefix(rest, "{") {
		end := 1 + nameEnd(rest[1:])
		if end == 1 || end == len(rest) || rest[end] != '}' {
			r.note(&r.scan.expansion, "${")
			if r.expand != nil {
				return ErrExpansionShape
			}
			r.put('$')
			return nil
		}
		r.reference(rest[1:end], end+2)
		return nil
	}
	end := nameEnd(rest)
	if end == 0 {
		r.put('$')
		return nil
	}
	r.reference(rest[:end], end+1)
	return nil
}

// reference puts in the value of name, or its text of length bytes as written.
func (r *commandReader) reference(name string, length int) {
	if r.expand != nil {
		r.word.WriteString(r.expand(name))
	} else {
		r.word.WriteString(r.command[r.at : r.at+length])
	}
	r.at += length
}

// nameEnd is the length of the variable name at the start of text.
func nameEnd(text string) int {
	for i := 0; i < len(text); i++ {
		c := text[i]
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return i
		}
	}
	return len(text)
}

// JoinCommand writes words as one command that SplitCommand parts into the
// same words again, quoting only where it must.
func JoinCommand(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = quoteWord(word)
	}
	return strings.Join(quoted, " ")
}

func quoteWord(word string) string {
	plain := word != ""
	for i := 0; i < len(word) && plain; i++ {
		c := word[i]
		plain = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
			strings.IndexByte("_-./:=,+@%", c) >= 0 || c >= 0x80
	}
	if plain {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

package jobspec

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// surveyor walks once over the text of a file before any parser does. The
// parser recurses into brackets, operators and templates and copies long
// templates over and over, so a hostile file could exhaust the stack, the
// memory or the clock; the survey refuses such a file in a few nanoseconds per
// byte. It follows the lexical grammar of HCL.
//
// On the way it finds blocks that are written on one line with several
// arguments, { a = 1, b = 2 }, and notes how to break them into lines, because
// HCL itself takes only one argument there.
type surveyor struct {
	src    *source
	limits Limits

	at      int
	frames  []frame
	ops     int // operators of all open frames: how deep a chain such as 1+1+1 nests
	tokens  int
	special int // bytes that could open or chain something, whatever they stand in
	cost    int // of the templates so far, see templateCostMax

	edits []edit
	found *refusal
}

// edit puts a line break before the byte at offset, or in its place.
type edit struct {
	offset  int
	replace bool
}

// refusal is why a file is not parsed at all.
type refusal struct {
	start, end int
	id, hint   string
	params     []any
}

// Bounds that no honest job file comes near.
const (
	chainMax        = 512      // operators in one another
	numberMax       = 64       // bytes of a number
	exponentMax     = 3        // digits of an exponent
	templateCostMax = 48 << 20 // bytes that the parser copies for one another's sake: pieces of a template times its length
	specialMax      = 8192     // above it the survey is checked with the parser's own tokens
)

// frameKind is what a part of the text is inside of.
type frameKind byte

const (
	frameBody    frameKind = 'b' // the braces of a block, or the file
	frameObject  frameKind = '{'
	frameList    frameKind = '['
	frameParen   frameKind = '('
	frameQuote   frameKind = '"'
	frameHeredoc frameKind = 'h'
	frameInterp  frameKind = '$' // ${ … } or %{ … }
)

// itemState is how far the reading of one item of a body has come.
type itemState byte

const (
	itemNone  itemState = iota // an item may begin
	itemHead                   // its name and labels
	itemValue                  // behind the equals sign
	itemAfter                  // behind the braces of a block
)

type frame struct {
	kind   frameKind
	start  int
	ops    int
	marker string    // heredoc: the word that ends it
	pieces int       // quote, heredoc: literals and interpolations
	item   itemState // body
	lines  bool      // body: holds a line break
	split  bool      // body on one line: must be broken into lines
	commas []int     // body: offsets of commas between arguments
	label  bool      // quote: the label of a block
	filled bool      // quote: holds interpolations
	broken bool      // heredoc: something stands before this place on its line
}

// survey bounds the text of src. It returns the text with its line breaks
// added, the same as the parser should see it, where a letter stands for each
// byte of a label that is to be evaluated, which HCL would refuse; and, when the
// file must not be parsed, why.
func survey(src *source, limits Limits) (edited, parsed []byte, refused *refusal) {
	if r := unreadable(src); r != nil {
		return nil, nil, r
	}
	s := &surveyor{src: src, limits: limits}
	s.push(frame{kind: frameBody, lines: true})
	for s.at < len(src.text) && s.found == nil {
		s.step()
	}
	if s.found == nil {
		s.found = s.endTemplates()
	}
	if s.found == nil && s.special > specialMax {
		s.found = recount([]byte(src.text), limits)
	}
	if s.found != nil {
		return nil, nil, s.found
	}
	edited = s.edited([]byte(src.text))
	if len(src.labels) == 0 {
		return edited, edited, nil
	}
	return edited, s.edited(s.masked()), nil
}

// unreadable refuses what is no text.
func unreadable(src *source) *refusal {
	text := src.text
	switch {
	case strings.HasPrefix(text, "\uFEFF"):
		return &refusal{id: "jobspec.bom", hint: "jobspec.bom.hint", end: len("\uFEFF")}
	case strings.HasPrefix(text, "\xff\xfe"), strings.HasPrefix(text, "\xfe\xff"):
		return &refusal{id: "jobspec.utf16", hint: "jobspec.utf8.hint", end: 2}
	}
	if at := strings.IndexByte(text, 0); at >= 0 {
		return &refusal{id: "jobspec.nul", start: at, end: at + 1}
	}
	if !utf8.ValidString(text) {
		at := 0
		for {
			r, size := utf8.DecodeRuneInString(text[at:])
			if r == utf8.RuneError && size <= 1 {
				return &refusal{id: "jobspec.utf8", hint: "jobspec.utf8.hint", start: at, end: at + 1}
			}
			at += size
		}
	}
	return nil
}

func (s *surveyor) top() *frame { return &s.frames[len(s.frames)-1] }

func (s *surveyor) push(f frame) {
	f.start = s.at
	s.frames = append(s.frames, f)
	if len(s.frames)-1 > s.limits.Depth {
		s.refuse("jobspec.depth", "", "max", s.limits.Depth)
	}
}

func (s *surveyor) pop() {
	f := s.top()
	s.ops -= f.ops
	if f.kind == frameQuote || f.kind == frameHeredoc {
		s.templateEnds(f)
	}
	s.frames = s.frames[:len(s.frames)-1]
}

// templateEnds adds what the parser copies for one template: it joins the
// pieces one by one.
func (s *surveyor) templateEnds(f *frame) {
	const pieceSize = 16
	s.cost += f.pieces * (s.at - f.start + pieceSize*f.pieces) / 2
	if s.cost > templateCostMax && s.found == nil {
		s.found = &refusal{start: f.start, end: f.start + 1, id: "jobspec.template", hint: "jobspec.template.hint"}
	}
}

// endTemplates counts the templates that are still open at the end.
func (s *surveyor) endTemplates() *refusal {
	for len(s.frames) > 1 && s.found == nil {
		s.pop()
	}
	return s.found
}

func (s *surveyor) refuse(id, hint string, params ...any) {
	if s.found == nil {
		s.found = &refusal{start: s.at, end: s.at + 1, id: id, hint: hint, params: params}
	}
}

// token counts one word, number or sign, and moves behind its length bytes.
func (s *surveyor) token(length int) {
	s.tokens++
	if s.tokens > s.limits.Tokens {
		s.refuse("jobspec.tokens", "jobspec.tokens.hint", "max", s.limits.Tokens)
	}
	s.at += length
}

// chain counts something that can nest without brackets.
func (s *surveyor) chain() {
	s.special++
	s.top().ops++
	s.ops++
	if s.ops > chainMax {
		s.refuse("jobspec.chain", "", "max", chainMax)
	}
}

// unchain forgets the operators of the expression that ends here.
func (s *surveyor) unchain() {
	f := s.top()
	s.ops -= f.ops
	f.ops = 0
}

func (s *surveyor) rest() string { return s.src.text[s.at:] }

// step reads one token, or one piece of a template.
func (s *surveyor) step() {
	switch s.top().kind {
	case frameQuote:
		s.quoted()
	case frameHeredoc:
		s.heredoc()
	default:
		s.code()
	}
}

// quoted reads on inside "…".
func (s *surveyor) quoted() {
	rest := s.rest()
	n := strings.IndexAny(rest, "\"\\$%\r\n")
	if n < 0 {
		s.at = len(s.src.text)
		return
	}
	if n > 0 {
		s.at += n
		s.top().pieces++
		return
	}
	switch rest[0] {
	case '"':
		s.special++
		if f := s.top(); f.label && f.filled {
			s.src.labels = append(s.src.labels, part{f.start, s.at + 1})
		}
		s.pop()
		s.token(1)
	case '\\':
		_, size := utf8.DecodeRuneInString(rest[1:])
		if len(rest) > 1 && (rest[1] == '\n' || rest[1] == '\r') {
			size = 0
		}
		s.at += 1 + size
	case '\n', '\r':
		f := s.top()
		s.found = &refusal{start: f.start, end: s.at, id: "jobspec.quote_open", hint: "jobspec.quote_open.hint"}
	default:
		s.dollar()
	}
}

// heredoc reads on inside <<EOF … EOF.
func (s *surveyor) heredoc() {
	rest := s.rest()
	f := s.top()
	if !f.broken {
		line, _, found := strings.Cut(rest, "\n")
		if found && strings.Trim(line, " \t\r\v\f\u0085\u00a0") == f.marker {
			s.at += len(strings.TrimSuffix(line, "\r"))
			s.pop()
			s.token(0)
			return
		}
	}
	n := strings.IndexAny(rest, "$%\n")
	switch {
	case n < 0:
		s.at = len(s.src.text)
	case rest[n] == '\n':
		s.at += n + 1
		f.broken = false
	case n > 0:
		s.at += n
		f.broken = true
	default:
		f.broken = true
		s.dollar()
		return
	}
	f.pieces++
	s.token(0)
}

// dollar reads $ or % in a template: an interpolation, its escape, or a
// character like others.
func (s *surveyor) dollar() {
	rest := s.rest()
	f := s.top()
	f.pieces++
	sign := rest[0]
	switch {
	case len(rest) > 1 && rest[1] == '{':
		if sign == '%' {
			s.chain() // if and for directives nest without brackets
		}
		s.special++
		f.filled = true
		s.push(frame{kind: frameInterp})
		s.token(2)
	case len(rest) > 2 && rest[1] == sign && rest[2] == '{':
		s.at += 3
	default:
		s.at++
	}
}

// code reads one token outside of templates.
func (s *surveyor) code() {
	rest := s.rest()
	c := rest[0]
	switch {
	case c == ' ' || c == '\t':
		s.at++
	case c == '\n':
		s.lineBreak()
		s.token(1)
	case c == '#', strings.HasPrefix(rest, "//"):
		end := strings.IndexByte(rest, '\n')
		if end < 0 {
			end = len(rest)
		}
		s.token(end)
	case strings.HasPrefix(rest, "/*"):
		s.comment(rest)
	case c >= '0' && c <= '9':
		s.number(rest)
	case c == '"':
		s.special++
		f := s.top()
		s.push(frame{kind: frameQuote, label: f.kind == frameBody && f.item == itemHead})
		s.token(1)
	case strings.HasPrefix(rest, "<<"):
		s.heredocBegins(rest)
	case identStart(rest):
		s.identifier(rest)
	default:
		s.sign(c)
	}
}

func (s *surveyor) comment(rest string) {
	end := strings.Index(rest[2:], "*/")
	if end < 0 {
		s.sign(rest[0])
		return
	}
	s.token(end + 4)
}

// lineBreak ends items of bodies, and the expressions in them.
func (s *surveyor) lineBreak() {
	f := s.top()
	switch f.kind {
	case frameBody:
		f.item, f.lines = itemNone, true
		s.unchain()
	case frameObject:
		s.unchain()
	}
}

func (s *surveyor) number(rest string) {
	n, exponent := 0, -1
	for n < len(rest) {
		c := rest[n]
		switch {
		case c >= '0' && c <= '9':
			if exponent >= 0 {
				exponent++
			}
		case c == '.':
			exponent = -1
		case (c == 'e' || c == 'E') && exponentFollows(rest[n+1:]):
			exponent = 0
			if rest[n+1] == '+' || rest[n+1] == '-' {
				n++
			}
		default:
			if n > numberMax || exponent > exponentMax {
				break
			}
			s.token(n)
			return
		}
		n++
		if n > numberMax || exponent > exponentMax {
			s.refuse("jobspec.number", "", "max", numberMax)
			return
		}
	}
	s.token(n)
}

func exponentFollows(rest string) bool {
	rest = strings.TrimLeft(rest[:min(1, len(rest))], "+-") + rest[min(1, len(rest)):]
	return rest != "" && rest[0] >= '0' && rest[0] <= '9'
}

func identStart(rest string) bool {
	r, _ := utf8.DecodeRuneInString(rest)
	return r == '_' || unicode.IsLetter(r) || unicode.Is(unicode.Nl, r) || unicode.Is(unicode.Other_ID_Start, r)
}

func identEnd(rest string) int {
	for i, r := range rest {
		if r != '_' && r != '-' && !unicode.In(r, unicode.L, unicode.Nl, unicode.Nd, unicode.Mn, unicode.Mc, unicode.Pc,
			unicode.Other_ID_Start, unicode.Other_ID_Continue) {
			return i
		}
	}
	return len(rest)
}

func (s *surveyor) identifier(rest string) {
	if f := s.top(); f.kind == frameBody && f.item == itemNone {
		f.item = itemHead
	}
	s.token(max(1, identEnd(rest)))
}

// heredocBegins reads <<EOF or <<-EOF up to its line break.
func (s *surveyor) heredocBegins(rest string) {
	word := strings.TrimPrefix(rest[2:], "-")
	if identStart(word) {
		end := identEnd(word)
		after := strings.TrimPrefix(word[end:], "\r")
		if strings.HasPrefix(after, "\n") {
			s.special++
			s.push(frame{kind: frameHeredoc, marker: word[:end]})
			s.token(len(rest) - len(after) + 1)
			return
		}
	}
	s.sign('<')
}

// sign reads a bracket, an operator or a character that means nothing.
func (s *surveyor) sign(c byte) {
	switch c {
	case '{':
		s.brace()
	case '}':
		s.closeBrace()
	case '[', '(':
		s.chain()
		s.push(frame{kind: frameKind(c)})
	case ']', ')':
		if open := frameKind(c); s.top().kind == opens(open) {
			s.pop()
		}
	case ',':
		s.comma()
	case '=':
		f := s.top()
		if f.kind == frameBody && f.item == itemHead {
			f.item = itemValue
		} else {
			s.chain()
		}
	case '!', '-', '+', '*', '/', '%', '<', '>', '&', '|', '?', ':', '.', '~', '^':
		s.chain()
	}
	_, size := utf8.DecodeRuneInString(s.rest())
	s.token(size)
}

func opens(closing frameKind) frameKind {
	if closing == ']' {
		return frameList
	}
	return frameParen
}

func (s *surveyor) brace() {
	s.special++
	f := s.top()
	if f.kind == frameBody && f.item == itemHead {
		f.split = f.split || !f.lines // a block inside a block on one line
		f.item = itemAfter
		s.push(frame{kind: frameBody})
		return
	}
	s.push(frame{kind: frameObject})
}

// closeBrace ends the nearest brace, and whatever was left open inside it:
// HCL's scanner counts braces alone.
func (s *surveyor) closeBrace() {
	nearest := len(s.frames) - 1
	for nearest > 0 && (s.frames[nearest].kind == frameList || s.frames[nearest].kind == frameParen) {
		nearest--
	}
	if nearest == 0 {
		return
	}
	for len(s.frames)-1 > nearest {
		s.pop()
	}
	if f := s.top(); f.kind == frameBody && !f.lines && (f.split || len(f.commas) > 0) {
		s.edits = append(s.edits, edit{offset: f.start + 1})
		for _, comma := range f.commas {
			s.edits = append(s.edits, edit{offset: comma, replace: true})
		}
		s.edits = append(s.edits, edit{offset: s.at})
	}
	s.pop()
}

func (s *surveyor) comma() {
	s.unchain()
	f := s.top()
	if f.kind == frameBody && !f.lines && (f.item == itemValue || f.item == itemAfter) {
		f.commas = append(f.commas, s.at)
		f.item = itemNone
	}
}

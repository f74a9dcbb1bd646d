package tree

// wildmatch reports whether text is what a pattern of an ignore file describes, as git
// judges it: "?" and "[…]" stand for one byte, "*" for any number of them, "\" makes
// the next byte an ordinary one. With paths set none of these but "**" between slashes
// stands for a "/". Names are bytes: no encoding is looked at. Pure.
func wildmatch(pattern, text string, paths bool) bool {
	m := matcher{pattern: pattern, text: text, paths: paths}
	return m.from(0, 0) == matched
}

// matcher is one comparison. Its places are indexes, because what stands before one
// matters for "**".
type matcher struct {
	pattern, text string
	paths         bool
}

// outcome is how a comparison ends. The two aborts keep the search from trying again
// what cannot succeed, so that patterns with many stars stay quick.
type outcome int

const (
	matched      outcome = iota
	unmatched            // not from here
	abortAll             // nor from anywhere: the text is too short
	abortToSlash         // nor before the next "/" of the text
)

func (m *matcher) from(p, t int) outcome {
	for ; p < len(m.pattern); p, t = p+1, t+1 {
		c := m.pattern[p]
		if t >= len(m.text) && c != '*' {
			return abortAll
		}
		switch c {
		case '\\':
			p++
			if p >= len(m.pattern) || m.text[t] != m.pattern[p] {
				return unmatched // a lone "\" at the end matches nothing
			}
		case '?':
			if m.paths && m.text[t] == '/' {
				return unmatched
			}
		case '*':
			return m.star(p, t)
		case '[':
			end, in := class(m.pattern, p+1, m.text[t])
			if end < 0 {
				return abortAll
			}
			if !in || m.paths && m.text[t] == '/' {
				return unmatched
			}
			p = end
		default:
			if m.text[t] != c {
				return unmatched
			}
		}
	}
	if t < len(m.text) {
		return unmatched
	}
	return matched
}

// star goes on from a "*" at p.
func (m *matcher) star(p, t int) outcome {
	slashes := !m.paths
	next := p + 1
	if next < len(m.pattern) && m.pattern[next] == '*' {
		for next < len(m.pattern) && m.pattern[next] == '*' {
			next++
		}
		atFront := p == 0 || m.pattern[p-1] == '/'
		atEnd := next == len(m.pattern) || m.pattern[next] == '/' ||
			m.pattern[next] == '\\' && next+1 < len(m.pattern) && m.pattern[next+1] == '/'
		switch {
		case !m.paths:
		case atFront && atEnd:
			if next < len(m.pattern) && m.pattern[next] == '/' && m.from(next+1, t) == matched { // "**/" may be nothing
				return matched
			}
			slashes = true
		}
	}
	switch {
	case next == len(m.pattern): // the rest, unless it has a "/" where none may be
		for ; !slashes && t < len(m.text); t++ {
			if m.text[t] == '/' {
				return abortToSlash // as git: what stands further on is tried by an outer "**" only
			}
		}
		return matched
	case !slashes && m.pattern[next] == '/':
		for t < len(m.text) && m.text[t] != '/' {
			t++
		}
		if t == len(m.text) {
			return abortAll
		}
		return m.from(next, t)
	}
	for ; t < len(m.text); t++ {
		outcome := m.from(next, t)
		if outcome != unmatched && (!slashes || outcome != abortToSlash) {
			return outcome
		}
		if outcome == unmatched && !slashes && m.text[t] == '/' {
			return abortToSlash
		}
	}
	return abortAll
}

// class reports whether c is in the bracket expression whose first byte is at p, and
// where its "]" stands, -1 where it has none.
func class(pattern string, p int, c byte) (end int, in bool) {
	at := func(i int) (byte, bool) {
		if i < len(pattern) {
			return pattern[i], true
		}
		return 0, false
	}
	first, ok := at(p)
	if !ok {
		return -1, false
	}
	negated := first == '!' || first == '^'
	if negated {
		p++
	}
	var previous byte // of a range that begins with the byte before; 0 for none
	for begin := p; ; p++ {
		b, ok := at(p)
		if !ok {
			return -1, false
		}
		if b == ']' && p > begin {
			return p, in != negated
		}
		switch {
		case b == '\\':
			if b, ok = at(p + 1); !ok {
				return -1, false
			}
			p++
			in = in || b == c
			previous = b
		case b == '-' && previous != 0 && p+1 < len(pattern) && pattern[p+1] != ']':
			p++
			last := pattern[p]
			if last == '\\' {
				p++
				if last, ok = at(p); !ok {
					return -1, false
				}
			}
			in = in || previous <= c && c <= last
			previous = 0
		case b == '[' && p+1 < len(pattern) && pattern[p+1] == ':':
			stop := p + 2
			for stop < len(pattern) && pattern[stop] != ']' {
				stop++
			}
			if stop == len(pattern) {
				return -1, false
			}
			if stop-1 < p+2 || pattern[stop-1] != ':' { // no "[:name:]": a "[" like any other
				in = in || c == '['
				previous = '['
				continue
			}
			holds, known := named(pattern[p+2:stop-1], c)
			if !known {
				return -1, false
			}
			in = in || holds
			previous = 0
			p = stop
		default:
			in = in || b == c
			previous = b
		}
	}
}

// named reports whether c belongs to a class of bytes that has a name.
func named(name string, c byte) (holds, known bool) {
	digit, lower, upper := c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z'
	graph := c > ' ' && c < 0x7f
	switch name {
	case "alnum":
		return digit || lower || upper, true
	case "alpha":
		return lower || upper, true
	case "blank":
		return c == ' ' || c == '\t', true
	case "cntrl":
		return c < ' ' || c == 0x7f, true
	case "digit":
		return digit, true
	case "graph":
		return graph, true
	case "lower":
		return lower, true
	case "print":
		return graph || c == ' ', true
	case "punct":
		return graph && !digit && !lower && !upper, true
	case "space":
		return c == ' ' || c == '\t' || c == '\n' || c == '\r', true
	case "upper":
		return upper, true
	case "xdigit":
		return digit || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F', true
	}
	return false, false
}

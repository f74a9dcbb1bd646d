package structs

import (
	"maps"
	"slices"
	"strings"
)

// ExpandEnv resolves values that name variables: $NAME, ${NAME}, and
// ${NAME:-text} for a name that is not set or empty; $$ is a plain $. A value that
// names its own variable means what the task has of it without the value, which is
// nothing when it has none: PATH = "/opt/bin:$PATH". raw are the values as they are written, by
// name, and known tells what else the task has. What nobody knows stays as it
// is written and is listed in unknown, by the names of the variables whose
// values name it. Pure.
func ExpandEnv(raw map[string]string, known func(name string) (value string, ok bool)) (values map[string]string, unknown map[string]string) {
	e := envExpansion{raw: raw, known: known, values: make(map[string]string, len(raw)), open: make(map[string]bool)}
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		e.value(name)
	}
	return e.values, e.unknown
}

// NamesVariables reports whether a value is read by ExpandEnv at all.
func NamesVariables(value string) bool { return strings.Contains(value, "$") }

type envExpansion struct {
	raw     map[string]string
	known   func(string) (string, bool)
	values  map[string]string
	open    map[string]bool   // names whose values are being resolved
	unknown map[string]string // by variable: the first name in its value that nobody knows
}

// value resolves one variable.
func (e *envExpansion) value(name string) string {
	if value, done := e.values[name]; done {
		return value
	}
	e.open[name] = true
	value := e.text(name, e.raw[name])
	delete(e.open, name)
	e.values[name] = value
	return value
}

// envValueMax bounds a value: those that name one another could grow without end.
const envValueMax = 128 << 10 // bytes, what the kernel takes

// text resolves a text that belongs to the value of a variable.
func (e *envExpansion) text(owner, text string) string {
	var b strings.Builder
	for text != "" && b.Len() <= envValueMax {
		plain, rest, found := strings.Cut(text, "$")
		b.WriteString(plain)
		if !found {
			break
		}
		reference, length := readReference(rest)
		switch {
		case strings.HasPrefix(rest, "$"):
			b.WriteByte('$')
			length = 1
		case length == 0:
			b.WriteByte('$')
		default:
			b.WriteString(e.reference(owner, reference, "$"+rest[:length]))
		}
		text = rest[length:]
	}
	return b.String()
}

// reference is what stands for a name in a value.
func (e *envExpansion) reference(owner string, r envReference, written string) string {
	value, ok := "", false
	if _, mine := e.raw[r.name]; mine && !e.open[r.name] {
		value, ok = e.value(r.name), true
	} else {
		value, ok = e.known(r.name)
	}
	switch {
	case r.defaulted && value == "":
		return e.text(owner, r.fallback)
	case ok, r.name == owner:
		return value
	}
	if e.unknown == nil {
		e.unknown = make(map[string]string)
	}
	if e.unknown[owner] == "" {
		e.unknown[owner] = r.name
	}
	return written
}

// envReference is a name in a value.
type envReference struct {
	name      string
	defaulted bool
	fallback  string
}

// readReference reads what follows a $; the length is 0 when that names nothing.
func readReference(rest string) (r envReference, length int) {
	braced := strings.HasPrefix(rest, "{")
	if braced {
		rest = rest[1:]
	}
	end := 0
	for end < len(rest) && envNameByte(rest[end], end == 0) {
		end++
	}
	if end == 0 {
		return r, 0
	}
	r.name = rest[:end]
	switch {
	case !braced:
		return r, end
	case strings.HasPrefix(rest[end:], "}"):
		return r, end + 2
	case !strings.HasPrefix(rest[end:], ":-"):
		return r, 0
	}
	depth, from := 1, end+2
	for at := from; at < len(rest); at++ {
		switch {
		case strings.HasPrefix(rest[at:], "${"):
			depth++
		case rest[at] == '}':
			if depth--; depth == 0 {
				r.defaulted, r.fallback = true, rest[from:at]
				return r, at + 2
			}
		}
	}
	return r, 0
}

func envNameByte(c byte, first bool) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || !first && c >= '0' && c <= '9'
}

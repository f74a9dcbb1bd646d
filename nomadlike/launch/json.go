package launch

import (
	"encoding/json"
	"strconv"
)

// jsonText writes JSON by appending, the same bytes as encoding/json writes for
// the like structs, in a fraction of the time: a rank table of a thousand nodes
// is a megabyte, and an encoder goes over it three times.
type jsonText struct {
	text   []byte
	indent bool // each value on a line of its own, two spaces for each depth
	depth  int
	some   bool // what was opened last has a value already
}

// open begins an object or an array, where a value is due.
func (j *jsonText) open(bracket byte) {
	j.text = append(j.text, bracket)
	j.depth++
	j.some = false
}

// close ends it.
func (j *jsonText) close(bracket byte) {
	j.depth--
	if j.some {
		j.line()
	}
	j.text = append(j.text, bracket)
	j.some = true
}

// next begins a value of what is open.
func (j *jsonText) next() {
	if j.some {
		j.text = append(j.text, ',')
	}
	j.some = true
	j.line()
}

func (j *jsonText) line() {
	const deepest = "\n                                "
	if j.indent {
		j.text = append(j.text, deepest[:1+2*j.depth]...)
	}
}

// key begins a field; it is of letters and needs no escapes.
func (j *jsonText) key(name string) {
	j.next()
	j.text = append(append(append(j.text, '"'), name...), '"', ':')
	if j.indent {
		j.text = append(j.text, ' ')
	}
}

// list begins a field that is an array; close ends it.
func (j *jsonText) list(name string) {
	j.key(name)
	j.open('[')
}

// item begins an object as the next element of an array.
func (j *jsonText) item() {
	j.next()
	j.open('{')
}

// element is a text as the next element of an array.
func (j *jsonText) element(value string) {
	j.next()
	j.quote(value)
}

// field is a field whose value is a text.
func (j *jsonText) field(name, value string) {
	j.key(name)
	j.quote(value)
}

// number is a field whose value is a number written as a text.
func (j *jsonText) number(name string, value int) {
	j.key(name)
	j.text = append(strconv.AppendInt(append(j.text, '"'), int64(value), 10), '"')
}

// quote writes a text; what needs an escape is left to encoding/json.
func (j *jsonText) quote(value string) {
	for i := range len(value) {
		switch c := value[i]; {
		case c < ' ' || c > '~', c == '"', c == '\\', c == '<', c == '>', c == '&':
			escaped, _ := json.Marshal(value) // never fails for a text
			j.text = append(j.text, escaped...)
			return
		}
	}
	j.text = append(append(append(j.text, '"'), value...), '"')
}

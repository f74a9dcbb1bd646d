package audit

import (
	"strings"

	"nomadlike/nomadlike/structs"
)

// Filter says which records are looked for. The zero value takes all.
type Filter struct {
	User    string
	Object  string // kind/id, a kind, or the beginning of an id
	Action  string // or the beginning of one that ends at a dot: "tokens" is all of tokens.create
	Since   structs.UnixNano
	Until   structs.UnixNano // 0: now
	Refused bool             // only what was refused
}

// Takes reports whether a record is looked for.
func (f Filter) Takes(r *Record) bool {
	switch {
	case f.Refused && r.Outcome != Refused,
		f.User != "" && r.Actor.User != f.User,
		f.Since > 0 && r.Time < f.Since,
		f.Until > 0 && r.Time > f.Until,
		f.Action != "" && r.Action != f.Action && !strings.HasPrefix(r.Action, f.Action+"."),
		f.Object != "" && !r.Object.is(f.Object):
		return false
	}
	return true
}

func (o *Object) is(text string) bool {
	if kind, id, both := strings.Cut(text, "/"); both {
		return o.Kind == kind && strings.HasPrefix(o.ID, id)
	}
	return o.Kind == text || strings.HasPrefix(o.ID, text) || strings.HasPrefix(o.Part, text)
}

// holds is a text that the line of every record that is looked for has in it;
// empty when there is none. Names that lines spell otherwise have none.
func (f Filter) holds() string {
	for _, text := range []string{f.User, f.Action} {
		if text != "" && strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.@") == "" {
			return text
		}
	}
	if f.Refused {
		return string(Refused)
	}
	return ""
}

// Line reads a line when its record is looked for; nil: it is not.
func (f Filter) Line(line []byte) *Record {
	if text := f.holds(); text != "" && !strings.Contains(string(line), text) {
		return nil
	}
	r, err := Parse(line)
	if err != nil || !f.Takes(&r) {
		return nil
	}
	return &r
}

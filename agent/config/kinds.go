package config

import (
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"nomadlike/nomadlike/structs"
)

// kind is a kind of value, by the name of the text that explains it on the reference
// page.
type kind string

const (
	kindText   kind = "text"
	kindSwitch kind = "switch"
	kindNumber kind = "number"
	kindReal   kind = "real"
	kindSize   kind = "size"
	kindSpan   kind = "span"
	kindList   kind = "list"
	kindTable  kind = "table"
	kindObject kind = "object"
)

// value describes one setting: how a layer says it, what it comes to, and what else
// there is to know about it.
type value struct {
	kind      kind
	said      any // pointer into the settings
	meant     any // pointer into the Config; nil: rules make something else of it
	otherwise any // what it is when no layer says it; nil: nothing that could be said
	// settle makes of what is said what is meant.
	settle func(r *resolver, path string)

	words     []string // the only ones that it may be, if any
	bounded   bool
	low, high float64
	open      bool   // low itself is too little
	openHigh  bool   // high itself is too much
	zero      bool   // 0 may be, too
	blank     bool   // an empty text says nothing
	refusal   string // id of what is told about a value that cannot be
	reason    string // why, where the text says one
	unit      string // name of the text about its unit

	flag, usage string // of the command line, with the id of its text
	required    bool
	secret      bool // nobody is shown it
	reloadable  bool // it changes while the agent runs
	flagOnly    bool // files do not say it
}

// given reports whether the layer says it.
func (v *value) given() bool { return !reflect.ValueOf(v.said).Elem().IsZero() }

// scalar describes a setting that is nil in a layer that does not say it. refuse
// returns whether a value cannot be.
func scalar[S, M any](k kind, said **S, meant *M, otherwise M, take func(v *value, r *resolver, path string, said S) (M, bool)) *value {
	v := &value{kind: k, said: said, meant: meant, otherwise: otherwise}
	v.settle = func(r *resolver, path string) {
		*meant = otherwise
		if *said != nil {
			if taken, ok := take(v, r, path, **said); ok {
				*meant = taken
			}
		}
	}
	return v
}

func text(said **string, meant *string, otherwise string) *value {
	return scalar(kindText, said, meant, otherwise, func(_ *value, _ *resolver, _, said string) (string, bool) { return said, true })
}

// word is a text of which only a few have a meaning.
func word(said **string, meant *string, otherwise string, words ...string) *value {
	v := scalar(kindText, said, meant, otherwise, func(v *value, r *resolver, path, said string) (string, bool) {
		if slices.Contains(words, said) {
			return said, true
		}
		r.refuse(path, v.refusal, "value", said, "allowed", strings.Join(words, ", "))
		return words[0], true
	})
	v.words, v.refusal = words, "agent.config.word"
	return v
}

// toggle is a switch: true or false.
func toggle(said **bool, meant *bool, otherwise bool) *value {
	return scalar(kindSwitch, said, meant, otherwise, func(_ *value, _ *resolver, _ string, said bool) (bool, bool) { return said, true })
}

func number[M ~int | ~int64](said **int, meant *M, otherwise M) *value {
	return scalar(kindNumber, said, meant, otherwise, func(v *value, r *resolver, path string, said int) (M, bool) {
		v.check(r, path, float64(said), said)
		return M(said), true
	})
}

// decimal is a number that need not be whole.
func decimal(said **float64, meant *float64, otherwise float64) *value {
	return scalar(kindReal, said, meant, otherwise, func(v *value, r *resolver, path string, said float64) (float64, bool) {
		v.check(r, path, said, said)
		return said, true
	})
}

// size is an amount of bytes, such as "2GiB".
func size(said **string, meant *int64, otherwise int64) *value {
	return scalar(kindSize, said, meant, otherwise, func(v *value, r *resolver, path, said string) (int64, bool) {
		if v.blank && said == "" {
			return 0, false
		}
		bytes, err := structs.ParseSize(said)
		switch {
		case err != nil && v.zero:
			v.refuse(r, path, said)
		case err != nil:
			r.refuse(path, "agent.config.size", "value", said, "reason", err)
			return 0, true
		case v.refusal == "agent.config.positive": // a number above 0
			v.check(r, path, float64(bytes), bytes)
		default:
			v.check(r, path, float64(bytes), said)
		}
		return bytes, true
	})
}

// span is a span of time, such as "90s" or "30d".
func span[M ~int64](said **string, meant *M, otherwise M) *value {
	v := scalar(kindSpan, said, meant, otherwise, func(v *value, r *resolver, path, said string) (M, bool) {
		if v.blank && said == "" {
			return 0, false
		}
		span, err := structs.ParseDuration(said)
		if err != nil {
			v.refuse(r, path, said)
			return 0, false
		}
		return M(span), v.check(r, path, float64(span), said)
	})
	return v.from(0, math.Inf(1)).refused("agent.config.renew_grace")
}

func list(said, meant *[]string) *value {
	return &value{kind: kindList, said: said, meant: meant, settle: func(*resolver, string) { *meant = slices.Clone(*said) }}
}

func table(said, meant *map[string]string) *value {
	return &value{kind: kindTable, said: said, meant: meant, settle: func(*resolver, string) { *meant = *said }}
}

// plain is a text that is "" in a layer that does not say it.
func plain(said *string) *value {
	return &value{kind: kindText, said: said, settle: func(*resolver, string) {}}
}

// object is what a plugin reads by itself.
func object(said *cty.Value) *value {
	return &value{kind: kindObject, said: said, settle: func(*resolver, string) {}}
}

// from bounds a number, a size or a span, ends included.
func (v *value) from(low, high float64) *value {
	v.bounded, v.low, v.high = true, low, high
	if v.refusal == "" {
		v.refusal = "agent.config.positive"
	}
	return v
}

// aboveZero takes 0 for too little, and what is below it.
func (v *value) aboveZero() *value {
	v.bounded, v.low, v.open = true, 0, true
	return v
}

// under is a highest value that is too much itself.
func (v *value) under(high float64) *value {
	v.bounded, v.high, v.openHigh = true, high, true
	return v
}

// orZero allows 0, which means that something has no bound.
func (v *value) orZero() *value { v.zero = true; return v }

// orBlank takes an empty text for none.
func (v *value) orBlank() *value { v.blank = true; return v }

// refused is the id of what is told about a value that cannot be; the text may name
// value, min, max and allowed. "" leaves it to a rule.
func (v *value) refused(id string) *value { v.refusal = id; return v }

// because is the reason in the text about a value that cannot be.
func (v *value) because(reason string) *value { v.reason = reason; return v }

// in is the unit of a number.
func (v *value) in(unit string) *value { v.unit = unit; return v }

// onFlag is the flag of the command line that says it, too.
func (v *value) onFlag(name, usage string) *value { v.flag, v.usage = name, usage; return v }

// byFlagOnly is the flag that alone says it.
func (v *value) byFlagOnly(name, usage string) *value {
	v.flagOnly = true
	return v.onFlag(name, usage)
}

// unset means that nothing which could be said is the same as not saying it.
func (v *value) unset() *value { v.otherwise = nil; return v }

// knownAs is what not saying it comes to where nothing in the Config says so.
func (v *value) knownAs(otherwise any) *value { v.otherwise = otherwise; return v }

// apart has rules put what is meant where it belongs.
func (v *value) apart() *value { v.meant = nil; return v }

func (v *value) hidden() *value { v.secret = true; return v }

func (v *value) needed() *value { v.required = true; return v }

// onReload is a setting that a running agent takes over from a new configuration.
func (v *value) onReload() *value { v.reloadable = true; return v }

// check refuses a number out of bounds.
func (v *value) check(r *resolver, path string, n float64, said any) bool {
	ok := n >= v.low && n <= v.high && !(v.open && n == v.low) && !(v.openHigh && n == v.high) || v.zero && n == 0
	if v.bounded && !ok {
		v.refuse(r, path, said)
		return false
	}
	return true
}

func (v *value) refuse(r *resolver, path string, said any) {
	if v.refusal == "" {
		return
	}
	r.refuse(path, v.refusal, "value", said, "min", v.say(v.low), "max", v.say(v.high), "reason", v.reason)
}

// say writes a number as a file would.
func (v *value) say(n float64) string {
	if math.IsInf(n, 0) {
		return ""
	}
	switch v.kind {
	case kindSize:
		return structs.FormatSize(int64(n))
	case kindSpan:
		return structs.FormatDuration(structs.Duration(n))
	}
	return strconv.FormatFloat(n, 'f', -1, 64)
}

// shown is what it comes to, for people: what is meant, or what was said.
func (v *value) shown(asSaid bool) any {
	from := v.meant
	switch {
	case v.meant == nil && !v.given():
		return v.otherwise
	case v.meant == nil, asSaid:
		from = v.said
	}
	of := reflect.ValueOf(from).Elem()
	if of.Kind() == reflect.Pointer && !of.IsNil() {
		of = of.Elem()
	}
	if v.kind == kindSpan && of.CanInt() {
		return v.say(float64(of.Int()))
	}
	return of.Interface()
}

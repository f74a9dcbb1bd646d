package config

import (
	"reflect"
	"slices"
)

// visitor is what goes over the settings of an agent: a reader fills a layer from a
// file, a merger puts one layer over another, a resolver makes a Config of what they
// come to, others show, compare and describe it. A walk calls it for the label of its
// block, then for settings and inner blocks, in the order in which what is wrong is told.
//
// The walks of this package are the one table of what an agent can be told. A field of
// the settings that no walk visits fails TestWalksVisitEveryField.
type visitor interface {
	label(to *string)
	setting(name string, v *value)
	block(b block)
	// rule is what settings must be to each other, or what makes something else of
	// them; a resolver applies it at its place in the walk.
	rule(apply func(r *resolver))
}

// block is a type of blocks inside of another.
type block struct {
	name  string
	label string // name of its label; "": it has none
	many  bool   // it may stand more than once
	count int    // how many the layer holds
	// walk goes over the one with an index below count, or equal to it, which makes
	// another.
	walk func(v visitor, index int)
	// look goes over the block of the layer, or over an empty one that the layer does
	// not get.
	look func(v visitor)
	// over puts the blocks of a layer above, which are not empty, over these. Blocks
	// that stand once become one of this layer's own, whose settings the walk then
	// puts over, too.
	over func(top any)
	to   any // pointer to the field of the settings
}

// one is a block that may stand once; its field is nil when it does not.
func one[T any](v visitor, name string, to **T, walk func(visitor, *T)) {
	b := block{name: name, to: to}
	if *to != nil {
		b.count = 1
	}
	b.walk = func(v visitor, _ int) {
		if *to == nil {
			*to = new(T)
		}
		walk(v, *to)
	}
	b.look = func(v visitor) {
		if *to != nil {
			walk(v, *to)
		} else {
			walk(v, new(T))
		}
	}
	b.over = func(any) {
		own := new(T)
		if *to != nil {
			*own = **to // other layers may share it
		}
		*to = own
	}
	v.block(b)
}

// every is a block that may stand any number of times. One layer's blocks replace
// another's as a whole, or, where replaces is given, those that it says they replace.
func every[T any](v visitor, name, label string, to *[]T, walk func(visitor, *T), replaces func(top, below *T) bool) {
	v.block(block{
		name: name, label: label, many: true, count: len(*to), to: to,
		walk: func(v visitor, index int) {
			if index == len(*to) {
				*to = append(*to, *new(T))
			}
			walk(v, &(*to)[index])
		},
		look: func(v visitor) { walk(v, new(T)) },
		over: func(top any) {
			above := *top.(*[]T)
			if replaces == nil {
				*to = above
				return
			}
			merged := slices.Clone(*to)
			for i := range above {
				at := slices.IndexFunc(merged, func(below T) bool { return replaces(&above[i], &below) })
				if at < 0 {
					merged = append(merged, above[i])
				} else {
					merged[at] = above[i]
				}
			}
			*to = merged
		},
	})
}

// below is the path of something in the block at path.
func below(path, name string) string {
	if path == "" || name == "" {
		return path + name
	}
	return path + "." + name
}

// Over puts the values of top over those of s and returns the result; lists
// and maps are replaced as a whole.
func (s Settings) Over(top Settings) Settings {
	above := layer{values: make(map[string]*value), blocks: make(map[string]block)}
	walkSettings(&above, &top, new(Config))
	walkSettings(&merger{above: above}, &s, new(Config))
	return s
}

// layer collects what a layer says.
type layer struct {
	at     string
	values map[string]*value
	blocks map[string]block
}

func (l *layer) label(*string)        {}
func (l *layer) rule(func(*resolver)) {}

func (l *layer) setting(name string, v *value) {
	if v.given() {
		l.values[below(l.at, name)] = v
	}
}

func (l *layer) block(b block) {
	if b.count == 0 {
		return
	}
	path := below(l.at, b.name)
	l.blocks[path] = b
	if !b.many {
		b.look(&layer{path, l.values, l.blocks})
	}
}

// merger puts what a layer says over what it visits.
type merger struct {
	at    string
	above layer
}

func (m *merger) label(*string)        {}
func (m *merger) rule(func(*resolver)) {}

func (m *merger) setting(name string, v *value) {
	if top := m.above.values[below(m.at, name)]; top != nil {
		reflect.ValueOf(v.said).Elem().Set(reflect.ValueOf(top.said).Elem())
	}
}

func (m *merger) block(b block) {
	path := below(m.at, b.name)
	top, said := m.above.blocks[path]
	if !said {
		return
	}
	b.over(top.to)
	if !b.many {
		b.walk(&merger{path, m.above}, 0)
	}
}

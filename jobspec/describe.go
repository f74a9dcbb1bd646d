package jobspec

import (
	"slices"
	"sync"
)

// entry is one label, argument or type of blocks of a noun.
type entry struct {
	path     string // "resources.device.count", for the label of a block the block's own with the field's name
	name     string
	home     string // type of the block that it stands in
	block    string // path of that block, "" for the noun's
	depth    int    // of that block: 0 for the noun's
	form     form
	value    value // of an argument, or a label
	many     bool  // a type of blocks that may stand more than once
	optional bool  // a label that need not stand
}

// form is what something entry is.
type form byte

const (
	formLabel form = iota
	formArgument
	formBlock
)

// describer lists what it visits, each type of blocks before what stands in it.
type describer struct {
	home, path string
	depth      int
	into       *[]entry
}

// describe lists what may stand in the file of a noun. The values are those of
// the subject, which gets one of each block that it does not have.
func describe(n noun, of subject) []entry {
	var list []entry
	of.walk(&describer{home: n.kind, into: &list})
	return list
}

func (d *describer) add(one entry) {
	one.path, one.home, one.block, one.depth = fieldPath(d.path, one.name), d.home, d.path, d.depth
	*d.into = append(*d.into, one)
}

func (d *describer) label(name string, to *string, optional bool) {
	d.add(entry{name: name, form: formLabel, value: text(to), optional: optional})
}

func (d *describer) argument(name string, v value) {
	d.add(entry{name: name, form: formArgument, value: v})
}

func (d *describer) block(b block) {
	d.add(entry{name: b.name, form: formBlock, many: b.many})
	b.walk(&describer{b.name, fieldPath(d.path, b.name), d.depth + 1, d.into}, 0)
}

// fieldPath is the path of a field of the block at path; without a name, the
// block's own.
func fieldPath(path, name string) string {
	if path == "" || name == "" {
		return path + name
	}
	return path + "." + name
}

// homes are the blocks that each name of a kind of file may stand in.
type homes map[string][]entry

var homesOfNouns = sync.OnceValue(func() map[noun]homes {
	all := make(map[noun]homes)
	for _, n := range nouns() {
		all[n] = make(homes)
		for _, one := range describe(n, n.empty()) {
			if one.form != formLabel {
				all[n][one.name] = append(all[n][one.name], one)
			}
		}
	}
	return all
})

func homesOf(n noun) homes { return homesOfNouns()[n] }

// homesMax is how many blocks a hint names; a name that more of them know says
// little about which was meant.
const homesMax = 3

// of names the outermost blocks that know a name, in the order in which they are
// written: as a block or as an argument, as it is used, if there are such. It is
// empty when nobody knows it, or too many do.
func (h homes) of(name string, isBlock bool) []string {
	known := h[name]
	used := formArgument
	if isBlock {
		used = formBlock
	}
	if as := slices.DeleteFunc(slices.Clone(known), func(one entry) bool { return one.form != used }); len(as) > 0 {
		known = as
	}
	var outermost []string
	depth := 0
	for _, one := range known {
		if len(outermost) == 0 || one.depth < depth {
			outermost, depth = nil, one.depth
		}
		if one.depth == depth && !slices.Contains(outermost, one.home) {
			outermost = append(outermost, one.home)
		}
	}
	if len(outermost) > homesMax {
		return nil
	}
	return outermost
}

package tree

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"
)

// LargestShown is how many parts of a directory that is too large are named.
const LargestShown = 10

// Part is a directory with all that lies in it, or a file of the root.
type Part struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
	Files int    `json:"files"`
	Line  string `json:"line"` // of an ignore file, that leaves it out
}

// TooLargeError says that a directory has more bytes than may travel. Nothing was read.
type TooLargeError struct {
	Bytes, Max int64
	Largest    []Part
}

// Error names the largest parts; programs that show more look at the fields.
func (e *TooLargeError) Error() string {
	names := make([]string, len(e.Largest))
	for i := range e.Largest {
		names[i] = strconv.Quote(e.Largest[i].Path)
	}
	return "the directory has " + strconv.FormatInt(e.Bytes, 10) + " bytes and " + strconv.FormatInt(e.Max, 10) +
		" are the most; largest: " + strings.Join(names, ", ")
}

// Largest lists the largest parts of a tree, largest first, at most count.
func (m Manifest) Largest(count int) []Part {
	parts := newParts()
	for i := range m.Entries {
		parts.add(&m.Entries[i], m.Entries[i].Size())
	}
	return parts.largest(count)
}

func largest(all []found, count int) []Part {
	parts := newParts()
	for i := range all {
		parts.add(&all[i].entry, all[i].info.Size())
	}
	return parts.largest(count)
}

type parts map[string]*Part

func newParts() parts { return make(parts) }

// add counts a file for each directory that it lies in.
func (p parts) add(entry *Entry, size int64) {
	if entry.Kind != KindFile {
		return
	}
	count := func(name, line string) {
		part := p[name]
		if part == nil {
			part = &Part{Path: name, Line: line}
			p[name] = part
		}
		part.Bytes += size
		part.Files++
	}
	dir := path.Dir(entry.Path)
	if dir == "." {
		count(entry.Path, ignoreLine(entry.Path, false))
	}
	for ; dir != "."; dir = path.Dir(dir) {
		count(dir, ignoreLine(dir, true))
	}
}

// largest names no directory of which nearly all lies in one directory below: that one
// says more.
func (p parts) largest(count int) []Part {
	heir := make(map[string]bool)
	for name, part := range p {
		if above := p[path.Dir(name)]; above != nil && part.Bytes >= above.Bytes/10*9 {
			heir[path.Dir(name)] = true
		}
	}
	var list []Part
	for name, part := range p {
		if !heir[name] && part.Bytes > 0 {
			list = append(list, *part)
		}
	}
	slices.SortFunc(list, func(a, b Part) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.Path, b.Path))
	})
	return list[:min(len(list), count)]
}

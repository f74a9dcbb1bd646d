package tree

import (
	"cmp"
	"path"
	"slices"
	"sort"
	"strings"
)

// Name is one name in a directory of a tree.
type Name struct {
	Name  string // any bytes but NUL and "/"
	Kind  Kind
	Runs  bool   // a file that its owner may run
	Size  int64  // bytes of the file, or of all files below the directory
	Files int    // files and links below the directory
	Link  string // of a link: what it says
}

// Find returns the entry of a path, nil when there is none. A manifest that Decode or
// Check has accepted is in the order that this rests on.
func (m Manifest) Find(name string) *Entry {
	at, there := slices.BinarySearchFunc(m.Entries, name, func(e Entry, name string) int { return cmp.Compare(e.Path, name) })
	if !there {
		return nil
	}
	return &m.Entries[at]
}

// Below returns the entries below a directory, all of them in order; those of the whole
// tree for "". It shares them with the manifest.
func (m Manifest) Below(dir string) []Entry {
	if dir == "" {
		return m.Entries
	}
	prefix := dir + "/"
	first := sort.Search(len(m.Entries), func(i int) bool { return m.Entries[i].Path >= prefix })
	rest := m.Entries[first:]
	return rest[:sort.Search(len(rest), func(i int) bool { return !strings.HasPrefix(rest[i].Path, prefix) })]
}

// Names lists the names in a directory, "" being the root: directories first, each kind
// in the order of their bytes.
func (m Manifest) Names(dir string) []Name {
	below, depth := m.Below(dir), 0
	if dir != "" {
		depth = len(dir) + 1
	}
	names, at := []Name{}, make(map[string]int)
	for i := range below {
		entry := &below[i]
		first, _, deeper := strings.Cut(entry.Path[depth:], "/")
		if !deeper {
			name := Name{Name: path.Base(entry.Path), Kind: entry.Kind, Runs: entry.Kind == KindFile && entry.Mode&0o100 != 0, Link: entry.Target}
			if entry.Kind == KindDir {
				at[first] = len(names)
			} else {
				name.Size = entry.Size()
			}
			names = append(names, name)
			continue
		}
		if entry.Kind != KindDir {
			of := &names[at[first]] // a directory stands before what is in it
			of.Files++
			of.Size += entry.Size()
		}
	}
	slices.SortStableFunc(names, func(a, b Name) int {
		return cmp.Or(cmp.Compare(rank(a.Kind), rank(b.Kind)), cmp.Compare(a.Name, b.Name))
	})
	return names
}

func rank(kind Kind) int {
	if kind == KindDir {
		return 0
	}
	return 1
}

package workspace

import (
	"path"
	"strings"

	"nomadlike/nomadlike/structs"
)

// Level is one element of the way to where versions of a storage lie: a name, or a
// pattern of path.Match where there may be several.
type Level struct {
	Name    string
	Pattern string
	// Below says that whoever writes to the storage decides what has the name: no link
	// is followed there.
	Below bool
}

// ParentLevels is the way to every directory in which versions of named data of a kind
// may lie, from the root of the file system; none where the storage has none. Pure.
func (s *Storage) ParentLevels(kind string) []Level {
	if s.Remote || !s.serves(kind) {
		return nil
	}
	elements := strings.Split(strings.TrimPrefix(s.Path, "/"), "/")
	if !strings.Contains(s.Path, "{name}") {
		elements = append(elements, "{name}")
	}
	if !strings.Contains(s.Path, "{version}") {
		elements = append(elements, "{version}")
	}
	var levels []Level
	below := false
	for _, element := range elements[:len(elements)-1] { // the last one is the version's own
		below = below || element == "{name}" || strings.Contains(element, "{version}")
		filled := strings.NewReplacer("{kind}", kind, "{from}", structs.FromPrivate).Replace(element)
		level := Level{Name: filled, Below: below}
		if glob := globOf(filled); strings.Contains(strings.ReplaceAll(glob, `\?`, ""), "?*") {
			level = Level{Pattern: glob, Below: below}
		}
		levels = append(levels, level)
	}
	return levels
}

// Fits reports whether a name may stand at the level.
func (l *Level) Fits(name string) bool {
	if l.Name != "" {
		return name == l.Name
	}
	ok, err := path.Match(l.Pattern, name)
	return ok && err == nil
}

// NamedStorage returns the storage of a name that serves a kind; nil when there is none.
func NamedStorage(storages []Storage, name, kind string) *Storage {
	for i := range storages {
		if s := &storages[i]; s.Name == name && s.serves(kind) {
			return s
		}
	}
	return nil
}

package tree

import "strings"

// SettledMode is the permission that an entry has when it is data of many: nobody may
// write it, and a file may be run if its owner may run it where it comes from.
func (e *Entry) SettledMode() uint32 {
	switch {
	case e.Kind == KindLink:
		return 0
	case e.Kind == KindDir || e.Mode&0o100 != 0:
		return 0o555
	}
	return 0o444
}

// Settled is the tree with the permissions of data.
func (m Manifest) Settled() Manifest {
	entries := make([]Entry, len(m.Entries))
	for i := range m.Entries {
		entries[i] = m.Entries[i]
		entries[i].Mode = m.Entries[i].SettledMode()
	}
	return Manifest{Entries: entries}
}

// Twins finds two names of the tree that differ in capitals only: some file systems take
// them for one.
func (m Manifest) Twins() (one, other string, ok bool) {
	folded := make(map[string]string, len(m.Entries))
	for i := range m.Entries {
		name := m.Entries[i].Path
		fold := strings.ToLower(name)
		if known, taken := folded[fold]; taken {
			return known, name, true
		}
		folded[fold] = name
	}
	return "", "", false
}

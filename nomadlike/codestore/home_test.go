package codestore

import (
	"slices"
	"testing"
)

// TestHomes: a home says whose it is, and nothing else is one.
func TestHomes(t *testing.T) {
	for home, want := range map[string]struct {
		project string
		since   uint64
	}{"vision": {"vision", 0}, "vision@7": {"vision", 7}, "a@18446744073709551615": {"a", 1<<64 - 1}} {
		project, since, problem := OfHome(home)
		if project != want.project || since != want.since || problem != "" || Home(project, since) != home {
			t.Errorf("%s is of %s since %d, %q", home, project, since, problem)
		}
	}
	for _, home := range []string{"", "@", "@7", "vision@", "vision@0", "vision@07", "vision@-1", "vision@+1", "vision@7@7", "vision@18446744073709551616", "../x", "vision@../x", "Vision"} {
		if _, _, problem := OfHome(home); problem == "" {
			t.Errorf("%q is a home", home)
		}
	}
}

// TestHomesShareNothing: what was sent to one is not in another of the same project.
func TestHomesShareNothing(t *testing.T) {
	s := testStore(t, nil)
	keep(t, s, "vision", "mine")
	ref := keep(t, s, "vision@7", "theirs")
	for home, text := range map[string]string{"vision": "theirs", "vision@7": "mine", "vision@9": "mine"} {
		if missing, err := s.Missing(home, chunksOf([]Piece{pieceOf(text)})); err != nil || len(missing) != 1 {
			t.Errorf("%s has %s: %v, %v", home, text, missing, err)
		}
	}
	if !s.Has(ref) {
		t.Error("the tree of the second is not there")
	}
	if names, err := s.Projects(); err != nil || !slices.Equal(names, []string{"vision", "vision@7"}) {
		t.Errorf("%v, %v", names, err)
	}
	if _, err := s.Missing("vision@x", nil); err == nil {
		t.Error("anything is a home")
	}
}

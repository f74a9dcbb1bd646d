package scheduler

import (
	"maps"
	"slices"
)

// accounts is the part of a board that knows the projects: what they use, and
// what they have spent since the newest pass.
type accounts struct {
	projects      []project
	projectByName map[string]int32
	spending      []spent // since the newest pass
}

func newAccounts() accounts { return accounts{projectByName: make(map[string]int32)} }

func (a *accounts) clone() accounts {
	return accounts{projects: slices.Clone(a.projects), projectByName: maps.Clone(a.projectByName), spending: slices.Clone(a.spending)}
}

package state

import (
	"iter"

	"nomadlike/nomadlike/structs"
)

// Code returns the record of code, nil when there is none.
func (s *Snapshot) Code(ref structs.CodeRef) *structs.CodeTree {
	tree, _ := first[*structs.CodeTree](s.db, tableCode, indexID, nameKey(ref.Project, ref.Digest))
	return tree
}

// AllCode iterates all records of code, by project.
func (s *Snapshot) AllCode() iter.Seq[*structs.CodeTree] {
	return each[*structs.CodeTree](s.db, tableCode, indexID, nil)
}

// WatchAllCode is the Watch twin of AllCode.
func (s *Snapshot) WatchAllCode() <-chan struct{} { return s.watchPrefix(tableCode, indexID, nil) }

// JobsOfCode iterates the jobs that name code, oldest first.
func (s *Snapshot) JobsOfCode(ref structs.CodeRef) iter.Seq[*structs.Job] {
	return func(yield func(*structs.Job) bool) {
		for row := range each[*jobRow](s.db, tableJobs, indexTree, nameKey(ref.Project, ref.Digest)) {
			if !yield(row.Job) {
				return
			}
		}
	}
}

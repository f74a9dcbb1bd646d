package state

import (
	"iter"

	"nomadlike/nomadlike/structs"
)

// Data returns named data, nil when there is none. Callers do not change it.
func (s *Snapshot) Data(id structs.DataID) *structs.DataObject {
	object, _ := first[*structs.DataObject](s.db, tableData, indexID, dataKey(id))
	return object
}

// WatchData is the Watch twin of Data.
func (s *Snapshot) WatchData(id structs.DataID) <-chan struct{} {
	return s.watchKey(tableData, dataKey(id))
}

// DataOf iterates the named data of a project, by kind and name.
func (s *Snapshot) DataOf(project string) iter.Seq[*structs.DataObject] {
	return each[*structs.DataObject](s.db, tableData, indexID, idKey(project))
}

// AllData iterates all named data, by project, kind and name.
func (s *Snapshot) AllData() iter.Seq[*structs.DataObject] {
	return each[*structs.DataObject](s.db, tableData, indexID, nil)
}

// DataNamed iterates the named data of a kind and name, by project.
func (s *Snapshot) DataNamed(kind, name string) iter.Seq[*structs.DataObject] {
	return each[*structs.DataObject](s.db, tableData, indexName, nameKey(kind, name))
}

// UploadingData iterates the named data of which a version is being made, by project,
// kind and name: without walking all the rest.
func (s *Snapshot) UploadingData() iter.Seq[*structs.DataObject] {
	return each[*structs.DataObject](s.db, tableData, indexLive, nil)
}

// WatchUploadingData is the Watch twin of UploadingData.
func (s *Snapshot) WatchUploadingData() <-chan struct{} {
	return s.watchPrefix(tableData, indexLive, nil)
}

// JobsOfData iterates the jobs that name a version of named data, or any version where
// number is 0; by version, oldest first.
func (s *Snapshot) JobsOfData(id structs.DataID, number int) iter.Seq[*structs.Job] {
	prefix := dataKey(id)
	if number > 0 {
		prefix = appendUint(prefix, uint64(number))
	}
	return func(yield func(*structs.Job) bool) {
		for row := range each[*jobRow](s.db, tableJobs, indexData, prefix) {
			if !yield(row.Job) {
				return
			}
		}
	}
}

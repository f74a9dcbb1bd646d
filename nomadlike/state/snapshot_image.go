package state

import (
	"iter"

	"nomadlike/nomadlike/structs"
)

// ImageRecords iterates what is declared of images, by name.
func (s *Snapshot) ImageRecords() iter.Seq[*structs.ImageRecord] {
	return each[*structs.ImageRecord](s.db, tableImages, indexID, nil)
}

// ImageRecord returns what is declared under a name exactly, nil for nothing.
func (s *Snapshot) ImageRecord(name string) *structs.ImageRecord {
	record, _ := first[*structs.ImageRecord](s.db, tableImages, indexID, idKey(name))
	return record
}

// ImageRecordFor returns what is declared of an image as a job names it: under its tag
// or its digest, or else of its repository; nil for nothing.
func (s *Snapshot) ImageRecordFor(image string) *structs.ImageRecord {
	name, ok := structs.ParseImageName(image)
	if !ok {
		return nil
	}
	name = name.Completed()
	for _, key := range []string{name.String(), structs.ImageName{Repository: name.Repository, Tag: name.Tag}.String(), name.Repository} {
		if record := s.ImageRecord(key); record != nil {
			return record
		}
	}
	return nil
}

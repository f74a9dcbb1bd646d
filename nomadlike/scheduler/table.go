package scheduler

import "hash/maphash"

// table finds entries by subjob. It is an open hash of positions, not a Go map,
// because clones of a board copy it whole and often: that is one move of memory.
// Nothing ever iterates it.
type table struct {
	seed  maphash.Seed
	slots []int32 // entry + 1; 0: never used; slotGone: removed
	used  int     // slots that are not 0
}

const slotGone = -1

func newTable() table {
	return table{seed: maphash.MakeSeed(), slots: make([]int32, 64)}
}

func (t *table) hash(jobID string, subjob int) uint64 {
	return maphash.String(t.seed, jobID) + uint64(subjob)*0x9e3779b97f4a7c15
}

// find returns the entry of a subjob.
func (t *table) find(entries []entry, jobID string, subjob int) (int32, bool) {
	mask := uint64(len(t.slots) - 1)
	for at := t.hash(jobID, subjob) & mask; ; at = (at + 1) & mask {
		switch slot := t.slots[at]; {
		case slot == 0:
			return 0, false
		case slot > 0 && entries[slot-1].is(jobID, subjob):
			return slot - 1, true
		}
	}
}

// put adds an entry that is not in the table.
func (t *table) put(entries []entry, id int32) {
	if t.used*4 >= len(t.slots)*3 {
		t.grow(entries)
	}
	e := &entries[id]
	mask := uint64(len(t.slots) - 1)
	at := t.hash(e.jobID, e.index) & mask
	for t.slots[at] > 0 {
		at = (at + 1) & mask
	}
	if t.slots[at] == 0 {
		t.used++
	}
	t.slots[at] = id + 1
}

// drop removes an entry that is in the table.
func (t *table) drop(entries []entry, id int32) {
	e := &entries[id]
	mask := uint64(len(t.slots) - 1)
	at := t.hash(e.jobID, e.index) & mask
	for t.slots[at] != id+1 {
		at = (at + 1) & mask
	}
	t.slots[at] = slotGone
}

// grow makes room, and forgets removed slots.
func (t *table) grow(entries []entry) {
	old, live := t.slots, 0
	for _, slot := range old {
		if slot > 0 {
			live++
		}
	}
	size := 64
	for size < live*3 {
		size *= 2
	}
	t.slots, t.used = make([]int32, size), 0
	for _, slot := range old {
		if slot > 0 {
			t.put(entries, slot-1)
		}
	}
}

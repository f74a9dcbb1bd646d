package scheduler

import (
	"cmp"
	"slices"

	"nomadlike/nomadlike/structs"
)

// Share is how a project stands in the fair share of a pool.
type Share struct {
	Project  string
	Used     float64 // device-hours of late: older ones count less
	InUse    float64 // devices that it uses now; cores count in part
	Weighted float64 // the smaller, the earlier it is served
	Fair     bool    // the pool orders its queue by it
}

// Shares reports how the projects that used a pool stand in its fair share at
// now, those that are served first at the front. It counts also for pools that
// do not order by it.
func (b *Board) Shares(pool string, now structs.UnixNano) []Share {
	at, known := b.queue.partitionByPool[pool]
	if !known {
		return nil
	}
	l := b.queue.partitions[at]
	fair := b.fair(&l)
	if l.record == nil {
		l.record = &structs.Pool{Name: pool}
	}
	var list []Share
	for i, s := range b.shares(&l, now) {
		if s.used > 0 || s.inUse > 0 {
			list = append(list, Share{Project: b.accounts.projects[i].name, Used: s.used, InUse: s.inUse, Weighted: s.weighted(), Fair: fair})
		}
	}
	slices.SortFunc(list, func(x, y Share) int {
		return cmp.Or(cmp.Compare(x.Weighted, y.Weighted), cmp.Compare(x.Project, y.Project))
	})
	return list
}

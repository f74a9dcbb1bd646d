package state

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"nomadlike/nomadlike/structs"
)

// hourMs is the length of a bucket of a ledger in milliseconds.
const hourMs = int64(time.Hour / time.Millisecond)

// projectUsage is what the gangs of a project hold, nil for nothing. It is
// not the caller's to change.
func (tx *txn) projectUsage(name string) *structs.ProjectUsage {
	if usage := tx.usageRow(name); !usage.Nothing() {
		return usage
	}
	return nil
}

// usageRow is what is stored under the name of a project, also of one that holds nothing.
func (tx *txn) usageRow(name string) *structs.ProjectUsage {
	usage, _ := get[*structs.ProjectUsage](tx, tableHoldings, idKey(name))
	return usage
}

// codeSince is the place in the log before which no code of a project counts.
func (tx *txn) codeSince(name string) uint64 {
	if usage := tx.usageRow(name); usage != nil {
		return usage.CodeSince
	}
	return 0
}

// ownUsage is projectUsage for a judge that changes it: a copy that belongs to
// the batch, so that a thousand allocations of one project cost one copy.
func (tx *txn) ownUsage(name string) *structs.ProjectUsage {
	usage, own := tx.owned[name]
	if !own {
		usage = &structs.ProjectUsage{Project: name}
		if known := tx.usageRow(name); known != nil {
			*usage = *known
			usage.QuotaUsage, usage.Ledgers = maps.Clone(known.QuotaUsage), slices.Clone(known.Ledgers)
			for i := range usage.Ledgers {
				usage.Ledgers[i].Buckets = slices.Clone(usage.Ledgers[i].Buckets)
			}
		}
		tx.owned[name] = usage
		tx.put(tableHoldings, idKey(name), usage)
	}
	if usage.ModifyIndex != tx.index() {
		usage.ModifyIndex = tx.index()
		tx.touch(touchProject, name, 0)
	}
	return usage
}

// countInQuota moves what a project holds when one of its allocations begins or
// ends, and books the use of one that ended. What is lost with its node counts
// no more: the project has nothing of it, though the node's devices stay in
// quarantine.
func (tx *txn) countInQuota(before, after *structs.Allocation) {
	held := before != nil && before.CountsInQuota()
	holds := after.CountsInQuota()
	if held == holds {
		return
	}
	usage := tx.ownUsage(after.Project)
	if holds {
		if usage.QuotaUsage == nil {
			usage.QuotaUsage = make(structs.QuotaUsage, len(after.QuotaUsage))
		}
		for kind, n := range after.QuotaUsage {
			usage.QuotaUsage[kind] += n
		}
		return
	}
	for kind, n := range after.QuotaUsage {
		if usage.QuotaUsage[kind] -= n; usage.QuotaUsage[kind] == 0 {
			delete(usage.QuotaUsage, kind)
		}
	}
	book(usage, after, tx.now)
	tx.recordHolding(after)
}

// countUrgent moves the number of a project's live urgent jobs.
func (tx *txn) countUrgent(job *structs.Job, n int) {
	if job.Priority == structs.PriorityUrgent {
		tx.ownUsage(job.Project).Urgent += n
	}
}

// book adds what an allocation held until now to the ledger of its project and
// pool. The span is cut at full hours in whole milliseconds, so the parts add
// up to the whole.
func book(usage *structs.ProjectUsage, alloc *structs.Allocation, now structs.UnixNano) {
	from, to := int64(alloc.PlacedAt)/int64(time.Millisecond), int64(now)/int64(time.Millisecond)
	from = max(from, to-LedgerHoursMax*hourMs) // what is older would be dropped at once
	if alloc.PlacedAt == 0 || from >= to || len(alloc.QuotaUsage) == 0 {
		return // a clock that went backward charges nothing
	}
	devices, milliCPU := total(alloc.QuotaUsage)
	at, known := slices.BinarySearchFunc(usage.Ledgers, alloc.Pool, func(l structs.Ledger, pool string) int {
		return strings.Compare(l.Pool, pool)
	})
	if !known {
		usage.Ledgers = slices.Insert(usage.Ledgers, at, structs.Ledger{Pool: alloc.Pool})
	}
	ledger := &usage.Ledgers[at]
	for from < to {
		hour := floorDiv(from, hourMs)
		span := min(to, (hour+1)*hourMs) - from
		bucket := bucketOf(ledger, hour)
		bucket.DeviceMs = addBounded(bucket.DeviceMs, devices, span)
		bucket.MilliCPUMs = addBounded(bucket.MilliCPUMs, milliCPU, span)
		from += span
	}
	if over := len(ledger.Buckets) - LedgerHoursMax; over > 0 {
		ledger.Buckets = slices.Delete(ledger.Buckets, 0, over)
	}
}

// total sums up a holding: devices of every kind, and thousandths of cores.
func total(held structs.QuotaUsage) (devices, milliCPU int64) {
	for kind, n := range held {
		if kind != structs.QuotaCPU {
			devices += n
		}
	}
	return devices, held[structs.QuotaCPU]
}

// bucketOf returns the bucket of an hour, made when there is none; the ledger is
// the caller's own.
func bucketOf(ledger *structs.Ledger, hour int64) *structs.LedgerBucket {
	at := len(ledger.Buckets) // nearly always the newest
	for at > 0 && ledger.Buckets[at-1].Hour > hour {
		at--
	}
	if at > 0 && ledger.Buckets[at-1].Hour == hour {
		return &ledger.Buckets[at-1]
	}
	ledger.Buckets = slices.Insert(ledger.Buckets, at, structs.LedgerBucket{Hour: hour})
	return &ledger.Buckets[at]
}

// floorDiv divides and rounds down, also below zero.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// addBounded returns sum + n*span, or the largest number when that is larger.
func addBounded(sum, n, span int64) int64 {
	if n > 0 && span > (math.MaxInt64-sum)/n {
		return math.MaxInt64
	}
	return sum + n*span
}

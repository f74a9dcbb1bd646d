package scheduler

import (
	"cmp"
	"math"
	"slices"
	"time"

	"nomadlike/nomadlike/structs"
)

// Fair share orders the projects of a pool by what they used of it of late:
// every device-hour, halved with each half-life that passed since, over the
// project's weight. Hours in the queue forgive some of it.
const (
	// coresPerDevice is how many cores count as one device.
	coresPerDevice = 16
	// fairAhead is how much of what a project uses now counts as used already,
	// so that projects without history take turns within one pass.
	fairAhead = time.Hour
	// fairTick is how often use is counted anew.
	fairTick = time.Minute
)

// fair reports whether a partition queue is ordered by fair share.
func (b *Board) fair(l *partitionQueue) bool {
	return b.settings.Order == OrderPool && l.record != nil && l.record.Order == structs.OrderFair
}

// share is what a project used of a pool.
type share struct {
	used   float64 // device-hours, decayed
	inUse  float64 // devices
	weight float64
}

// weighted is the use by weight: the smaller it is, the earlier the project is served.
func (s share) weighted() float64 {
	return (s.used + s.inUse*fairAhead.Hours()) / s.weight
}

// ranked orders entries of a partition queue: tier, then what an administrator moved, then
// what is guaranteed before what is borrowed, then, in a fair partition queue, the weighted use
// of the projects less what the hours in the queue forgive.
func (b *Board) ranked(l *partitionQueue, x *entry, xRank rank, y *entry, yRank rank) int {
	if c := cmp.Compare(y.job.Priority.Rank(), x.job.Priority.Rank()); c != 0 {
		return c
	}
	switch {
	case x.subjob.Moved != y.subjob.Moved:
		return first(x.subjob.Moved)
	case x.subjob.Moved:
		return comparePlace(x, y)
	case xRank.borrows != yRank.borrows:
		return first(yRank.borrows)
	case !b.fair(l):
		return b.before(x, y)
	}
	// All wait until the same now, so when they came is all that matters.
	s, t := xRank.share+l.record.AgeWeight*hours(x.job.SubmittedAt), yRank.share+l.record.AgeWeight*hours(y.job.SubmittedAt)
	if c := cmp.Compare(s, t); c != 0 {
		return c
	}
	return comparePlace(x, y)
}

func first(x bool) int {
	if x {
		return -1
	}
	return 1
}

// anyGuarantee reports whether something is guaranteed to some project.
func (a *accounts) anyGuarantee() bool {
	return slices.ContainsFunc(a.projects, func(p project) bool { return p.guaranteed() })
}

func (p *project) guaranteed() bool {
	return p.record != nil && slices.ContainsFunc(p.record.Quotas, func(q structs.Quota) bool { return q.Guaranteed > 0 })
}

// borrows reports whether a project has used up what is guaranteed to it of
// something that gangs of the shape ask for, so that one more would borrow.
func (a *accounts) borrows(project int32, sh *shape) bool {
	p := &a.projects[project]
	if !p.guaranteed() || sh.odd {
		return true
	}
	return usedUp(p.record, p.due(), sh.needs[0].least)
}

// usedUp reports whether a project holds all that is guaranteed to it of something
// in asked, or is guaranteed nothing in it at all.
func usedUp(record *structs.Project, usage *structs.ProjectUsage, asked structs.QuotaUsage) bool {
	own := false
	for _, quota := range record.Quotas {
		if asked.Of(quota) == 0 || quota.Guaranteed == 0 && quota.Maximum == nil {
			continue
		}
		if own = true; usage == nil && quota.Guarantee() <= 0 || usage != nil && usage.QuotaUsage.Of(quota) >= quota.Guarantee() {
			return true
		}
	}
	return !own
}

// hours counts from a recent day, so that little of a float's precision is lost.
func hours(at structs.UnixNano) float64 {
	const since = 1_700_000_000 // seconds
	return (time.Duration(at) - since*time.Second).Hours()
}

// orderOf returns the order of a partition queue's queue at now.
func (b *Board) orderOf(l *partitionQueue, now structs.UnixNano) func(x, y *entry) int {
	owners, fair := b.accounts.anyGuarantee(), b.fair(l)
	if !fair && !owners {
		return b.before
	}
	var shares []share
	if fair {
		shares = b.shares(l, now)
	}
	rankOf := func(e *entry) (r rank) {
		if fair {
			r.share = shares[e.project].weighted()
		}
		r.borrows = owners && b.accounts.borrows(e.project, b.queue.shapes.list[e.shape])
		return r
	}
	return func(x, y *entry) int { return b.ranked(l, x, rankOf(x), y, rankOf(y)) }
}

// shares counts the use of a fair partition queue by project.
func (b *Board) shares(l *partitionQueue, now structs.UnixNano) []share {
	counted := now - now%structs.UnixNano(fairTick)
	half := l.record.HalfLife.Std()
	if half <= 0 {
		half = structs.HalfLifeDefault.Std()
	}
	shares := make([]share, len(b.accounts.projects))
	for i := range b.accounts.projects {
		p := &b.accounts.projects[i]
		shares[i].weight = 1
		if p.record != nil && p.record.Weight > 0 {
			shares[i].weight = p.record.Weight
		}
		if p.usage == nil {
			continue
		}
		for k := range p.usage.Ledgers {
			if ledger := &p.usage.Ledgers[k]; ledger.Pool == l.pool {
				shares[i].used += decayed(ledger.Buckets, half, counted)
			}
		}
	}
	// Sums of whole milliseconds do not depend on the order of the runs.
	running := make([]int64, len(b.accounts.projects))
	devices := make([]int64, len(b.accounts.projects))
	for _, r := range b.queue.runs {
		e := &b.queue.entries[r.entry]
		if e.gang.pool != l.pool {
			continue
		}
		weight := e.gang.weight()
		devices[e.project] += int64(weight * 1000)
		if ran := counted.Sub(e.gang.placedAt); ran > 0 {
			running[e.project] += int64(weight * decayedSpan(ran, half).Hours() * 3600e3)
		}
	}
	for i := range shares {
		shares[i].used += float64(running[i]) / 3600e3
		shares[i].inUse = float64(devices[i]) / 1000
	}
	return shares
}

// decayed sums buckets in device-hours.
func decayed(buckets []structs.LedgerBucket, half time.Duration, now structs.UnixNano) float64 {
	sum := 0.0
	for i := range buckets {
		middle := structs.UnixNano(buckets[i].Hour)*structs.UnixNano(time.Hour) + structs.UnixNano(30*time.Minute)
		use := float64(buckets[i].DeviceMs) + float64(buckets[i].MilliCPUMs)/(1000*coresPerDevice)
		sum += use / 3600e3 * math.Exp2(-max(0, now.Sub(middle).Hours())/half.Hours())
	}
	return sum
}

// decayedSpan is what a span that ends now is worth when its earlier parts
// count less: the integral of the decay over it.
func decayedSpan(span, half time.Duration) time.Duration {
	lives := span.Hours() / half.Hours()
	return time.Duration(float64(half) / math.Ln2 * (1 - math.Exp2(-lives)))
}

// spent is what a gang that ended used.
type spent struct {
	project int32
	gang    *gang
}

// spend notes that a gang ends, when anybody will ask what it used.
func (b *Board) spend(e *entry) {
	if id, ok := b.queue.partitionByPool[e.gang.pool]; ok && b.fair(&b.queue.partitions[id]) {
		b.accounts.spending = append(b.accounts.spending, spent{e.project, e.gang})
	}
}

// bookAll adds what ended gangs used until now to the ledgers of their
// projects, as state.Apply does when allocations end.
func (a *accounts) bookAll(now structs.UnixNano) {
	for _, s := range a.spending {
		a.book(s, now)
	}
	a.spending = nil
}

func (a *accounts) book(s spent, now structs.UnixNano) {
	p := &a.projects[s.project]
	usage := structs.ProjectUsage{Project: p.name}
	if p.usage != nil {
		usage = *p.usage
	}
	usage.Ledgers = slices.Clone(usage.Ledgers)
	at := slices.IndexFunc(usage.Ledgers, func(l structs.Ledger) bool { return l.Pool == s.gang.pool })
	if at < 0 {
		at = len(usage.Ledgers)
		usage.Ledgers = append(usage.Ledgers, structs.Ledger{Pool: s.gang.pool})
	}
	ledger := &usage.Ledgers[at]
	ledger.Buckets = slices.Clone(ledger.Buckets)
	for from := s.gang.placedAt; from < now; {
		hour := int64(from) / int64(time.Hour)
		to := min(now, structs.UnixNano((hour+1)*int64(time.Hour)))
		place, found := slices.BinarySearchFunc(ledger.Buckets, hour, func(b structs.LedgerBucket, hour int64) int { return int(b.Hour - hour) })
		if !found {
			ledger.Buckets = slices.Insert(ledger.Buckets, place, structs.LedgerBucket{Hour: hour})
		}
		ms := to.Sub(from).Milliseconds()
		ledger.Buckets[place].DeviceMs += ms * int64(s.gang.devices)
		ledger.Buckets[place].MilliCPUMs += ms * s.gang.cpu
		from = to
	}
	p.usage = &usage
}

package scheduler

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"nomadlike/nomadlike/placement"
	"nomadlike/nomadlike/structs"
)

// Limits of explanations.
const (
	// ExplainMax is how many waiting gangs of a pool get figures and holders;
	// those behind them get a reason that does not change with every start, so
	// that a long queue does not fill the log.
	ExplainMax = 10
	// HoldersMax bounds the jobs that one explanation names.
	HoldersMax = 8
	// holderNodesMax bounds the nodes that are searched for holders.
	holderNodesMax = 32
)

// outlook is whether a shape could start if nothing else ran.
type outlook struct {
	able   uint64              // the alternatives that could, as bits
	need   int                 // the first of these
	reason *structs.WaitReason // why none could, nil when one could
	line   *structs.WaitReason // what gangs say that stand far behind
}

// can reports whether an alternative could; those beyond the bits count as able.
func (o outlook) can(need int) bool { return need >= 64 || o.able&(1<<need) != 0 }

// judge finds out whether a gang that has no room now could start on the ready
// nodes once they are free. If not, it blocks nobody.
func (b *Board) judge(sh *shape) outlook {
	memo := &b.queue.memos[sh.id]
	if memo.judged == b.nodes.built {
		return memo.outlook
	}
	memo.judged = b.nodes.built
	memo.outlook = outlook{line: waitFor("scheduler.in_line", "nodes", sh.size(), "need", sh.text())}
	for i := range sh.needs {
		if sh.odd || !b.fitsEmpty(sh, &sh.needs[i]) {
			continue
		}
		if memo.able == 0 {
			memo.need = i
		}
		memo.able |= 1 << min(i, 63)
	}
	if memo.able == 0 {
		memo.reason = b.misfit(sh)
	}
	return memo.outlook
}

// fitsEmpty reports whether the gang would fit the ready nodes if they were empty.
func (b *Board) fitsEmpty(sh *shape, n *need) bool {
	spec := n.Spec()
	able, head, smaller := 0, false, 0
	pools := make(map[int32]int)
	last := n.job.SpecOf(n.Index(), sh.nodes-1, sh.nodes)
	partial := last.DeviceCount() != spec.DeviceCount() && sh.min == sh.nodes
	for _, at := range b.nodes.candidates(sh, b.queue.partitionOf(poolName(sh.pool)).id) {
		switch {
		case b.nodes.able(n, at):
			if able++; spec.RDMA {
				pools[b.nodes.states[at].partition]++
				able = max(able-1, pools[b.nodes.states[at].partition])
			}
			head = head || b.nodes.headFits(n, at)
		case partial && smaller == 0 && b.nodes.couldRun(n, last, b.nodes.states[at].node):
			smaller = 1
		}
		if head && able+smaller >= sh.min {
			return true
		}
	}
	return false
}

func poolName(pool string) string {
	if pool == "" {
		return structs.PoolDefault
	}
	return pool
}

// misfit says why a gang does not even fit the empty ready nodes: nodes are
// away, or the cluster as it is built is too small for it.
func (b *Board) misfit(sh *shape) *structs.WaitReason {
	if b.nodes.floor.Len() == 0 {
		return waitFor("scheduler.no_nodes")
	}
	best := -1
	var of placement.Outlook
	for i := range sh.needs {
		look := b.nodes.floor.Outlook(&sh.needs[i].Need)
		if len(look.Unknown) > 0 {
			return neverFor("scheduler.node_unknown", "node", look.Unknown[0])
		}
		if look.Built > best {
			best, of = look.Built, look
		}
	}
	elsewhere, within, bar := 0, 0, (*structs.Reason)(nil)
	var withheld *placement.Obstacle // what keeps its secrets or its code from the gang where it could run
	for i := range of.Barred {
		switch bars := &of.Barred[i]; bars.Reason.ID {
		case "scheduler.node_pool", "scheduler.node_not_named", "scheduler.node_dedicated":
			elsewhere += bars.Nodes
		default:
			if within += bars.Nodes; bar == nil {
				bar = &bars.Reason
			}
			switch bars.Reason.ID {
			case "scheduler.node_old", "scheduler.node_old_code", "scheduler.node_old_data", "scheduler.node_masks":
				if withheld == nil {
					withheld = bars
				}
			}
		}
	}
	known, lack := of.Known-elsewhere, (*structs.WaitReason)(nil)
	if best <= 0 {
		lack = b.lacking(sh)
	}
	switch {
	case best <= 0 && known == 0 && sh.pool != "":
		return neverFor("scheduler.pool_empty", "pool", sh.pool)
	case best <= 0 && known == 0 && sh.named == nil:
		return neverFor("scheduler.all_dedicated")
	case withheld != nil && best < sh.min && best+withheld.Nodes >= sh.min:
		return barText(sh, &withheld.Reason)
	case best <= 0 && known == within && bar != nil:
		if text := barText(sh, bar); text != nil {
			return text
		}
	case lack != nil:
		return lack
	case best >= sh.min && len(of.Away) > 0 && of.Able < sh.min:
		if reason := b.inMaintenance(sh); reason != nil {
			return reason
		}
		return waitFor("scheduler.nodes_away", "nodes", sh.size(), "need", sh.text(),
			"large", best, "ready", of.Able, "away", shorten(of.Away))
	case best >= sh.min && !of.HeadPort:
		return neverFor("scheduler.no_port", "port", placement.PortsText(sh.needs[0].heads))
	}
	return neverFor("scheduler.too_large", "nodes", sh.size(), "need", sh.text(), "large", max(best, 0), "known", known-within)
}

// barText says what keeps the gang off every node of its pool.
func barText(sh *shape, reason *structs.Reason) *structs.WaitReason {
	switch reason.ID {
	case "scheduler.node_driver":
		return neverFor("scheduler.driver_missing", "driver", sh.needs[0].job.Task.Driver)
	case "scheduler.node_storage":
		return neverFor("scheduler.storage_missing", "kind", reason.Params["kind"], "storage", reason.Params["storage"])
	case "scheduler.node_rdma", "scheduler.pool_rdma":
		return neverFor("scheduler.no_rdma")
	case "scheduler.pool_raw":
		return neverFor("scheduler.no_raw", "pool", reason.Params["pool"], "node", reason.Params["node"], "cause", reason.Params["cause"])
	case "scheduler.node_old":
		return neverFor("scheduler.old_nodes", "node", reason.Params["node"], "version", reason.Params["version"])
	case "scheduler.node_old_code":
		return neverFor("scheduler.old_nodes_code", "node", reason.Params["node"], "version", reason.Params["version"])
	case "scheduler.node_old_data":
		return neverFor("scheduler.old_nodes_data", "node", reason.Params["node"], "version", reason.Params["version"])
	case "scheduler.node_masks":
		return neverFor("scheduler.no_masks", "driver", reason.Params["driver"])
	case "scheduler.node_driver_version":
		return neverFor("scheduler.driver_version_missing", "want", sh.needs[0].job.Placement.DriverVersion)
	}
	return nil
}

// figures counts where a gang has room, what the other nodes lack, and who
// holds it.
func (p *pass) figures(w *queueWalk, e *entry) *structs.WaitReason {
	a, sh := &p.queue.groups[e.group].answer, p.queue.shapes.list[e.shape]
	if a.serial != p.serial { // the walk did not come to it: what it says is of an earlier pass
		*a = answer{serial: p.serial}
	}
	if a.figure != nil {
		return a.figure
	}
	if a.figure = p.nominatedBefore(sh); a.figure != nil {
		return a.figure
	}
	n := &sh.needs[p.judge(sh).need]
	options := p.optionsFor(e, n)
	short := p.nodes.floor.Shortage(&n.Need, options)
	reservers, nominees := p.reservers(sh, w, n)
	closing := p.closingFor(e, sh, w, n)
	switch {
	case closing != nil && short.Room < sh.min && short.Room+len(closing.nodes) >= sh.min:
		a.figure = closing.reason(sh, short.Room)
	case len(nominees) > 0 && short.Room+short.Reserved >= sh.min && len(reservers) == 0:
		a.figure = waitFor("scheduler.claimed_nodes", "nodes", sh.size(), "need", sh.text(),
			"room", short.Room+short.Reserved, "kept", short.Reserved, "job", p.queue.jobName(nominees[0]))
		a.figure.Holders = nominees
	case len(reservers) > 0 && short.Room+short.Reserved >= sh.min:
		a.figure = waitFor("scheduler.reserved", "nodes", sh.size(), "need", sh.text(),
			"room", short.Room+short.Reserved, "kept", short.Reserved, "job", p.queue.jobName(reservers[0]))
		a.figure.Holders = reservers[:1]
	default:
		lack := placement.PortsText(n.heads) // every rank has room but rank 0 lacks its own port
		if len(short.Lacks) > 0 && short.Room < sh.min {
			lack = short.Lacks[0].What
		}
		a.figure = waitFor("scheduler.no_room", "nodes", sh.size(), "need", sh.text(),
			"room", short.Room, "large", short.Able, "short", lack)
		a.figure.Holders = p.holdersOn(short.Full)
	}
	return a.figure
}

// nominatedBefore says which machines of a VIP job are nominated for which jobs;
// nil when none has. Holders name whom, so that only those who may see a job read its name.
func (p *pass) nominatedBefore(sh *shape) *structs.WaitReason {
	if sh.vip == nil {
		return nil
	}
	var names, holders []string
	for _, at := range p.machines(sh) {
		s := &p.nodes.states[at]
		if s.nominatedFor == "" {
			continue
		}
		names = append(names, s.node.Name)
		job, _, _ := strings.Cut(s.nominatedFor, "/")
		if !slices.Contains(holders, job) && len(holders) < HoldersMax {
			holders = append(holders, job)
		}
	}
	if len(names) == 0 {
		return nil
	}
	reason := waitFor("scheduler.claimed_machines", "nodes", len(names), "names", shorten(names))
	reason.Holders = holders
	return reason
}

// reservers lists the jobs with reserved or nominated nodes on which the
// gang has room, in the order in which they are found.
func (p *pass) reservers(sh *shape, w *queueWalk, n *need) (reservers, nominees []string) {
	for _, at := range p.nodes.candidates(sh, w.partition) {
		s := &p.nodes.states[at]
		if s.reservation == 0 && s.nominatedFor == "" || !p.nodes.roomFor(n, sh.vip != nil, at) {
			continue
		}
		if s.nominatedFor != "" {
			job, _, _ := strings.Cut(s.nominatedFor, "/")
			if !slices.Contains(nominees, job) && len(nominees) < HoldersMax {
				nominees = append(nominees, job)
			}
		} else if job := p.promises.reservations[s.reservation-1].jobID; p.isReserved(int(at)) && !slices.Contains(reservers, job) {
			reservers = append(reservers, job)
		}
	}
	return reservers, nominees
}

// jobName is the name of a job on the board, its id when it is not there.
func (q *queue) jobName(id string) string {
	if at, ok := q.found.find(q.entries, id, 0); ok {
		return q.entries[at].job.Name
	}
	for i := range q.entries {
		if e := &q.entries[i]; e.stand != gone && e.jobID == id {
			return e.job.Name
		}
	}
	return id
}

// holdersOn lists the jobs that occupy nodes, each once, those of
// the first nodes first, by id on each.
func (b *Board) holdersOn(nodes []int) []string {
	var holders []string
	for _, at := range nodes[:min(len(nodes), holderNodesMax)] {
		var here []string
		for record := b.nodes.states[at].seats; record >= 0; record = b.nodes.occupants[record].next {
			here = append(here, b.queue.entries[b.nodes.occupants[record].entry].jobID)
		}
		slices.Sort(here)
		for _, id := range here {
			if !slices.Contains(holders, id) {
				holders = append(holders, id)
			}
			if len(holders) == HoldersMax {
				return holders
			}
		}
	}
	return holders
}

// overQuota says that a quota keeps a gang waiting, and who uses it.
func (p *pass) overQuota(e *entry, sh *shape, problem *structs.Reason) *structs.WaitReason {
	wait := &structs.WaitReason{Reason: *problem, Never: true}
	for i := range sh.needs {
		wait.Never = wait.Never && structs.QuotaProblem(p.accounts.projects[e.project].record, nil, sh.needs[i].least) != nil
	}
	var holders []string
	for _, r := range p.queue.runs {
		if v := &p.queue.entries[r.entry]; v.project == e.project && usesAny(v.gang.quotaUsage) {
			holders = append(holders, v.jobID)
		}
	}
	slices.Sort(holders)
	holders = slices.Compact(holders)
	wait.Holders = holders[:min(len(holders), HoldersMax)]
	return wait
}

func usesAny(used structs.QuotaUsage) bool {
	for _, amount := range used {
		if amount > 0 {
			return true
		}
	}
	return false
}

// explain puts into the plan what differs from what waiting gangs say.
func (p *pass) explain() {
	x := &explainer{pass: p, news: make(map[int32]int)}
	for _, id := range p.promised {
		if e := &p.queue.entries[id]; e.stand == waiting {
			x.update(id).NoPassingAt = e.strictAt
		}
	}
	if !p.settings.Quiet {
		x.waits()
	}
	p.plan.Waits = x.chosen()
}

// explainer gathers the updates of one pass. First come those that say
// something for the first time; the rest of a very long list waits for the
// next pass.
type explainer struct {
	*pass
	list []structs.WaitUpdate
	news map[int32]int // entry -> its place in list
}

// update returns the update of an entry, and makes it when it is new.
func (x *explainer) update(id int32) *structs.WaitUpdate {
	at, ok := x.news[id]
	if !ok {
		at = len(x.list)
		x.news[id] = at
		x.list = append(x.list, structs.WaitUpdate{JobID: x.queue.entries[id].jobID, Subjob: x.queue.entries[id].index})
	}
	return &x.list[at]
}

// say lets an entry say why it waits, while there is room for more.
func (x *explainer) say(id int32, wait *structs.WaitReason) {
	e := &x.queue.entries[id]
	switch {
	case equalWait(e.recorded, wait):
		return
	case len(x.list) >= WaitsMax:
		x.queue.partitions[e.partition].stale = true // go on in the next pass
		return
	}
	x.note(id)
	e.recorded = wait
	x.update(id).Wait = wait
}

func (x *explainer) waits() {
	for _, id := range x.queue.sortedEntries(x.untold()) {
		until := x.queue.entries[id].subjob.NotBefore.Time().Truncate(time.Second).Format(time.RFC3339)
		x.say(id, waitFor("scheduler.restart_delay", "until", until))
	}
	for _, id := range x.queue.sortedEntries(slices.Clone(x.promises.nominations)) {
		if x.queue.entries[id].stand == nominated {
			x.say(id, x.nominationText(&x.queue.entries[id]))
		}
	}
	own := make(map[int32]bool)
	// In the order of the pools' names: partition queues have the order in which they were met.
	for _, i := range x.walksByPool() {
		w := &x.walks[i]
		for _, id := range x.foremost(w) {
			own[id] = true
			x.say(id, x.figures(w, &x.queue.entries[id]))
			x.queue.distrust(id)
		}
	}
	// In the order of the queue, so that the plan does not depend on the order
	// in which groups were made.
	var rest []int32
	for i := range x.walks {
		for _, at := range x.queue.partitions[x.walks[i].partition].groups {
			rest = append(rest, x.oddOf(at, own)...)
		}
	}
	now := earliest(rest, WaitsMax-len(x.list), func(a, b int32) bool { return x.crosses(&x.queue.entries[a], &x.queue.entries[b]) < 0 })
	for _, id := range now {
		x.say(id, x.queue.groups[x.queue.entries[id].group].tail)
	}
	for _, id := range rest[len(now):] {
		x.queue.partitions[x.queue.entries[id].partition].stale = true // go on in the next pass
	}
}

// untold lists what waits for a time and does not say so yet. What has a time to begin
// was given its explanation when it was submitted.
func (x *explainer) untold() []int32 {
	var ids []int32
	for _, id := range x.queue.idle {
		if e := &x.queue.entries[id]; e.recorded == nil || e.recorded.ID != "scheduler.begin" {
			ids = append(ids, id)
		}
	}
	return ids
}

// walksByPool returns the places of the walks in the order of their pools' names.
func (x *explainer) walksByPool() []int {
	order := make([]int, len(x.walks))
	for i := range order {
		order[i] = i
	}
	pool := func(at int) string { return x.queue.partitions[x.walks[at].partition].pool }
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(pool(a), pool(b)) })
	return order
}

// foremost lists the first of the gangs of a partition queue that wait for room, in the
// order of the queue.
func (x *explainer) foremost(w *queueWalk) []int32 {
	if x.full {
		return nil // who waits is not known yet
	}
	var ids []int32
	for _, at := range x.queue.partitions[w.partition].groups {
		g := &x.queue.groups[at]
		switch g.answer.fault {
		case faultBound, faultQuota, faultQuotaReserved, faultNever:
			if g.answer.serial == x.serial {
				continue
			}
		}
		if x.judge(x.queue.shapes.list[g.key.shape]).reason == nil {
			ids = append(ids, g.queue[:min(len(g.queue), ExplainMax)]...)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	order := x.orderOf(&x.queue.partitions[w.partition], x.now)
	return earliest(ids, ExplainMax, func(a, b int32) bool { return order(&x.queue.entries[a], &x.queue.entries[b]) < 0 })
}

// oddOf lists the entries of a group that say something else than they should,
// but for those that are explained one by one.
func (x *explainer) oddOf(at int32, own map[int32]bool) []int32 {
	g := &x.queue.groups[at]
	if len(g.queue) == 0 {
		return nil
	}
	if tail := x.tailOf(g); tail != nil && !equalWait(g.tail, tail) {
		g.tail = tail
		g.odd = slices.Clone(g.queue)
		for _, id := range g.odd {
			x.queue.entries[id].oddIn = at
		}
	}
	if g.tail == nil {
		return nil
	}
	var odd []int32
	g.odd = slices.DeleteFunc(g.odd, func(id int32) bool {
		e := &x.queue.entries[id]
		switch {
		case e.group != at:
			return true
		case own[id]:
			return false
		case equalWait(e.recorded, g.tail):
			e.oddIn = -1
			return true
		}
		odd = append(odd, id)
		return false
	})
	return odd
}

// tailOf is what the gangs of a group say that are not explained one by one;
// nil: who waits for room is not known yet.
func (x *explainer) tailOf(g *group) *structs.WaitReason {
	found := faultNone
	if g.answer.serial == x.serial {
		found = g.answer.fault
	}
	switch found {
	case faultBound, faultQuota, faultQuotaReserved, faultNever:
		return g.answer.reason
	}
	if x.full {
		return nil
	}
	return x.judge(x.queue.shapes.list[g.key.shape]).line
}

// nominationText says for whom a nominated gang waits.
func (x *explainer) nominationText(e *entry) *structs.WaitReason {
	var nodes []string
	indexes := make([]int, 0, len(e.nomination.nodes))
	for _, at := range e.nomination.nodes {
		if node := x.nodes.states[at].node; node != nil {
			nodes = append(nodes, node.Name)
			indexes = append(indexes, int(at))
		}
	}
	wait := waitFor("scheduler.claim", "nodes", len(e.nomination.nodes), "names", shorten(nodes))
	wait.Holders = x.holdersOn(indexes)
	return wait
}

// chosen returns the updates: those of gangs that said nothing yet first.
func (x *explainer) chosen() []structs.WaitUpdate {
	if len(x.list) == 0 {
		return nil
	}
	slices.SortStableFunc(x.list, func(a, b structs.WaitUpdate) int { return cmp.Compare(x.silent(b), x.silent(a)) })
	return x.list
}

func (x *explainer) silent(u structs.WaitUpdate) int {
	if id, ok := x.queue.found.find(x.queue.entries, u.JobID, u.Subjob); ok && x.queue.entries[id].subjob.Wait == nil {
		return 1
	}
	return 0
}

// Explain reports why a subjob waited in the newest pass that explained; nil when
// it does not wait or was not explained yet.
func (b *Board) Explain(jobID string, subjob int) *structs.WaitReason {
	id, ok := b.queue.found.find(b.queue.entries, jobID, subjob)
	if !ok || b.queue.entries[id].stand == running {
		return nil
	}
	return b.queue.entries[id].recorded
}

func equalWait(a, b *structs.WaitReason) bool {
	if a == b {
		return true
	}
	return a != nil && b != nil && a.ID == b.ID && a.Never == b.Never && maps.Equal(a.Params, b.Params) && slices.Equal(a.Holders, b.Holders)
}

func waitFor(id string, params ...any) *structs.WaitReason {
	return &structs.WaitReason{Reason: *structs.NewReason(id, params...)}
}

func neverFor(id string, params ...any) *structs.WaitReason {
	reason := waitFor(id, params...)
	reason.Never = true
	return reason
}

// shorten joins names, naming a few of many.
func shorten(names []string) string {
	const shown = 5
	if len(names) <= shown {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:shown], ", ") + ", … (" + strconv.Itoa(len(names)) + ")"
}

package scheduler

import (
	"iter"
	"slices"
	"strconv"
	"strings"

	"nomadlike/nomadlike/structs"
)

// holdersFunc yields the allocations that hold resources on a node.
type holdersFunc func(nodeID string) iter.Seq[*structs.Allocation]

// outlook is whether a shape could start if nothing else ran.
type outlook struct {
	need   int                 // the first alternative that could
	reason *structs.WaitReason // why none could, nil when one could
}

// judge finds out, once for each shape, whether a gang that has no room now
// could start on the ready nodes once they are free. If not, it blocks nobody.
func (w *walk) judge(sh *shape) outlook {
	if sh.judged {
		return sh.outlook
	}
	sh.judged = true
	for i := range sh.needs {
		if w.fitsEmpty(sh.job, &sh.needs[i]) {
			sh.outlook = outlook{need: i}
			return sh.outlook
		}
	}
	sh.outlook = outlook{reason: w.misfit(sh)}
	return sh.outlook
}

// fitsEmpty tells whether the gang would fit the ready nodes if they were
// empty; it asks exactly what choose asks, so that a reservation is only ever
// made for a gang that can use it.
func (w *walk) fitsEmpty(job *structs.Job, n *need) bool {
	if job.Nodes < 1 || job.Nodes > structs.RanksMax {
		return false
	}
	able, head := 0, false
	for i := range w.able(job, n) {
		able++
		head = head || w.seats[i].portsFitWhenEmpty(n.ports0)
		if head && able >= job.Nodes {
			return true
		}
	}
	return false
}

// misfit says why a gang does not even fit the empty ready nodes: nodes are
// away, or the cluster as it is built is too small for it.
func (w *walk) misfit(sh *shape) *structs.WaitReason {
	job := sh.job
	for _, name := range job.Placement.Nodes {
		if len(w.named(name)) == 0 {
			return never("scheduler.node_unknown", "node", name)
		}
	}
	inPool, withDriver := 0, 0
	for i := range w.all(job) {
		node := w.seats[i].node
		if len(job.Placement.Nodes) > 0 || job.Placement.Pool == "" || node.Pool == job.Placement.Pool {
			inPool++
			if node.HasDriver(job.Task.Driver) {
				withDriver++
			}
		}
	}
	switch {
	case len(w.seats) == 0:
		return waiting("scheduler.no_nodes")
	case inPool == 0:
		return never("scheduler.pool_empty", "pool", job.Placement.Pool)
	case withDriver == 0:
		return never("scheduler.driver_missing", "driver", job.Task.Driver)
	}
	best, away := 0, []string(nil)
	for i := range sh.needs {
		able, missing := w.ableAsBuilt(job, &sh.needs[i])
		best = max(best, able)
		if able >= job.Nodes && len(away) == 0 {
			away = missing
		}
	}
	if len(away) > 0 {
		return waiting("scheduler.nodes_away", "nodes", job.Nodes, "need", sh.needText(),
			"large", best, "ready", best-len(away), "away", shorten(away))
	}
	if best >= job.Nodes && best > 0 { // large enough in all but the ports of rank 0
		return never("scheduler.no_port", "port", portsLacking(sh.needs[0].ports0))
	}
	return never("scheduler.too_large", "nodes", job.Nodes, "need", sh.needText(), "large", best, "known", inPool)
}

// ableAsBuilt counts the nodes, ready or not and sick devices included, that
// could hold a rank when empty, and names those that can not now.
func (w *walk) ableAsBuilt(job *structs.Job, n *need) (able int, away []string) {
	for i := range w.all(job) {
		node := w.seats[i].node
		if structs.NodeProblem(job, node) != nil {
			continue
		}
		built := *node
		built.Devices = slices.Clone(node.Devices)
		for k := range built.Devices {
			built.Devices[k].Healthy = true
		}
		s := newSeat(&built, nil)
		if s.lack(n, n.ports) != "" {
			continue
		}
		able++
		if !node.Schedulable() || !w.seats[i].holdsWhenEmpty(n, n.ports) {
			away = append(away, node.Name)
		}
	}
	return able, away
}

// explain says why a gang without room waits.
func (w *walk) explain(sh *shape) *structs.WaitReason {
	switch {
	case sh.outlook.reason != nil:
		return sh.outlook.reason
	case w.waiting > ExplainMax:
		if sh.fixed == nil {
			sh.fixed = waiting("scheduler.in_line", "nodes", sh.job.Nodes, "need", sh.needText())
		}
		return sh.fixed
	}
	if sh.explained == nil {
		sh.explained = w.figures(sh)
	}
	return sh.explained
}

// figures counts where the gang has room, what the other nodes lack, and who
// holds it.
func (w *walk) figures(sh *shape) *structs.WaitReason {
	job, n := sh.job, &sh.needs[sh.outlook.need]
	able, room, roomKept := 0, 0, 0
	var keeper *reservation
	var full []int32
	lacks := make(map[string]int)
	for i := range w.able(job, n) {
		s := &w.seats[i]
		able++
		lack := s.lack(n, n.ports)
		switch {
		case lack != "":
			lacks[lack]++
			full = append(full, i)
		case s.kept != nil && !s.kept.spares(s, n):
			roomKept++
			if keeper == nil {
				keeper = s.kept
			}
		default:
			room++
		}
	}
	if keeper != nil && room+roomKept >= job.Nodes {
		reason := waiting("scheduler.reserved", "nodes", job.Nodes, "need", sh.needText(),
			"room", room+roomKept, "kept", roomKept, "job", keeper.job.Name)
		reason.Holders = []string{keeper.job.ID}
		return reason
	}
	short := commonest(lacks)
	if room >= job.Nodes { // every rank has room but rank 0 lacks its own port
		short = portsLacking(n.ports0)
	}
	reason := waiting("scheduler.no_room", "nodes", job.Nodes, "need", sh.needText(),
		"room", room, "large", able, "short", short)
	reason.Holders = w.holdersOn(full)
	return reason
}

// holdersOn lists the jobs that hold resources on seats, each once, those of
// the first nodes first, by id on each node.
func (w *walk) holdersOn(seats []int32) []string {
	var holders []string
	for _, i := range seats[:min(len(seats), holderNodesMax)] {
		here := slices.Clone(w.seats[i].started)
		for alloc := range w.holder(w.seats[i].node.ID) {
			here = append(here, alloc.JobID)
		}
		slices.Sort(here)
		for _, id := range slices.Compact(here) {
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

// commonest is the key with the largest count, the first by name among equals.
func commonest(counts map[string]int) string {
	best := ""
	for name, count := range counts {
		if best == "" || count > counts[best] || count == counts[best] && name < best {
			best = name
		}
	}
	return best
}

func never(id string, params ...any) *structs.WaitReason {
	reason := waiting(id, params...)
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

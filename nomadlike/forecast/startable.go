package forecast

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"nomadlike/nomadlike/scheduler"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/structs/outlook"
)

// cardModel is what there is of one model of cards on the nodes that a job may ask
// for.
type cardModel struct {
	kind, model string
	nodes       map[int]int // nodes by how many of the cards they have
	free        int         // of all nodes
	most        int         // free on one node that takes work
	drivers     map[string]bool
}

// CouldStart reports how many jobs with cards of each model would start at once: the
// scheduler's own pass at now is tried with whole nodes, half nodes, as many cards
// as one node has free, and single cards. probe is complete but for its cards, and
// names a pool when only that counts; a driver is chosen from those that its nodes
// have. The board is the caller's own: it is brought to now. Models stand in the
// order of kind and model.
func CouldStart(board *scheduler.Board, probe *structs.Job, now structs.UnixNano, seed uint64) []outlook.Startable {
	settings := board.Settings()
	settings.Quiet, settings.Alone = true, true
	board.SetSettings(settings)
	models := cardModels(board, probe.Placement.Pool)
	settle(board, now, seed)
	out := []outlook.Startable{}
	for _, m := range models {
		out = append(out, m.try(board, probe, now, seed))
	}
	return out
}

// cardModels lists the models of a pool, of all with "".
func cardModels(board *scheduler.Board, pool string) []*cardModel {
	found := make(map[[2]string]*cardModel)
	for node, usage := range board.Nodes() {
		if pool != "" && node.PoolName() != pool {
			continue
		}
		have, free := make(map[*cardModel]int), make(map[*cardModel]int)
		for i := range node.Devices {
			d := &node.Devices[i]
			m := found[[2]string{d.Kind, d.Model}]
			if m == nil {
				m = &cardModel{kind: d.Kind, model: d.Model, nodes: make(map[int]int), drivers: make(map[string]bool)}
				found[[2]string{d.Kind, d.Model}] = m
			}
			have[m]++
			if d.Healthy && !uses(usage, d.ID) {
				free[m]++
			}
		}
		for m, count := range have {
			m.nodes[count]++
			m.free += free[m]
			if node.Schedulable() {
				m.most = max(m.most, free[m])
			}
			for _, driver := range node.Drivers {
				m.drivers[driver] = true
			}
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b *cardModel) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.model, b.model))
	})
}

// whole is how many cards most of the nodes have; of two such numbers, the larger.
func (m *cardModel) whole() (cards int) {
	for _, count := range slices.Sorted(maps.Keys(m.nodes)) {
		if m.nodes[count] >= m.nodes[cards] {
			cards = count
		}
	}
	return cards
}

// try fills in how many jobs of each size start.
func (m *cardModel) try(board *scheduler.Board, probe *structs.Job, now structs.UnixNano, seed uint64) outlook.Startable {
	out := outlook.Startable{Kind: m.kind, Model: m.model, Node: m.whole(), Free: m.free}
	if m.most == 0 {
		return out
	}
	job := *probe
	job.Resources = []structs.Resources{probe.Resources[0]}
	for _, driver := range []string{structs.DriverExec, structs.DriverDocker} {
		if !m.drivers[driver] {
			continue
		}
		job.Task.Driver = driver
		starts := func(cards int) int {
			job.Resources[0].Devices = []structs.DeviceRequest{{Kind: m.kind, Model: m.model, Count: cards}}
			count := min(m.free/cards, outlook.SubjobsMax)
			n := starting(board, &job, count, now, seed)
			out.More = out.More || n == outlook.SubjobsMax && m.free/cards > n
			if n > 0 {
				out.Most = max(out.Most, cards)
			}
			return n
		}
		if out.Single = starts(1); out.Single == 0 {
			continue
		}
		if m.most > 1 {
			starts(m.most)
		}
		if out.Node > 1 {
			out.Whole = starts(out.Node)
		} else {
			out.Whole = out.Single
		}
		if half := out.Node / 2; half > 1 {
			out.Half = starts(half)
		}
		break
	}
	return out
}

// starting is how many of so many jobs that are alike start at now, of a board that
// is settled and stays as it is.
func starting(board *scheduler.Board, job *structs.Job, count int, now structs.UnixNano, seed uint64) (starts int) {
	if count == 0 {
		return 0
	}
	trial := board.Clone()
	own := *job
	own.ID, own.SubmittedAt = newcomerID, now
	for i := range count {
		trial.Submit(&own, &structs.Subjob{JobID: own.ID, Index: i, State: structs.JobQueued, QueuedAt: now, CreateIndex: math.MaxUint64})
	}
	for range settleMax {
		plan := trial.Pass(now, seed)
		if len(plan.Gangs) == 0 {
			break
		}
		for i := range plan.Gangs {
			if gang := &plan.Gangs[i]; gang.JobID == own.ID && !gang.Nominate && len(gang.Victims) == 0 {
				starts++
			}
		}
	}
	return starts
}

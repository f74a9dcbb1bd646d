package httpapi

import (
	"iter"
	"maps"
	"slices"
	"strconv"
	"sync"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/scheduler"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// queueHandlers answers about what waits.
type queueHandlers struct {
	*core
	boards  Boards
	futures Forecasts
}

// read lists what waits. Places count all that waits; what the caller
// may not see is left out and only leaves gaps.
func (h *queueHandlers) read(r *front.Request) (*api.Queue, error) {
	if err := h.refresh(r); err != nil {
		return nil, err
	}
	q := front.Query{R: r}
	limit, after, pool, project, foresee := q.Limit(), q.Text("after"), q.Text("pool"), q.Text("project"), q.Bool("forecast")
	begin, err := strconv.Atoi(after)
	if after != "" && (err != nil || begin < 0) {
		q.Refuse("after", after)
	}
	if q.Err != nil {
		return nil, q.Err
	}
	snapshot, err := h.block(r, everything((*state.Snapshot).WatchQueue))
	if err != nil {
		return nil, err
	}
	reached := sync.OnceValue(func() *reach { return newReach(snapshot) })
	asked := func(job *structs.Job) bool {
		return (pool == "" || slices.Contains(reached().of(job), pool)) && (project == "" || job.Project == project)
	}
	served, err := h.inOrder(r, snapshot)
	if err != nil {
		return nil, err
	}
	out := api.Queue{Entries: []api.QueueEntry{}}
	// What is hidden is counted in the whole queue. Where jobs need not be looked at one
	// by one for that, the end of the page is the end of the walk.
	counted := pool == "" && r.Caller.Principal.SeesByOwner()
	if counted {
		out.Hidden = hiddenOf(r, snapshot, project)
	}
	position := 0
	for job, subjob := range served {
		position++
		if counted && position <= begin || !asked(job) {
			continue
		}
		if !mayRead(r, job) {
			if !counted {
				out.Hidden++
			}
			continue
		}
		if position <= begin || out.Next != "" {
			continue
		}
		if len(out.Entries) == limit {
			out.Next = strconv.Itoa(out.Entries[limit-1].Position)
			if counted {
				break
			}
			continue
		}
		out.Entries = append(out.Entries, queueEntry(r, snapshot, job, subjob, position))
	}
	if foresee {
		if err := h.addForecasts(r, out.Entries); err != nil {
			return nil, err
		}
	}
	return &out, nil
}

// hiddenOf counts what waits that the caller may not see, of a project, or of all.
func hiddenOf(r *front.Request, snapshot *state.Snapshot, project string) (hidden int) {
	for waiting := range snapshot.Waiting() {
		alike := structs.Job{Project: waiting.Project, User: waiting.User, Access: waiting.Access}
		if (project == "" || waiting.Project == project) && !mayRead(r, &alike) {
			hidden += waiting.Subjobs
		}
	}
	return hidden
}

// inOrder returns what waits in the order in which it is served. The state keeps
// it by tier and place; where fair share or guarantees reorder it, the scheduler
// knows, pool by pool.
func (h *queueHandlers) inOrder(r *front.Request, snapshot *state.Snapshot) (iter.Seq2[*structs.Job, *structs.Subjob], error) {
	if !reorders(snapshot) {
		return snapshot.Queue(), nil
	}
	var queue []scheduler.Queued
	if err := h.boards.Consult(r.Context(), func(board *scheduler.Board) { queue = slices.Collect(board.Queued()) }); err != nil {
		return nil, err
	}
	return func(yield func(*structs.Job, *structs.Subjob) bool) {
		for i := range queue {
			if !yield(queue[i].Job, queue[i].Subjob) {
				return
			}
		}
	}, nil
}

// reorders reports whether anything but tier and place orders the queue.
func reorders(snapshot *state.Snapshot) bool {
	for pool := range snapshot.Pools() {
		if pool.Order == structs.OrderFair {
			return true
		}
	}
	for project := range snapshot.Projects() {
		if slices.ContainsFunc(project.Quotas, func(q structs.Quota) bool { return q.Guaranteed > 0 }) {
			return true
		}
	}
	return false
}

// addForecasts adds to entries of the queue when they start.
func (h *queueHandlers) addForecasts(r *front.Request, entries []api.QueueEntry) error {
	shown, err := h.futures.ForecastSnapshot(r.Context(), 0, "")
	if err != nil {
		return err
	}
	for i := range entries {
		entry := &entries[i]
		for start := range shown.OfJob(entry.JobID) {
			if start.Subjob == entry.Subjob {
				when := start.When
				entry.Forecast = &when
				break
			}
		}
	}
	return nil
}

// mayRead reports whether the caller may read a job.
func mayRead(r *front.Request, job *structs.Job) bool {
	return auth.Allowed(r.Caller.Principal, auth.VerbRead, jobObject(job)).Allow
}

func queueEntry(r *front.Request, snapshot *state.Snapshot, job *structs.Job, subjob *structs.Subjob, position int) api.QueueEntry {
	entry := api.QueueEntry{
		JobID: job.ID, JobNumber: job.Number, JobName: job.Name, Project: job.Project, User: job.User, Subjob: subjob.Index,
		Priority: job.Priority, Preemptible: job.Preemptible, VIP: job.VIP != nil, Pool: job.Placement.Pool,
		Nodes: job.Nodes, Devices: job.SpecAt(0).DeviceCount() * job.Nodes, QueuedAt: subjob.QueuedAt,
		Position: position, Moved: subjob.Moved, Wait: waitOf(r, snapshot, subjob.Wait), Awaits: awaits(snapshot, subjob),
	}
	if subjob.Wait != nil {
		entry.Holders = holders(r, snapshot, waitHolders(snapshot, job, subjob.Wait))
	}
	return entry
}

// waitOf is why something waits as the caller may hear it: without the ids and
// names of jobs that it may not read.
func waitOf(r *front.Request, snapshot *state.Snapshot, wait *structs.WaitReason) *structs.WaitReason {
	if wait == nil || len(wait.Holders) == 0 {
		return wait
	}
	hidden := func(id string) bool {
		view, ok := snapshot.Job(id)
		return !ok || !mayRead(r, view.Job)
	}
	told := *wait
	if nameless, names := namelessWaits[wait.ID]; names && hidden(wait.Holders[0]) {
		told.ID, told.Params = nameless, maps.Clone(wait.Params)
		delete(told.Params, "job")
	}
	told.Holders = slices.DeleteFunc(slices.Clone(wait.Holders), hidden)
	return &told
}

// namelessWaits are the reasons whose text names the first of the jobs that are
// waited for, and what those hear who may not read it.
var namelessWaits = map[string]string{
	"scheduler.claimed_nodes": "scheduler.claimed_nodes_hidden",
	"scheduler.reserved":      "scheduler.reserved_hidden",
}

// subjobsOf copies rows out as the caller may see them.
func subjobsOf(r *front.Request, snapshot *state.Snapshot, rows []*structs.Subjob) []structs.Subjob {
	out := values(rows)
	for i := range out {
		out[i].Wait = waitOf(r, snapshot, out[i].Wait)
		if len(out[i].Pending) > 0 {
			out[i].Pending = pendingShown(r, snapshot, out[i].Pending)
		}
	}
	return out
}

// holders names those of the jobs that the caller may read. Where there are
// others, an empty one at the end says no more than that.
func holders(r *front.Request, snapshot *state.Snapshot, ids []string) []api.JobRef {
	var list []api.JobRef
	hidden := false
	for _, id := range ids {
		view, ok := snapshot.Job(id)
		switch {
		case !ok:
		case mayRead(r, view.Job):
			ref := jobRef(snapshot, id, 0)
			ref.Idle = idleOf(snapshot, id)
			list = append(list, ref)
		default:
			hidden = true
		}
	}
	if hidden {
		list = append(list, api.JobRef{})
	}
	return list
}

// keptLook bounds the nodes at which waitHolders looks.
const keptLook = 64

// waitHolders lists the jobs that hold what a job waits for: those that the
// scheduler knows, and before them those that have ended and are held for people
// to look at, which run for it no more. These are looked for on the nodes that the
// job names, or, where nobody else is known, on those that could hold it.
func waitHolders(snapshot *state.Snapshot, job *structs.Job, wait *structs.WaitReason) []string {
	if wait.ID != "scheduler.no_room" && wait.ID != "scheduler.claim" {
		return wait.Holders
	}
	named := job.VIP != nil || len(job.Placement.Nodes) > 0
	if !named && len(wait.Holders) > 0 {
		return wait.Holders
	}
	var kept []string
	looked := 0
	for node, usage := range snapshot.Nodes() {
		if usage == nil || usage.Allocs == 0 || !couldRun(job, node, snapshot.Pool(node.PoolName())) {
			continue
		}
		if looked++; looked > keptLook {
			break
		}
		for alloc := range snapshot.Occupants(node.ID) {
			if alloc.Hold != nil && len(kept) < scheduler.HoldersMax && !slices.Contains(kept, alloc.JobID) && !slices.Contains(wait.Holders, alloc.JobID) {
				kept = append(kept, alloc.JobID)
			}
		}
	}
	return append(kept, wait.Holders...)
}

// idleLook bounds the subjobs and allocations at which idleOf looks.
const idleLook = 64

// idleOf reports why a job uses nothing of what it holds; "": it may use it.
func idleOf(snapshot *state.Snapshot, id string) string {
	looked, paused, holding, kept := 0, 0, 0, 0
	for subjob := range snapshot.Subjobs(id) {
		if looked++; looked > idleLook {
			return ""
		}
		if subjob.State.Terminal() {
			continue
		}
		holding++
		if subjob.Control != nil && subjob.Control.Paused {
			paused++
		}
	}
	if holding > 0 && paused == holding {
		return api.IdlePaused
	}
	looked, holding = 0, 0
	resting := 0
	for alloc := range snapshot.AllocsOfJob(id) {
		if looked++; looked > idleLook {
			return ""
		}
		switch {
		case alloc.Hold != nil:
			kept++
		case !alloc.Status.Terminal():
			holding++
			if alloc.IdleSince != 0 {
				resting++
			}
		}
	}
	switch {
	case kept > 0 && holding == 0:
		return api.IdleHeld
	case resting > 0 && resting == holding:
		return api.IdleCards
	}
	return ""
}

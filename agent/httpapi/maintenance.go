package httpapi

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/server"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/structs/outlook"
)

const (
	// maintenanceIDBytes is how long the id of a window is, at random.
	maintenanceIDBytes = 4
	// maintenanceLate is how far in the past a start may lie that was meant to be now.
	maintenanceLate = time.Minute
)

// maintenanceHandlers closes nodes for windows of maintenance.
type maintenanceHandlers struct {
	*core
	futures Forecasts
	rand    io.Reader
}

func (h *maintenanceHandlers) list(r *front.Request) (*api.MaintenanceList, error) {
	if err := h.refresh(r); err != nil {
		return nil, err
	}
	snapshot, err := h.block(r, everything((*state.Snapshot).WatchCluster, (*state.Snapshot).WatchNodes))
	if err != nil {
		return nil, err
	}
	out := api.MaintenanceList{Windows: []api.MaintenanceDetail{}}
	for _, window := range snapshot.Maintenance() {
		detail, err := h.detail(r, snapshot, window)
		if err != nil {
			return nil, err
		}
		out.Windows = append(out.Windows, *detail)
	}
	return &out, nil
}

func (h *maintenanceHandlers) add(r *front.Request, body *api.MaintenanceRequest) (*api.MaintenanceChanged, error) {
	snapshot, err := h.replica.Consistent(r.Context())
	if err != nil {
		return nil, err
	}
	id := make([]byte, maintenanceIDBytes)
	if _, err := io.ReadFull(h.rand, id); err != nil {
		return nil, fmt.Errorf("draw the id of a window: %w", err)
	}
	now := structs.At(h.now())
	window := structs.Maintenance{ID: hex.EncodeToString(id), Start: cmp.Or(body.Start, now)}
	if err := amend(&window, body, snapshot, now); err != nil {
		return nil, err
	}
	r.Made(window.ID)
	return h.put(r, window)
}

func (h *maintenanceHandlers) change(r *front.Request, body *api.MaintenanceRequest) (*api.MaintenanceChanged, error) {
	snapshot, err := h.replica.Consistent(r.Context())
	if err != nil {
		return nil, err
	}
	known, err := maintenanceNamed(snapshot, r.ID)
	if err != nil {
		return nil, err
	}
	window, length := *known, known.End.Sub(known.Start)
	if body.Start != 0 {
		if window.Begun && body.Start != window.Start {
			return nil, maintenanceInvalid("start", "agent.maintenance_begun", "start", window.Start.Time().Format(time.RFC3339))
		}
		window.Start = body.Start
		window.End = window.Start.Add(length) // moved as a whole, unless an end is given too
	}
	if err := amend(&window, body, snapshot, structs.At(h.now())); err != nil {
		return nil, err
	}
	return h.put(r, window)
}

func (h *maintenanceHandlers) end(r *front.Request) (*api.Changed, error) {
	snapshot, err := h.replica.Consistent(r.Context())
	if err != nil {
		return nil, err
	}
	known, err := maintenanceNamed(snapshot, r.ID)
	if err != nil {
		return nil, err
	}
	return h.core.change(r, structs.CommandMaintenanceStep, structs.MaintenanceStep{ID: known.ID, Step: structs.MaintenanceRemove})
}

// put proposes a window, and tells it with what runs into it.
func (h *maintenanceHandlers) put(r *front.Request, window structs.Maintenance) (*api.MaintenanceChanged, error) {
	index, err := h.propose(r, structs.CommandMaintenancePut, structs.MaintenancePut{Maintenance: window})
	if err != nil {
		return nil, err
	}
	r.SetIndex(index)
	snapshot := h.store.Snapshot()
	if known, err := maintenanceNamed(snapshot, window.ID); err == nil {
		window = *known
	}
	detail, err := h.detail(r, snapshot, window)
	if err != nil {
		return nil, err
	}
	return &api.MaintenanceChanged{Changed: api.Changed{Index: index}, Window: *detail}, nil
}

// maintenanceNamed finds a window by its id, or by the beginning of it.
func maintenanceNamed(snapshot *state.Snapshot, id string) (*structs.Maintenance, error) {
	windows := snapshot.Maintenance()
	var found []*structs.Maintenance
	for i := range windows {
		if windows[i].ID == id {
			return &windows[i], nil
		}
		if id != "" && strings.HasPrefix(windows[i].ID, id) {
			found = append(found, &windows[i])
		}
	}
	switch len(found) {
	case 0:
		return nil, structs.NewError(structs.CodeNotFound, "state.maintenance_unknown", "id", id)
	case 1:
		return found[0], nil
	}
	return nil, structs.NewError(structs.CodeConflict, "agent.maintenance_ambiguous", "id", id, "count", len(found))
}

// maintenanceInvalid refuses a field of a request.
func maintenanceInvalid(field, id string, params ...any) *structs.Error {
	return structs.NewError(structs.CodeInvalid, id, append([]any{"field", field}, params...)...)
}

// amend takes into a window what a request says, and checks the whole.
func amend(window *structs.Maintenance, body *api.MaintenanceRequest, snapshot *state.Snapshot, now structs.UnixNano) error {
	if body.Reason != nil {
		window.Reason = strings.TrimSpace(*body.Reason)
	}
	if body.KeepRunning != nil {
		window.KeepRunning = *body.KeepRunning
	}
	if err := amendNodes(window, body, snapshot); err != nil {
		return err
	}
	switch {
	case body.End != 0 && body.For != 0:
		return maintenanceInvalid("for", "agent.maintenance_end_twice")
	case body.End != 0:
		window.End = body.End
	case body.For < 0:
		return maintenanceInvalid("for", "agent.maintenance_short")
	case body.For != 0:
		window.End = window.Start.Add(min(body.For, 2*structs.MaintenanceLengthMax).Std())
	case window.End == 0:
		return maintenanceInvalid("for", "agent.maintenance_endless")
	}
	at := func(t structs.UnixNano) string { return t.Time().Format(time.RFC3339) }
	switch {
	case !window.Begun && window.Start < now.Add(-maintenanceLate):
		return maintenanceInvalid("start", "agent.maintenance_past", "start", at(window.Start), "now", at(now))
	case window.Start > now.Add(structs.MaintenanceAheadMax.Std()):
		return maintenanceInvalid("start", "agent.maintenance_far", "start", at(window.Start), "most", structs.FormatDuration(structs.MaintenanceAheadMax))
	case window.End <= window.Start:
		return maintenanceInvalid("end", "agent.maintenance_backward", "start", at(window.Start), "end", at(window.End))
	case window.End <= now:
		return maintenanceInvalid("end", "agent.maintenance_over", "end", at(window.End), "now", at(now))
	case window.End.Sub(window.Start) > structs.MaintenanceLengthMax.Std():
		return maintenanceInvalid("end", "agent.maintenance_long", "most", structs.FormatDuration(structs.MaintenanceLengthMax))
	case len(window.Reason) > structs.MaintenanceReasonMax:
		return maintenanceInvalid("reason", "agent.maintenance_reason", "most", structs.MaintenanceReasonMax)
	}
	return nil
}

// amendNodes takes over which nodes a request names, and makes sure that they are
// known.
func amendNodes(window *structs.Maintenance, body *api.MaintenanceRequest, snapshot *state.Snapshot) error {
	ways := 0
	for _, given := range []bool{len(body.Nodes) > 0, body.Pool != "", body.All} {
		if given {
			ways++
		}
	}
	switch {
	case ways > 1:
		return maintenanceInvalid("nodes", "agent.maintenance_nodes_twice")
	case ways == 0 && (len(window.Nodes) > 0 || window.Pool != "" || window.All):
		return nil
	case ways == 0:
		return maintenanceInvalid("nodes", "agent.maintenance_no_nodes")
	}
	window.Nodes, window.Pool, window.All = nil, body.Pool, body.All
	if body.All {
		return nil
	}
	var names, pools []string
	byID := make(map[string]string)
	for node := range snapshot.Nodes() {
		names, byID[node.ID] = append(names, node.Name), node.Name
		if pool := node.PoolName(); !slices.Contains(pools, pool) {
			pools = append(pools, pool)
		}
	}
	for pool := range snapshot.Pools() {
		if !slices.Contains(pools, pool.Name) {
			pools = append(pools, pool.Name)
		}
	}
	slices.Sort(pools)
	if body.Pool != "" && !slices.Contains(pools, body.Pool) {
		return unknownIn("pool", "agent.maintenance_pool", "agent.maintenance_pool_nearest", body.Pool, pools)
	}
	slices.Sort(names)
	for _, name := range body.Nodes {
		if named, ok := byID[name]; ok {
			name = named
		}
		if _, known := slices.BinarySearch(names, name); !known {
			return unknownIn("nodes", "agent.maintenance_node", "agent.maintenance_node_nearest", name, names)
		}
		window.Nodes = append(window.Nodes, name)
	}
	slices.Sort(window.Nodes)
	window.Nodes = slices.Compact(window.Nodes)
	return nil
}

// unknownIn says by id that nobody has a name, or by near which one was probably meant.
func unknownIn(field, id, near, name string, known []string) error {
	if nearest := structs.Nearest(name, known); nearest != "" {
		return maintenanceInvalid(field, near, "name", name, "nearest", nearest)
	}
	return maintenanceInvalid(field, id, "name", name)
}

// gangKey names a gang.
type gangKey struct {
	jobID  string
	subjob int
}

// detail tells what a window covers, and which gangs run into it.
func (h *maintenanceHandlers) detail(r *front.Request, snapshot *state.Snapshot, window structs.Maintenance) (*api.MaintenanceDetail, error) {
	out := api.MaintenanceDetail{Maintenance: window, Names: []string{}, Running: []api.MaintenanceJob{}}
	shown, err := h.futures.ForecastSnapshot(r.Context(), 0, "")
	if err != nil {
		return nil, err
	}
	ends := expectedEnds(shown, &window)
	may, found, hidden := newViewer(r, snapshot), make(map[gangKey]int), make(map[gangKey]bool)
	for node := range snapshot.Nodes() {
		if !window.Covers(node) {
			continue
		}
		out.Names = append(out.Names, node.Name)
		for alloc := range snapshot.Occupants(node.ID) {
			key := gangKey{alloc.JobID, alloc.Subjob}
			if alloc.Status.Terminal() {
				continue
			}
			if at, ok := found[key]; ok {
				if names := &out.Running[at].Nodes; !slices.Contains(*names, node.Name) {
					*names = append(*names, node.Name)
				}
				continue
			}
			job, ok := runsInto(snapshot, alloc, &window, ends[key])
			switch {
			case !ok:
			case !may.job(alloc.JobID):
				hidden[key] = true
			default:
				found[key] = len(out.Running)
				job.Nodes = []string{node.Name}
				out.Running = append(out.Running, job)
			}
		}
	}
	slices.Sort(out.Names)
	for i := range out.Running {
		slices.Sort(out.Running[i].Nodes)
	}
	slices.SortFunc(out.Running, func(a, b api.MaintenanceJob) int {
		return cmp.Or(cmp.Compare(a.JobName, b.JobName), cmp.Compare(a.JobID, b.JobID), cmp.Compare(a.Subjob, b.Subjob))
	})
	out.Others = len(hidden)
	return &out, nil
}

// runsInto describes the gang of an allocation, and reports whether it may run
// still when a window starts: its end is not as good as certain before that, by the
// forecast or by its time limit.
func runsInto(snapshot *state.Snapshot, alloc *structs.Allocation, window *structs.Maintenance, ends expectedEnd) (api.MaintenanceJob, bool) {
	view, ok := snapshot.Job(alloc.JobID)
	if !ok {
		return api.MaintenanceJob{}, false
	}
	job := api.MaintenanceJob{
		JobID: alloc.JobID, JobName: view.Job.Name, Project: view.Job.Project, User: view.Job.User, Subjob: alloc.Subjob,
		Expected: ends.p50, Checkpoint: view.Job.Checkpoint != nil,
	}
	if attempt := snapshot.Attempt(alloc.JobID, alloc.Subjob, alloc.Attempt); attempt != nil && view.Job.TimeLimit > 0 && attempt.RunningAt > 0 {
		job.Limit = attempt.RunningAt.Add(view.Job.TimeLimit.Std())
	}
	if job.Expected == window.Start {
		job.Expected = 0 // the forecast knows the window, which ends it
	}
	return job, window.Begun || (job.Limit == 0 || job.Limit > window.Start) && (ends.p90 == 0 || ends.p90 >= window.Start)
}

// expectedEnd is when a gang that runs is expected to end; 0: nobody knows.
type expectedEnd struct{ p50, p90 structs.UnixNano }

// expectedEnds is when the gangs that run on nodes of a window are expected to end.
func expectedEnds(shown *server.ForecastSnapshot, window *structs.Maintenance) map[gangKey]expectedEnd {
	ends := make(map[gangKey]expectedEnd)
	drawn := shown.Timeline(timelineHoursMax*structs.Duration(time.Hour), window.Covers)
	for i := range drawn.Rows {
		for k := range drawn.Rows[i].Bars {
			if bar := &drawn.Rows[i].Bars[k]; bar.Kind == outlook.BarRunning {
				ends[gangKey{bar.JobID, bar.Subjob}] = expectedEnd{bar.P50, bar.P90}
			}
		}
	}
	return ends
}

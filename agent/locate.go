package agent

import (
	"slices"
	"strings"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

const (
	idLengthMax    = 128  // bytes of an id or name in a path
	candidatesMax  = 1000 // objects looked at for a prefix
	ambiguousShown = 5    // of them named in the refusal
)

// locate implements doors.
func (s *site) locate(r *request) (auth.Object, error) {
	kind := auth.ObjectKind(r.route.Kind)
	switch r.route.From {
	case api.FromKind:
		return auth.Object{Kind: kind}, nil
	case api.FromCaller:
		if r.caller.token == nil {
			return auth.Object{Kind: kind}, nil // judged as anonymous, and refused
		}
		r.found = r.caller.token
		return tokenObject(r.caller.token), nil
	case api.FromBody:
		return s.locateBody(r)
	case api.FromProject:
		if !plausibleID(r.id) {
			return auth.Object{}, auth.NotFound(kind, r.id)
		}
		return auth.Object{Kind: kind, Project: r.id, ID: r.id}, nil
	}
	if r.caller.principal.Kind == auth.KindAnonymous {
		return auth.Object{Kind: kind}, nil
	}
	if err := s.refresh(r); err != nil {
		return auth.Object{}, err
	}
	if !plausibleID(r.id) {
		return auth.Object{}, auth.NotFound(kind, r.id)
	}
	snapshot := s.store.Snapshot()
	switch r.route.From {
	case api.FromJob:
		return locateJob(r, snapshot)
	case api.FromAllocation:
		return locateAllocation(r, snapshot)
	case api.FromNode:
		return locateNode(r, snapshot)
	case api.FromToken:
		return locateToken(r, snapshot)
	}
	panic("agent: route " + r.route.Name + " has no source for its object")
}

func plausibleID(id string) bool {
	if id == "" || len(id) > idLengthMax {
		return false
	}
	return !strings.ContainsFunc(id, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-')
	})
}

// locateJob finds a job by id, by name, or by a unique prefix of its id. Only
// jobs that the caller may read are candidates for name and prefix, so that
// an ambiguity tells nothing about others.
func locateJob(r *request, snapshot *state.Snapshot) (auth.Object, error) {
	view, ok := snapshot.Job(r.id)
	if !ok {
		var err error
		if view, err = findJob(r, snapshot); err != nil {
			return auth.Object{}, err
		}
	}
	r.restsOn(structs.RestJob, view.Job.ID, view.Standing.CreateIndex)
	return foundJob(r, view.Job), nil
}

func foundJob(r *request, job *structs.Job) auth.Object {
	object := jobObject(job)
	r.id, r.found = job.ID, job
	// A refusal repeats what the caller typed: the full id of a hidden job
	// must not come out.
	object.ID = r.PathValue("id")
	return object
}

func findJob(r *request, snapshot *state.Snapshot) (state.JobView, error) {
	readable := func(view state.JobView) bool {
		return auth.Allowed(r.caller.principal, auth.VerbRead, jobObject(view.Job)).Allow
	}
	named := jobsNamed(r, snapshot, readable)
	if len(named) == 1 {
		return named[0], nil
	}
	candidates := named
	if len(candidates) == 0 {
		for _, view := range snapshot.JobsWithPrefix(r.id, candidatesMax) {
			if readable(view) {
				candidates = append(candidates, view)
			}
		}
	}
	switch len(candidates) {
	case 0:
		return state.JobView{}, auth.NotFound(auth.ObjectJob, r.id)
	case 1:
		return candidates[0], nil
	}
	ids := make([]string, len(candidates))
	for i, view := range candidates {
		ids[i] = view.Job.ID
	}
	return state.JobView{}, ambiguous(r.id, ids)
}

// jobsNamed gives the newest job of a name in the caller's project, or in
// each project for callers of the whole cluster.
func jobsNamed(r *request, snapshot *state.Snapshot, readable func(state.JobView) bool) []state.JobView {
	if project := r.caller.principal.Project; project != "" {
		if view, ok := snapshot.JobNamed(project, r.id); ok && readable(view) {
			return []state.JobView{view}
		}
		return nil
	}
	newest := map[string]state.JobView{}
	var projects []string
	for view := range snapshot.Jobs() {
		if view.Job.Name != r.id || !readable(view) {
			continue
		}
		if _, seen := newest[view.Job.Project]; !seen {
			projects = append(projects, view.Job.Project)
		}
		newest[view.Job.Project] = view // oldest first, so the last one stays
	}
	views := make([]state.JobView, len(projects))
	for i, project := range projects {
		views[i] = newest[project]
	}
	return views
}

func ambiguous(id string, matches []string) error {
	slices.Sort(matches)
	shown := matches[:min(len(matches), ambiguousShown)]
	text := strings.Join(shown, ", ")
	if len(matches) > len(shown) {
		text += ", …"
	}
	return structs.NewError(structs.CodeInvalid, "agent.ambiguous", "id", id, "matches", text)
}

func locateAllocation(r *request, snapshot *state.Snapshot) (auth.Object, error) {
	alloc := snapshot.Alloc(r.id)
	if alloc == nil {
		var readable []*structs.Allocation
		for _, candidate := range snapshot.AllocsWithPrefix(r.id, candidatesMax) {
			view, ok := snapshot.Job(candidate.JobID)
			if ok && auth.Allowed(r.caller.principal, auth.VerbRead, jobObject(view.Job)).Allow {
				readable = append(readable, candidate)
			}
		}
		if len(readable) > 1 {
			ids := make([]string, len(readable))
			for i, candidate := range readable {
				ids[i] = candidate.ID
			}
			return auth.Object{}, ambiguous(r.id, ids)
		}
		if len(readable) == 0 {
			return auth.Object{}, noAllocation(r.id)
		}
		alloc = readable[0]
	}
	view, ok := snapshot.Job(alloc.JobID)
	if !ok {
		return auth.Object{}, noAllocation(r.id)
	}
	r.restsOn(structs.RestJob, view.Job.ID, view.Standing.CreateIndex)
	object := jobObject(view.Job)
	object.Node = alloc.NodeID
	object.ID = r.PathValue("id")
	r.id, r.found = alloc.ID, alloc
	return object, nil
}

// noAllocation is the answer for an allocation that does not exist or that
// the caller may not know of.
func noAllocation(id string) *structs.Error { return auth.NotFound("allocation", id) }

func locateNode(r *request, snapshot *state.Snapshot) (auth.Object, error) {
	node := snapshot.Node(r.id)
	if node == nil {
		candidates := snapshot.NodesNamed(r.id)
		if len(candidates) > 1 { // the machine was set up anew: whoever is not there any more is not meant
			candidates = slices.DeleteFunc(slices.Clone(candidates), func(n *structs.Node) bool {
				return n.Status == structs.NodeLost || n.Status == structs.NodeLeft
			})
		}
		if len(candidates) == 0 {
			candidates = snapshot.NodesWithPrefix(r.id, candidatesMax)
		}
		if len(candidates) > 1 {
			ids := make([]string, len(candidates))
			for i, candidate := range candidates {
				ids[i] = candidate.ID
			}
			return auth.Object{}, ambiguous(r.id, ids)
		}
		if len(candidates) == 0 {
			return auth.Object{}, auth.NotFound(auth.ObjectNode, r.id)
		}
		node = candidates[0]
	}
	r.id, r.found = node.ID, node
	return nodeObject(node), nil
}

func locateToken(r *request, snapshot *state.Snapshot) (auth.Object, error) {
	token := snapshot.Token(r.id)
	if token == nil { // the same answer as for one that is not the caller's
		return auth.Object{Kind: auth.ObjectToken, ID: r.id}, nil
	}
	r.restsOn(structs.RestToken, token.ID, token.ModifyIndex)
	r.found = token
	return tokenObject(token), nil
}

package httpapi

import (
	"slices"
	"strings"

	"nomadlike/agent/httpapi/front"
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

// Locate implements doors.
func (s *handlers) Locate(r *front.Request) (auth.Object, error) {
	kind := auth.ObjectKind(r.Route.Kind)
	switch r.Route.From {
	case api.FromKind:
		return auth.Object{Kind: kind}, nil
	case api.FromCaller:
		if r.Caller.Token == nil {
			return auth.Object{Kind: kind}, nil // judged as anonymous, and refused
		}
		r.Found = r.Caller.Token
		return tokenObject(r.Caller.Token), nil
	case api.FromBody:
		return s.locateBody(r)
	case api.FromProject:
		if !plausibleID(r.ID) {
			return auth.Object{}, auth.NotFound(kind, r.ID)
		}
		return auth.Object{Kind: kind, Project: r.ID, ID: r.ID}, nil
	}
	if r.Caller.Principal.Kind == auth.KindAnonymous {
		return auth.Object{Kind: kind}, nil
	}
	if err := s.refresh(r); err != nil {
		return auth.Object{}, err
	}
	if !plausibleID(r.ID) {
		return auth.Object{}, auth.NotFound(kind, r.ID)
	}
	snapshot := s.store.Snapshot()
	switch r.Route.From {
	case api.FromJob:
		return locateJob(r, snapshot)
	case api.FromAllocation:
		return locateAllocation(r, snapshot)
	case api.FromNode:
		return locateNode(r, snapshot)
	case api.FromToken:
		return locateToken(r, snapshot)
	}
	panic("agent: route " + r.Route.Name + " has no source for its object")
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
func locateJob(r *front.Request, snapshot *state.Snapshot) (auth.Object, error) {
	view, ok := snapshot.Job(r.ID)
	if !ok {
		var err error
		if view, err = findJob(r, snapshot); err != nil {
			return auth.Object{}, err
		}
	}
	r.RestsOn(structs.RestJob, view.Job.ID, view.Standing.CreateIndex)
	return foundJob(r, view.Job), nil
}

func foundJob(r *front.Request, job *structs.Job) auth.Object {
	object := jobObject(job)
	r.ID, r.Found = job.ID, job
	// A refusal repeats what the caller typed: the full id of a hidden job
	// must not come out.
	object.ID = r.PathValue("id")
	return object
}

func findJob(r *front.Request, snapshot *state.Snapshot) (state.JobView, error) {
	readable := func(view state.JobView) bool {
		return auth.Allowed(r.Caller.Principal, auth.VerbRead, jobObject(view.Job)).Allow
	}
	named := jobsNamed(r, snapshot, readable)
	if len(named) == 1 {
		return named[0], nil
	}
	candidates := named
	if len(candidates) == 0 {
		for _, view := range snapshot.JobsWithPrefix(r.ID, candidatesMax) {
			if readable(view) {
				candidates = append(candidates, view)
			}
		}
	}
	switch len(candidates) {
	case 0:
		return state.JobView{}, auth.NotFound(auth.ObjectJob, r.ID)
	case 1:
		return candidates[0], nil
	}
	ids := make([]string, len(candidates))
	for i, view := range candidates {
		ids[i] = view.Job.ID
	}
	return state.JobView{}, ambiguous(r.ID, ids)
}

// jobsNamed gives the newest job of a name in the caller's project, or in
// each project for callers of the whole cluster.
func jobsNamed(r *front.Request, snapshot *state.Snapshot, readable func(state.JobView) bool) []state.JobView {
	if project := r.Caller.Principal.Project; project != "" {
		if view, ok := snapshot.JobNamed(project, r.ID); ok && readable(view) {
			return []state.JobView{view}
		}
		return nil
	}
	newest := map[string]state.JobView{}
	var projects []string
	for view := range snapshot.Jobs() {
		if view.Job.Name != r.ID || !readable(view) {
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

func locateAllocation(r *front.Request, snapshot *state.Snapshot) (auth.Object, error) {
	alloc := snapshot.Alloc(r.ID)
	if alloc == nil {
		var readable []*structs.Allocation
		for _, candidate := range snapshot.AllocsWithPrefix(r.ID, candidatesMax) {
			view, ok := snapshot.Job(candidate.JobID)
			if ok && auth.Allowed(r.Caller.Principal, auth.VerbRead, jobObject(view.Job)).Allow {
				readable = append(readable, candidate)
			}
		}
		if len(readable) > 1 {
			ids := make([]string, len(readable))
			for i, candidate := range readable {
				ids[i] = candidate.ID
			}
			return auth.Object{}, ambiguous(r.ID, ids)
		}
		if len(readable) == 0 {
			return auth.Object{}, noAllocation(r.ID)
		}
		alloc = readable[0]
	}
	view, ok := snapshot.Job(alloc.JobID)
	if !ok {
		return auth.Object{}, noAllocation(r.ID)
	}
	r.RestsOn(structs.RestJob, view.Job.ID, view.Standing.CreateIndex)
	object := jobObject(view.Job)
	object.Node = alloc.NodeID
	object.ID = r.PathValue("id")
	r.ID, r.Found = alloc.ID, alloc
	return object, nil
}

// noAllocation is the answer for an allocation that does not exist or that
// the caller may not know of.
func noAllocation(id string) *structs.Error { return auth.NotFound("allocation", id) }

func locateNode(r *front.Request, snapshot *state.Snapshot) (auth.Object, error) {
	node := snapshot.Node(r.ID)
	if node == nil {
		candidates := snapshot.NodesNamed(r.ID)
		if len(candidates) > 1 { // the machine was set up anew: whoever is not there any more is not meant
			candidates = slices.DeleteFunc(slices.Clone(candidates), func(n *structs.Node) bool {
				return n.Status == structs.NodeLost || n.Status == structs.NodeLeft
			})
		}
		if len(candidates) == 0 {
			candidates = snapshot.NodesWithPrefix(r.ID, candidatesMax)
		}
		if len(candidates) > 1 {
			ids := make([]string, len(candidates))
			for i, candidate := range candidates {
				ids[i] = candidate.ID
			}
			return auth.Object{}, ambiguous(r.ID, ids)
		}
		if len(candidates) == 0 {
			return auth.Object{}, auth.NotFound(auth.ObjectNode, r.ID)
		}
		node = candidates[0]
	}
	r.ID, r.Found = node.ID, node
	return nodeObject(node), nil
}

func locateToken(r *front.Request, snapshot *state.Snapshot) (auth.Object, error) {
	token := snapshot.Token(r.ID)
	if token == nil { // the same answer as for one that is not the caller's
		return auth.Object{Kind: auth.ObjectToken, ID: r.ID}, nil
	}
	r.RestsOn(structs.RestToken, token.ID, token.ModifyIndex)
	r.Found = token
	return tokenObject(token), nil
}

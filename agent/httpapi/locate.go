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
	candidatesMax  = 1000 // objects looked at for a prefix
	ambiguousShown = 5    // of them named in the refusal
)

// finders find what requests are about, in the newest state or the one that the
// caller asked for.
type finders struct{ *core }

func (f finders) job() front.Finder[*structs.Job] { return found(f.core, api.FromJob, locateJob) }

func (f finders) allocation() front.Finder[*structs.Allocation] {
	return found(f.core, api.FromAllocation, locateAllocation)
}

func (f finders) node() front.Finder[*structs.Node] { return found(f.core, api.FromNode, locateNode) }

// token finds nil where there is none, so that the policy is asked all the same.
func (f finders) token() front.Finder[*structs.Token] {
	return found(f.core, api.FromToken, locateToken)
}

func (f finders) user() front.Finder[*structs.User] {
	return found(f.core, api.FromUser, locateUser)
}

func (f finders) secret() front.Finder[*structs.Secret] {
	return found(f.core, api.FromSecret, locateSecret)
}

func (f finders) template() front.Finder[*structs.Template] {
	return found(f.core, api.FromTemplate, locateTemplate)
}

func (f finders) data() front.Finder[*structs.DataObject] {
	return found(f.core, api.FromData, locateData)
}

func (f finders) service() front.Finder[*structs.ServiceAccount] {
	return found(f.core, api.FromService, locateService)
}

// caller finds the caller's own token, nil for one without.
func (finders) caller() front.Finder[*structs.Token] {
	return front.Finder[*structs.Token]{From: api.FromCaller, Find: func(r *front.Request) (*structs.Token, auth.Object, error) {
		if r.Caller.Token == nil { // judged as anonymous, and refused
			return nil, auth.Object{Kind: auth.ObjectKind(r.Route.Kind)}, nil
		}
		return r.Caller.Token, tokenObject(r.Caller.Token), nil
	}}
}

// found makes a finder of a function that looks for the request's ID in a state.
// Nothing is looked for on behalf of callers that are refused whatever there is.
func found[Found any](c *core, from api.Source, locate func(*front.Request, *state.Snapshot) (Found, auth.Object, error)) front.Finder[Found] {
	return front.Finder[Found]{From: from, Find: func(r *front.Request) (none Found, object auth.Object, err error) {
		kind := auth.ObjectKind(r.Route.Kind)
		if r.Caller.Principal.Kind == auth.KindAnonymous {
			return none, auth.Object{Kind: kind}, nil
		}
		if err := c.refresh(r); err != nil {
			return none, auth.Object{}, err
		}
		switch {
		case from == api.FromSecret && len(r.ID) <= structs.SecretNameMax, from == api.FromTemplate && len(r.ID) <= structs.WordMax, from == api.FromData && len(r.ID) <= structs.WordMax: // its characters are judged when it is made
		case from == api.FromUser && structs.UserNameProblem(r.ID) != "", from != api.FromUser && !front.PlausibleID(r.ID):
			return none, auth.Object{}, auth.NotFound(kind, r.ID)
		}
		return locate(r, c.store.Snapshot())
	}}
}

func locateJob(r *front.Request, snapshot *state.Snapshot) (*structs.Job, auth.Object, error) {
	job, err := findJob(r, r.ID, snapshot)
	if err != nil {
		return nil, auth.Object{}, err
	}
	object := jobObject(job)
	r.ID = job.ID
	// A refusal repeats what the caller typed: the full id of a hidden job
	// must not come out.
	object.ID = r.PathValue("id")
	return job, object, nil
}

// findJob finds a job by id, by name, by number, or by a unique prefix of its id. Only
// jobs that the caller may read are candidates for all but the id, so that
// an ambiguity says nothing about others.
func findJob(r *front.Request, id string, snapshot *state.Snapshot) (*structs.Job, error) {
	if !front.PlausibleID(id) {
		return nil, auth.NotFound(auth.ObjectJob, id)
	}
	view, ok := snapshot.Job(id)
	if !ok {
		var err error
		if view, err = searchJob(r, id, snapshot); err != nil {
			return nil, err
		}
	}
	r.RestsOn(structs.RestJob, view.Job.ID, view.Status.CreateIndex)
	return view.Job, nil
}

// searchJob finds a job by name, by number or by a prefix of its id.
func searchJob(r *front.Request, id string, snapshot *state.Snapshot) (state.JobView, error) {
	readable := func(view state.JobView) bool {
		return auth.Allowed(r.Caller.Principal, auth.VerbRead, jobObject(view.Job)).Allow
	}
	named := jobsNamed(r, id, snapshot, readable)
	if len(named) == 1 {
		return named[0], nil
	}
	if view, ok := numbered(r, id, snapshot); ok && len(named) == 0 { // no name is of digits alone
		return view, nil
	}
	candidates := named
	if len(candidates) == 0 {
		for _, view := range snapshot.JobsWithPrefix(id, candidatesMax) {
			if readable(view) {
				candidates = append(candidates, view)
			}
		}
	}
	switch len(candidates) {
	case 0:
		return state.JobView{}, auth.NotFound(auth.ObjectJob, id)
	case 1:
		return candidates[0], nil
	}
	ids := make([]string, len(candidates))
	for i, view := range candidates {
		ids[i] = view.Job.ID
	}
	return state.JobView{}, ambiguous(id, ids)
}

// jobsNamed returns the newest job of a name in the project that the request acts
// in, or in each project for callers of the whole cluster that name none.
func jobsNamed(r *front.Request, id string, snapshot *state.Snapshot, readable func(state.JobView) bool) []state.JobView {
	if project := r.Caller.Standing.Project; r.Caller.Principal.Project != "" || r.Caller.Standing.Named {
		if view, ok := snapshot.JobNamed(project, id); ok && readable(view) {
			return []state.JobView{view}
		}
		return nil
	}
	newest := map[string]state.JobView{}
	var projects []string
	for view := range snapshot.Jobs() {
		if view.Job.Name != id || !readable(view) {
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

func locateAllocation(r *front.Request, snapshot *state.Snapshot) (*structs.Allocation, auth.Object, error) {
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
			return nil, auth.Object{}, ambiguous(r.ID, ids)
		}
		if len(readable) == 0 {
			return nil, auth.Object{}, noAllocation(r.ID)
		}
		alloc = readable[0]
	}
	view, ok := snapshot.Job(alloc.JobID)
	if !ok {
		return nil, auth.Object{}, noAllocation(r.ID)
	}
	r.RestsOn(structs.RestJob, view.Job.ID, view.Status.CreateIndex)
	object := jobObject(view.Job)
	object.Node = alloc.NodeID
	object.ID = r.PathValue("id")
	r.ID = alloc.ID
	return alloc, object, nil
}

// noAllocation is the answer for an allocation that does not exist or that
// the caller may not know of.
func noAllocation(id string) *structs.Error { return auth.NotFound("allocation", id) }

func locateNode(r *front.Request, snapshot *state.Snapshot) (*structs.Node, auth.Object, error) {
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
			return nil, auth.Object{}, ambiguous(r.ID, ids)
		}
		if len(candidates) == 0 {
			return nil, auth.Object{}, auth.NotFound(auth.ObjectNode, r.ID)
		}
		node = candidates[0]
	}
	r.ID = node.ID
	return node, nodeObject(node), nil
}

func locateToken(r *front.Request, snapshot *state.Snapshot) (*structs.Token, auth.Object, error) {
	token := snapshot.Token(r.ID)
	if token == nil { // the same answer as for one that is not the caller's
		return nil, auth.Object{Kind: auth.ObjectToken, ID: r.ID}, nil
	}
	r.RestsOn(structs.RestToken, token.ID, token.ModifyIndex)
	return token, tokenObject(token), nil
}

// jobObject is a job as the policy sees it.
func jobObject(job *structs.Job) auth.Object {
	return auth.Object{Kind: auth.ObjectJob, ID: job.ID, Project: job.Project, Owner: job.User, Access: auth.Access(job.Access)}
}

func nodeObject(node *structs.Node) auth.Object {
	return auth.Object{Kind: auth.ObjectNode, ID: node.ID, Node: node.ID}
}

// tokenObject's owner is whom the token speaks for.
func tokenObject(token *structs.Token) auth.Object {
	owner := token.User
	if owner == "" {
		owner = token.ID
	}
	return auth.Object{Kind: auth.ObjectToken, ID: token.ID, Owner: owner}
}

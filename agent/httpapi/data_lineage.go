package httpapi

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/server"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// take answers data.take: the log has the version begun, and the leader has it made.
func (h *dataHandlers) take(r *front.Request, known *structs.DataObject, body *api.DataTakeRequest) (*api.DataChanged, error) {
	if err := knownToAll(h.store.Snapshot(), h.members, wire.ProtocolKeep, "agent.data_old"); err != nil {
		return nil, err
	}
	snapshot := h.store.Snapshot()
	job, err := findJob(r, body.Job, snapshot)
	if err != nil {
		return nil, err
	}
	if !auth.Allowed(r.Caller.Principal, auth.VerbRead, jobObject(job)).Allow {
		return nil, auth.NotFound(auth.ObjectJob, body.Job)
	}
	if err := r.May(auth.VerbLogs, jobObject(job)); err != nil { // as for its files
		return nil, err
	}
	take, err := takeOf(snapshot, job, body)
	if err != nil {
		return nil, err
	}
	object := known.Copy()
	if known.Next == 0 {
		object.Owner, object.Access, object.Description = r.Caller.Principal.ID, cmp.Or(body.Access, structs.DataProject), body.Description
	}
	storage, refused := server.TakenStorage(snapshot, knownOr(known), object.Kind, cmp.Or(body.Storage, job.OutputStorage))
	switch {
	case refused != nil && refused.Params["storages"] != "":
		return nil, structs.NewError(structs.CodeInvalid, "agent.data_storage_which", "kind", object.Kind, "storages", refused.Params["storages"])
	case refused != nil:
		return nil, structs.NewError(structs.CodeConflict, "agent.data_no_storage", "kind", object.Kind)
	case body.Storage != "" && body.Storage != storage:
		return nil, structs.NewError(structs.CodeConflict, "state.data_storage", "kind", object.Kind, "name", object.Name, "storage", storage, "wanted", body.Storage)
	case body.Tag != "" && structs.DataTagProblem(body.Tag) != "":
		return nil, structs.NewError(structs.CodeInvalid, structs.DataTagProblem(body.Tag), "name", body.Tag, "max", structs.NameLengthMax)
	}
	object.Storage, object.Versions, object.Favourites = storage, nil, nil
	if err := dataProblem(object); err != nil {
		return nil, err
	}
	id := make([]byte, 16)
	if _, err := io.ReadFull(h.rand, id); err != nil {
		return nil, fmt.Errorf("draw id: %w", err)
	}
	upload := "take-" + hex.EncodeToString(id)
	index, err := h.propose(r, structs.CommandDataBegin, structs.DataBegin{
		Object: *object, UploadID: upload, Tag: body.Tag, JobID: take.JobID, Attempt: take.Attempt, Take: take,
	})
	version := 0
	if made := h.store.Snapshot().Data(object.Ref()); err == nil && made != nil {
		if v := made.Upload(upload); v != nil {
			version = v.Number
		}
	}
	return h.done(r, index, version, err)
}

func knownOr(known *structs.DataObject) *structs.DataObject {
	if known.Next == 0 {
		return nil
	}
	return known
}

// takeOf is what of a job is asked for. Pure.
func takeOf(snapshot *state.Snapshot, job *structs.Job, body *api.DataTakeRequest) (*structs.DataTake, error) {
	take := &structs.DataTake{JobID: job.ID, Attempt: body.Attempt, Path: body.Path}
	if body.Subjob != nil {
		take.Subjob = *body.Subjob
	}
	subjob := snapshot.Subjob(job.ID, take.Subjob)
	if subjob == nil {
		return nil, structs.NewError(structs.CodeNotFound, "state.take_attempt", "job", job.Name, "attempt", body.Attempt)
	}
	if take.Attempt == 0 {
		take.Attempt = subjob.Attempt
	}
	if body.Checkpoint > 0 {
		for i := range subjob.Checkpoints {
			saved := &subjob.Checkpoints[i]
			below, ok := structs.BelowOutput(saved.Path)
			if saved.Step == body.Checkpoint && saved.JobID == job.ID && ok {
				take.Path, take.Step = job.KeptPath(take.Subjob, below), saved.Step
				return take, nil
			}
		}
		return nil, structs.NewError(structs.CodeNotFound, "agent.take_checkpoint", "job", job.Name, "step", body.Checkpoint)
	}
	if body.Path != "" && !structs.BelowPath(body.Path) {
		return nil, structs.NewError(structs.CodeInvalid, "agent.data_source", "value", body.Path)
	}
	if body.Subjob != nil {
		take.Path = job.KeptPath(take.Subjob, body.Path)
	}
	return take, nil
}

// lineage answers data.lineage.
func (h *dataHandlers) lineage(r *front.Request, known *structs.DataObject) (*api.DataLineage, error) {
	q := front.Query{R: r}
	number := int(q.Uint("version"))
	if q.Err != nil {
		return nil, q.Err
	}
	if known.Next == 0 {
		return nil, h.unknown(r, known)
	}
	version := known.Newest()
	if number > 0 {
		version = known.Version(number)
	}
	if version == nil && number == 0 {
		return nil, structs.NewError(structs.CodeNotFound, "agent.data_no_version", "kind", known.Kind, "name", known.Name)
	}
	if version == nil || !version.Usable() {
		return nil, auth.NotFound(auth.ObjectData, known.Name+"@"+strconv.Itoa(number))
	}
	snapshot := h.store.Snapshot()
	w := &lineageWalk{
		snapshot: snapshot, project: known.Project, at: make(map[string]int),
		data: func(object *structs.DataObject) bool {
			return auth.Allowed(r.Caller.Principal, auth.VerbRead, dataObject(snapshot, object)).Allow
		},
		jobs: func(job *structs.Job) bool {
			return auth.Allowed(r.Caller.Principal, auth.VerbRead, jobObject(job)).Allow
		},
	}
	w.out.Nodes, w.out.Edges = []api.LineageNode{}, []api.LineageEdge{}
	root := w.version(known, version, 0)
	w.made(version, root, 0)
	w.became(inputOf(known, version), root, 0)
	return &w.out, nil
}

// lineageWalk gathers what a version was made of and became.
type lineageWalk struct {
	snapshot *state.Snapshot
	project  string // of the version that was asked for
	data     func(*structs.DataObject) bool
	jobs     func(*structs.Job) bool

	out     api.DataLineage
	at      map[string]int // nodes by what they are: each is walked once, so that nothing goes round
	edges   map[api.LineageEdge]bool
	readers map[structs.DataInput][]madeOf
}

// madeOf is a version that was made of another one.
type madeOf struct {
	object  *structs.DataObject
	version *structs.DataVersion
}

func inputOf(object *structs.DataObject, v *structs.DataVersion) structs.DataInput {
	return structs.DataInput{DataID: object.Ref(), Version: v.Number, Digest: v.Digest}
}

// add returns the node of a key, made if there is none; -1 beyond the bounds.
func (w *lineageWalk) add(key string, node api.LineageNode) int {
	if at, there := w.at[key]; there {
		return at
	}
	if len(w.out.Nodes) >= api.LineageNodesMax || max(node.Depth, -node.Depth) > 2*api.LineageStepsMax {
		w.out.Cut = true
		return -1
	}
	w.at[key] = len(w.out.Nodes)
	w.out.Nodes = append(w.out.Nodes, node)
	return w.at[key]
}

func (w *lineageWalk) edge(from, to int) {
	edge := api.LineageEdge{From: from, To: to}
	if from < 0 || to < 0 || w.edges[edge] {
		return
	}
	if w.edges == nil {
		w.edges = make(map[api.LineageEdge]bool)
	}
	w.edges[edge] = true
	w.out.Edges = append(w.out.Edges, edge)
}

func keyOf(of structs.DataInput) string {
	return "data " + of.ID() + "@" + strconv.Itoa(of.Version) + " " + of.Digest
}

func (w *lineageWalk) version(object *structs.DataObject, v *structs.DataVersion, depth int) int {
	at := w.add(keyOf(inputOf(object, v)), api.LineageNode{
		What: api.LineageData, Depth: depth, Kind: object.Kind, Name: object.Name, Project: object.Project, Version: v.Number,
		Digest: v.Digest, Files: v.Files, Bytes: v.Bytes, At: v.MadeAt, By: v.MadeBy,
	})
	return at
}

// job adds the job that made a version, as its record says, or as the version keeps it.
func (w *lineageWalk) job(v *structs.DataVersion, depth int) (at int, shown bool) {
	o := v.Origin
	job := &structs.Job{ID: v.JobID, Project: o.Project, User: o.User, Access: o.Access}
	view, there := w.snapshot.Job(v.JobID)
	if there {
		job = view.Job
	}
	node := api.LineageNode{What: api.LineageJob, Depth: depth, Hidden: true}
	if shown = w.jobs(job); shown {
		node = api.LineageNode{
			What: api.LineageJob, Depth: depth, Gone: !there, Name: o.Job, Project: o.Project, By: o.User, JobID: v.JobID,
			Attempt: v.Attempt, Failed: o.Failed, Image: o.Image, Command: o.Command, Output: o.Output, Path: o.Path, Step: o.Step,
		}
	}
	key := "job " + v.JobID
	if o.Apart {
		key += " " + strconv.Itoa(o.Subjob)
	}
	if shown {
		node.Apart, node.Subjob = o.Apart, o.Subjob
	}
	at = w.add(key, node)
	return at, shown
}

// made adds what a version was made of.
func (w *lineageWalk) made(v *structs.DataVersion, to, depth int) {
	if v.Origin == nil || to < 0 {
		return
	}
	known := len(w.out.Nodes)
	job, shown := w.job(v, depth-1)
	w.edge(job, to)
	if !shown || job < known { // nothing is said of it, or it was walked
		return
	}
	if v.Origin.Code != "" {
		code := w.add("code "+v.Origin.Project+" "+v.Origin.Code, api.LineageNode{
			What: api.LineageCode, Depth: depth - 2, Digest: v.Origin.Code, Commit: v.Origin.Commit, Dirty: v.Origin.Dirty,
		})
		w.edge(code, job)
	}
	for _, input := range v.Origin.Inputs {
		w.input(input, job, depth-2)
	}
}

// input adds a version that a job read. One that was removed, or made anew under its
// number, is gone; its name is told in the project alone that had it.
func (w *lineageWalk) input(of structs.DataInput, job, depth int) {
	object := w.snapshot.Data(of.DataID)
	var version *structs.DataVersion
	if object != nil {
		version = object.Version(of.Version)
	}
	switch {
	case object != nil && !w.data(object), object == nil && of.Project != w.project:
		at := w.add(keyOf(of), api.LineageNode{What: api.LineageData, Depth: depth, Hidden: true})
		w.edge(at, job)
	case version == nil || version.Digest != of.Digest:
		at := w.add(keyOf(of), api.LineageNode{
			What: api.LineageData, Depth: depth, Gone: true, Kind: of.Kind, Name: of.Name, Project: of.Project, Version: of.Version, Digest: of.Digest,
		})
		w.edge(at, job)
	default:
		known := len(w.out.Nodes)
		at := w.version(object, version, depth)
		w.edge(at, job)
		if at >= known {
			w.made(version, at, depth)
		}
	}
}

// became adds what was made of a version.
func (w *lineageWalk) became(of structs.DataInput, from, depth int) {
	if from < 0 {
		return
	}
	for _, one := range w.madeOf(of) {
		known := len(w.out.Nodes)
		job, shown := w.job(one.version, depth+1)
		w.edge(from, job)
		if !shown && !w.data(one.object) || job < 0 {
			continue
		}
		if !w.data(one.object) {
			at := w.add(keyOf(inputOf(one.object, one.version)), api.LineageNode{What: api.LineageData, Depth: depth + 2, Hidden: true})
			w.edge(job, at)
			continue
		}
		before := len(w.out.Nodes)
		at := w.version(one.object, one.version, depth+2)
		w.edge(job, at)
		if at >= before && at >= known {
			w.became(inputOf(one.object, one.version), at, depth+2)
		}
	}
}

// madeOf lists the versions that jobs made which read a version. All data is looked
// through once for a walk.
func (w *lineageWalk) madeOf(of structs.DataInput) []madeOf {
	if w.readers == nil {
		w.readers = make(map[structs.DataInput][]madeOf)
		for object := range w.snapshot.AllData() {
			for i := range object.Versions {
				v := &object.Versions[i]
				if v.Origin == nil || !v.Usable() {
					continue
				}
				for _, input := range v.Origin.Inputs {
					w.readers[input] = append(w.readers[input], madeOf{object, v})
				}
			}
		}
	}
	return w.readers[of]
}

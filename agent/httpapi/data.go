package httpapi

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"slices"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/server"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// dataHandlers keeps the catalogue of named data. Bytes do not pass here.
type dataHandlers struct {
	*core
	members Membership
	rand    io.Reader
	// removed has the bytes of versions removed: of one, or of all where it is 0.
	removed func(ctx context.Context, object *structs.DataObject, version int)
}

// takes refuses what agents of before would not know.
func (h *dataHandlers) takes() error {
	return knownToAll(h.store.Snapshot(), h.members, wire.ProtocolData, "agent.data_old")
}

func (h *dataHandlers) list(r *front.Request) (*api.DataList, error) {
	if err := h.refresh(r); err != nil {
		return nil, err
	}
	q := front.Query{R: r}
	kind, all, favourites := q.Text("kind"), q.Bool("all"), q.Bool("favourites")
	if q.Err != nil {
		return nil, q.Err
	}
	if err := dataKind(kind); kind != "" && err != nil {
		return nil, err
	}
	snapshot, out, own := h.store.Snapshot(), api.DataList{Objects: []api.DataDetail{}}, r.Caller.Standing.Project
	if project := snapshot.Project(own); project != nil {
		out.Quota = project.DataQuota
	}
	for object := range snapshot.DataOf(own) {
		out.Used += object.Bytes()
	}
	running := runningOnData(snapshot)
	objects := snapshot.DataOf(own)
	if all || favourites || r.Caller.Principal.Project == "" && !r.Caller.Standing.Named {
		objects = snapshot.AllData()
	}
	for object := range objects {
		if kind != "" && object.Kind != kind || !auth.Allowed(r.Caller.Principal, auth.VerbRead, dataObject(snapshot, object)).Allow {
			continue
		}
		detail := h.detail(r, snapshot, object)
		detail.Running = running[object.Ref()]
		if detail.Object.Versions = nil; detail.Favourite || !favourites {
			out.Objects = append(out.Objects, detail)
		}
	}
	return &out, nil
}

// runningOnData counts the jobs that run and use each object.
func runningOnData(snapshot *state.Snapshot) map[structs.DataID]int {
	running, seen := make(map[structs.DataID]int), make(map[string]bool)
	for attempt := range snapshot.LiveAttempts() {
		if seen[attempt.JobID] {
			continue
		}
		seen[attempt.JobID] = true
		if view, there := snapshot.Job(attempt.JobID); there {
			named := make(map[structs.DataID]bool) // a job may name an object twice
			view.Job.DataPicks(func(kind string, ref *structs.DataRef) { named[ref.Object.Of(kind, ref)] = true })
			for id := range named {
				running[id]++
			}
		}
	}
	return running
}

func (h *dataHandlers) read(r *front.Request, known *structs.DataObject) (*api.DataDetail, error) {
	if known.Next == 0 {
		return nil, h.unknown(r, known)
	}
	snapshot := h.store.Snapshot()
	detail := h.detail(r, snapshot, known)
	detail.Jobs = []api.DataJob{}
	for job := range snapshot.JobsOfData(known.Ref(), 0) {
		view, there := snapshot.Job(job.ID)
		if !there || view.Status.State.Terminal() || !auth.Allowed(r.Caller.Principal, auth.VerbRead, jobObject(job)).Allow {
			continue
		}
		one := api.DataJob{ID: job.ID, Name: job.Name, User: job.User, Project: job.Project}
		job.DataPicks(func(kind string, ref *structs.DataRef) {
			if ref.Object.Of(kind, ref) == known.Ref() {
				one.Version = ref.Version
			}
		})
		detail.Jobs = append(detail.Jobs, one)
	}
	q := front.Query{R: r}
	if q.Bool("outputs") {
		detail.Outputs = dataOutputs(snapshot, known, func(job *structs.Job) bool {
			return auth.Allowed(r.Caller.Principal, auth.VerbRead, jobObject(job)).Allow
		})
	}
	return &detail, q.Err
}

// unknown says that there is no such data, and which was probably meant.
func (h *dataHandlers) unknown(r *front.Request, of *structs.DataObject) error {
	if near := server.NearestData(h.store.Snapshot(), r.Caller.Standing.Project, r.Caller.Principal.ID, of.Project, of.Kind, of.Name); near != "" {
		return structs.NewError(structs.CodeNotFound, "agent.data_unknown", "kind", of.Kind, "name", of.Name, "project", of.Project, "near", near)
	}
	return auth.NotFound(auth.ObjectData, of.Name)
}

// detail is an object as the caller may see it.
func (h *dataHandlers) detail(r *front.Request, snapshot *state.Snapshot, object *structs.DataObject) api.DataDetail {
	out := api.DataDetail{Object: *object.Copy(), AllBytes: object.Bytes(), Favourites: len(object.Favourites), Verbs: []string{}}
	_, out.Favourite = slices.BinarySearch(object.Favourites, r.Caller.Principal.ID)
	for _, verb := range auth.Verbs(r.Caller.Principal, dataObject(snapshot, object)) {
		if verb != auth.VerbList {
			out.Verbs = append(out.Verbs, string(verb))
		}
	}
	if !slices.Contains(out.Verbs, string(auth.VerbWrite)) {
		out.Object.Versions = slices.DeleteFunc(out.Object.Versions, func(v structs.DataVersion) bool { return !v.Usable() })
	}
	out.Object.Favourites = nil
	out.Object.MadeBy = cmp.Or(object.Home, object.MadeBy) // of what a job wrote: its user, and not the server that heard of its end
	if newest := object.Newest(); newest != nil {
		out.Newest, out.Files, out.Bytes = newest.Number, newest.Files, newest.Bytes
		out.NewestAt, out.NewestTag = newest.MadeAt, newest.Tag
	}
	for i := range object.Versions {
		if object.Versions[i].Usable() {
			out.Count++
		}
	}
	return out
}

// put makes an object, or changes what it says. Who else may use it is its owner's to
// say, and that of the project's administrators; what is published the cluster's.
func (h *dataHandlers) put(r *front.Request, known *structs.DataObject, body *api.DataRequest) (*api.DataChanged, error) {
	if err := h.takes(); err != nil {
		return nil, err
	}
	next := known.Copy()
	made := known.Next == 0
	if made {
		next.Owner, next.Home, next.Access = r.Caller.Principal.ID, r.Caller.Principal.ID, structs.DataProject
		if body.Storage == nil || *body.Storage == "" {
			return nil, structs.NewError(structs.CodeInvalid, "agent.data_storage_missing", "name", known.Name)
		}
	}
	if body.Storage != nil {
		next.Storage = *body.Storage
	}
	for _, of := range []struct{ from, to *string }{{body.Access, &next.Access}, {body.Description, &next.Description}, {body.Owner, &next.Owner}} {
		if of.from != nil {
			*of.to = *of.from
		}
	}
	if body.Labels != nil {
		next.Labels = *body.Labels
	}
	if body.Published != nil {
		next.Published = *body.Published
	}
	snapshot := h.store.Snapshot()
	if next.Published != known.Published {
		if refusal := auth.Allowed(r.Caller.Principal, auth.VerbOperatorWrite, auth.Object{Kind: auth.ObjectCluster}); !refusal.Allow {
			return nil, structs.NewError(structs.CodeForbidden, "agent.data_publish")
		}
	}
	handed := next.Owner != known.Owner || next.Access != known.Access
	if !made && handed && !auth.Allowed(r.Caller.Principal, auth.VerbDelete, dataObject(snapshot, known)).Allow {
		return nil, structs.NewError(structs.CodeForbidden, "agent.data_owner", "kind", known.Kind, "name", known.Name, "owner", known.Owner)
	}
	if body.Owner != nil && snapshot.User(next.Owner) == nil && snapshot.ServiceAccount(next.Owner) == nil {
		return nil, structs.NewError(structs.CodeNotFound, "agent.service_owner", "user", next.Owner)
	}
	if err := dataProblem(next); err != nil {
		return nil, err
	}
	next.Versions, next.Favourites = nil, nil
	index, err := h.propose(r, structs.CommandDataPut, structs.DataPut{Object: *next})
	return h.done(r, index, 0, err)
}

func (h *dataHandlers) done(r *front.Request, index uint64, version int, err error) (*api.DataChanged, error) {
	if err != nil {
		return nil, err
	}
	r.SetIndex(index)
	return &api.DataChanged{Index: index, Version: version}, nil
}

// dataKind refuses what is no kind of named data.
func dataKind(kind string) error {
	if !slices.Contains(structs.DataKinds(), kind) {
		return structs.NewError(structs.CodeInvalid, "agent.data_kind", "kind", kind)
	}
	return nil
}

// dataProblem refuses what the log would refuse, in words for people.
func dataProblem(object *structs.DataObject) error {
	if id := structs.NameProblem(object.Name); id != "" {
		return structs.NewError(structs.CodeInvalid, id, "name", object.Name, "max", structs.NameLengthMax)
	}
	if field := object.Problem(); field != "" {
		return structs.NewError(structs.CodeInvalid, "agent.data_field", "field", field, "name", object.Name)
	}
	return nil
}

// register has a directory be a version. That it is there only nodes know, and a job
// that uses it is told so before it is admitted.
func (h *dataHandlers) register(r *front.Request, known *structs.DataObject, body *api.DataRegisterRequest) (*api.DataChanged, error) {
	if err := h.takes(); err != nil {
		return nil, err
	}
	object := known.Copy()
	if known.Next == 0 {
		object.Owner, object.Storage = r.Caller.Principal.ID, body.Storage
		object.Access, object.Description = cmp.Or(body.Access, structs.DataProject), body.Description
	}
	switch {
	case body.Storage != object.Storage:
		return nil, structs.NewError(structs.CodeConflict, "state.data_storage", "kind", object.Kind, "name", object.Name, "storage", object.Storage, "wanted", body.Storage)
	case !structs.BelowPath(body.Source):
		return nil, structs.NewError(structs.CodeInvalid, "agent.data_source", "value", body.Source)
	case body.Tag != "" && structs.DataTagProblem(body.Tag) != "":
		return nil, structs.NewError(structs.CodeInvalid, structs.DataTagProblem(body.Tag), "name", body.Tag, "max", structs.NameLengthMax)
	}
	if err := dataProblem(object); err != nil {
		return nil, err
	}
	object.Versions, object.Favourites = nil, nil
	id := make([]byte, 16)
	if _, err := io.ReadFull(h.rand, id); err != nil {
		return nil, fmt.Errorf("draw id: %w", err)
	}
	upload := hex.EncodeToString(id)
	index, err := h.propose(r, structs.CommandDataBegin, structs.DataBegin{Object: *object, UploadID: upload, Tag: body.Tag, Source: body.Source})
	if err != nil {
		return nil, err
	}
	version := 0
	if made := h.store.Snapshot().Data(object.Ref()); made != nil {
		if v := made.Upload(upload); v != nil {
			version = v.Number
		}
	}
	return h.done(r, index, version, nil)
}

func (h *dataHandlers) tag(r *front.Request, known *structs.DataObject, body *api.DataTagRequest) (*api.DataChanged, error) {
	if known.Next == 0 {
		return nil, h.unknown(r, known)
	}
	if id := structs.DataTagProblem(body.Tag); body.Tag != "" && id != "" {
		return nil, structs.NewError(structs.CodeInvalid, id, "name", body.Tag, "max", structs.NameLengthMax)
	}
	index, err := h.propose(r, structs.CommandDataTag, structs.DataTag{ID: known.Ref(), Number: body.Version, Tag: body.Tag})
	return h.done(r, index, body.Version, err)
}

func (h *dataHandlers) mark(r *front.Request, known *structs.DataObject, body *api.DataMarkRequest) (*api.DataChanged, error) {
	if known.Next == 0 {
		return nil, h.unknown(r, known)
	}
	// Favourites are for jobs of one's own, and who only looks changes nothing.
	if err := r.May(auth.VerbSubmit, auth.Object{Kind: auth.ObjectJob, Project: r.Caller.Standing.Project, Owner: r.Caller.Principal.ID}); err != nil {
		return nil, err
	}
	index, err := h.propose(r, structs.CommandDataMark, structs.DataMark{ID: known.Ref(), User: r.Caller.Principal.ID, Off: body.Off})
	return h.done(r, index, 0, err)
}

func (h *dataHandlers) delete(r *front.Request, known *structs.DataObject) (*api.DataChanged, error) {
	if known.Next == 0 {
		return nil, h.unknown(r, known)
	}
	q := front.Query{R: r}
	version := int(q.Uint("version"))
	if q.Err != nil {
		return nil, q.Err
	}
	index, err := h.propose(r, structs.CommandDataDrop, structs.DataDrop{ID: known.Ref(), Number: version})
	if err == nil {
		h.removed(r.Context(), known, version)
	}
	return h.done(r, index, version, err)
}

// locateData finds named data of a name and kind in the project that the request acts
// in, or in another one. What is not there is a record with its name and place alone,
// which would be the caller's, so that it can be made.
func locateData(r *front.Request, snapshot *state.Snapshot) (*structs.DataObject, auth.Object, error) {
	q := front.Query{R: r}
	id := structs.DataID{Kind: cmp.Or(q.Text("kind"), structs.StorageDataset), Project: cmp.Or(q.Text("of"), r.Caller.Standing.Project), Name: r.ID}
	if q.Err != nil {
		return nil, auth.Object{}, q.Err
	}
	if err := dataKind(id.Kind); err != nil {
		return nil, auth.Object{}, err
	}
	known := snapshot.Data(id)
	if known == nil {
		missing := &structs.DataObject{Project: id.Project, Kind: id.Kind, Name: id.Name}
		object := auth.Object{Kind: auth.ObjectData, ID: id.Name, Project: id.Project, Owner: r.Caller.Principal.ID}
		return missing, object, nil
	}
	r.RestsOn(structs.RestData, id.ID(), known.ModifyIndex)
	return known, dataObject(snapshot, known), nil
}

// dataObject is named data as the policy sees it: members of its project may bring
// versions and describe it, unless it is its owner's alone.
func dataObject(snapshot *state.Snapshot, known *structs.DataObject) auth.Object {
	object := auth.Object{Kind: auth.ObjectData, ID: known.Name, Project: known.Project, Owner: known.Owner, Access: auth.AccessReadWrite}
	shared := structs.SharingOff(snapshot.Settings(), snapshot.Project(known.Project)) == nil
	object.Everybody = known.Published || known.Access == structs.DataCluster && shared
	if known.Access == structs.DataPrivate {
		object.Access = auth.AccessNone
	}
	return object
}

package server

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// fixKeep writes into a job where the versions lie that its output becomes, and refuses
// what could only be refused when it has run: a name of somebody else's, or no storage.
func fixKeep(snapshot *state.Snapshot, job *structs.Job) []structs.Problem {
	keep := job.OutputKeep
	if keep == nil {
		return nil
	}
	keep.Storage, keep.Apart = "", job.Batched()
	id := structs.DataID{Project: job.Project, Kind: keep.As, Name: job.KeptName()}
	problem := func(id string, params ...string) []structs.Problem {
		return []structs.Problem{placeProblem("output.keep", id, append([]string{"kind", keep.As, "name", job.KeptName()}, params...)...)}
	}
	storage, refused := TakenStorage(snapshot, snapshot.Data(id), keep.As, job.OutputStorage)
	switch {
	case refused != nil:
		return problem(refused.ID, "storages", refused.Params["storages"])
	case !mayKeep(snapshot.Data(id), job.User):
		return problem("server.keep_private")
	case keep.Apart && !roomForAll(snapshot.Data(id), job.SubjobCount()):
		return problem("server.keep_full", "count", strconv.Itoa(job.SubjobCount()), "there", strconv.Itoa(len(snapshot.Data(id).Versions)), "max", strconv.Itoa(structs.DataVersionsMax))
	case !together(snapshot, job.OutputStorage, keep.As, storage):
		return problem("server.keep_apart", "storage", storage, "output", cmp.Or(job.OutputStorage, "-"))
	}
	keep.Storage = storage
	return nil
}

// roomForAll reports whether an object has room for a version of each subjob.
func roomForAll(object *structs.DataObject, subjobs int) bool {
	return object == nil || len(object.Versions)+subjobs <= structs.DataVersionsMax
}

// together reports whether a node, here or away, has an output's storage and another one.
func together(snapshot *state.Snapshot, output, kind, storage string) bool {
	for node := range snapshot.Nodes() {
		if node.Stores(structs.StorageOutput+"/"+output) && node.Stores(kind+"/"+storage) {
			return true
		}
	}
	return false
}

// mayKeep reports whether a user's jobs may make versions of named data of their own
// project.
func mayKeep(object *structs.DataObject, user string) bool {
	return object == nil || object.Access != structs.DataPrivate || object.Owner == user
}

// TakenStorage is where versions of named data lie that are made of what jobs write to
// a storage, "" for any: where it has some already; beside the output, which needs no
// copying; or in the only one that there is. Pure.
func TakenStorage(snapshot *state.Snapshot, object *structs.DataObject, kind, output string) (string, *structs.Reason) {
	if object != nil {
		return object.Storage, nil
	}
	var storages []string
	for node := range snapshot.Nodes() {
		for _, offer := range node.Storages {
			if of, name, ok := strings.Cut(offer, "/"); ok && of == kind && !slices.Contains(storages, name) {
				storages = append(storages, name)
			}
		}
	}
	slices.Sort(storages)
	switch {
	case output != "" && slices.Contains(storages, output):
		return output, nil
	case len(storages) == 1:
		return storages[0], nil
	case len(storages) == 0:
		return "", structs.NewReason("server.keep_no_storage")
	}
	return "", structs.NewReason("server.keep_storage_which", "storages", strings.Join(storages, ", "))
}

// TakingNodes lists the nodes that can make a version of what a job wrote, in the order
// in which they are asked: that of rank 0 first, then by id. Which storage a job's output
// lies in that names none only the node knows that ran it. Pure.
func TakingNodes(snapshot *state.Snapshot, origin *structs.DataOrigin, kind, storage string) []*structs.Node {
	var nodes []*structs.Node
	for node := range snapshot.Nodes() {
		ran := node.ID == origin.NodeID
		if node.Status != structs.NodeReady || node.RPCAddr == "" || node.Speaks() < structs.KeepProtocol || !node.Stores(kind+"/"+storage) {
			continue
		}
		if !node.Stores(structs.StorageOutput+"/"+origin.Storage) || origin.Storage == "" && !ran && origin.NodeID != "" {
			continue
		}
		nodes = append(nodes, node)
	}
	slices.SortFunc(nodes, func(a, b *structs.Node) int {
		if a.ID == origin.NodeID || b.ID == origin.NodeID {
			return cmp.Compare(boolRank(a.ID != origin.NodeID), boolRank(b.ID != origin.NodeID))
		}
		return cmp.Compare(a.ID, b.ID)
	})
	return nodes
}

func boolRank(late bool) int {
	if late {
		return 1
	}
	return 0
}

// Taking is a version that is to be made of what a job wrote.
type Taking struct {
	ID       structs.DataID
	UploadID string
	Ask      structs.DataAsk
	Nodes    []*structs.Node
}

// Takings lists the versions that are to be made of what jobs wrote, oldest number of
// each name first. Pure.
func Takings(snapshot *state.Snapshot) []Taking {
	var list []Taking
	for object := range snapshot.UploadingData() {
		for i := range object.Versions {
			if v := &object.Versions[i]; taken(v) {
				list = append(list, taking(snapshot, object, v))
			}
		}
	}
	return list
}

// TakingOf is what is to be made under the name of an upload; false: it is made, or given
// up. Pure.
func TakingOf(snapshot *state.Snapshot, id structs.DataID, upload string) (Taking, bool) {
	object := snapshot.Data(id)
	if object == nil {
		return Taking{}, false
	}
	if v := object.Upload(upload); v != nil && taken(v) {
		return taking(snapshot, object, v), true
	}
	return Taking{}, false
}

// ownEnded reports whether the subjob of a batch has ended that alone writes where a
// version is made of.
func ownEnded(snapshot *state.Snapshot, job *structs.Job, o *structs.DataOrigin) bool {
	own := job.KeptPath(o.Subjob, "")
	if !o.Apart || o.Path != own && !strings.HasPrefix(o.Path, own+"/") {
		return false
	}
	subjob := snapshot.Subjob(job.ID, o.Subjob)
	return subjob != nil && subjob.State.Terminal()
}

func taken(v *structs.DataVersion) bool { return v.State == structs.DataUploading && v.Origin != nil }

func taking(snapshot *state.Snapshot, object *structs.DataObject, v *structs.DataVersion) Taking {
	o := v.Origin
	ended := true
	if view, there := snapshot.Job(v.JobID); there {
		ended = view.Status.State.Terminal() || ownEnded(snapshot, view.Job, o)
	}
	return Taking{
		ID: object.Ref(), UploadID: v.UploadID, Nodes: TakingNodes(snapshot, o, object.Kind, object.Storage),
		Ask: structs.DataAsk{
			What: structs.DataAskTake, Upload: v.UploadID,
			Place: structs.DataPlace{Project: object.Project, Owner: object.Home, Kind: object.Kind, Name: object.Name, Storage: object.Storage, Version: v.Number},
			From:  &structs.DataOutput{Project: o.Project, User: o.User, Output: o.Output, Storage: o.Storage, Path: o.Path, Ended: ended},
		},
	}
}

package server

import (
	"cmp"
	"slices"
	"strings"

	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// SweptStorage is a storage in which versions of a kind may lie, with the nodes that can
// look for what uploads have left there.
type SweptStorage struct {
	Kind    string
	Storage string
	Nodes   []*structs.Node
}

// SweptStorages lists the storages that may have versions of named data. Pure.
func SweptStorages(snapshot *state.Snapshot) []SweptStorage {
	var list []SweptStorage
	for node := range snapshot.Nodes() {
		if node.Status != structs.NodeReady || node.RPCAddr == "" || node.Speaks() < wire.ProtocolDataLeft {
			continue
		}
		for _, offer := range node.Storages {
			kind, name, ok := strings.Cut(offer, "/")
			if !ok || !slices.Contains(structs.DataKinds(), kind) {
				continue
			}
			at := slices.IndexFunc(list, func(one SweptStorage) bool { return one.Kind == kind && one.Storage == name })
			if at < 0 {
				at = len(list)
				list = append(list, SweptStorage{Kind: kind, Storage: name})
			}
			list[at].Nodes = append(list[at].Nodes, node)
		}
	}
	slices.SortFunc(list, func(a, b SweptStorage) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Storage, b.Storage))
	})
	return list
}

// LeftUpload is an upload that nobody goes on with.
type LeftUpload struct {
	UploadID string
	Never    bool // the log has no version of it: what was made of it is nobody's
}

// LeftUploads lists those of some uploads that nobody goes on with: they are over, were
// given up, or are versions. Pure.
func LeftUploads(snapshot *state.Snapshot, ids []string) (left []LeftUpload) {
	states := make(map[string]string, len(ids)) // "" is of one that the log does not have
	for _, id := range ids {
		states[id] = ""
	}
	for object := range snapshot.AllData() {
		for i := range object.Versions {
			v := &object.Versions[i]
			if _, asked := states[v.UploadID]; asked {
				states[v.UploadID] = v.State
			}
		}
	}
	for _, id := range ids {
		if states[id] != structs.DataUploading {
			left = append(left, LeftUpload{UploadID: id, Never: states[id] == ""})
		}
	}
	return left
}

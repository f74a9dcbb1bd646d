package structs

import (
	"slices"
	"strings"
)

// What the storages of a node serve.
const (
	StorageAlgorithm = "algorithm"
	StorageDataset   = "dataset"
	StorageModel     = "model"
	StorageVolume    = "volume"
	StorageOutput    = "output"
	StorageMount     = "mount" // at a place that the job chooses
)

// StorageKinds lists what storages serve.
func StorageKinds() []string {
	return []string{StorageAlgorithm, StorageDataset, StorageModel, StorageVolume, StorageOutput, StorageMount}
}

// StorageNeeds lists what the data of a job asks of its nodes, sorted and each
// once: "kind/name" of a storage, or "kind/" when any storage of the node that
// serves the kind will do. Nil for a job without data. Pure.
func (j *Job) StorageNeeds() []string {
	var needs []string
	for _, of := range []struct {
		kind string
		refs []DataRef
	}{{StorageAlgorithm, j.Algorithms}, {StorageDataset, j.Datasets}, {StorageModel, j.Models}, {StorageVolume, j.Volumes}} {
		for _, ref := range of.refs {
			needs = append(needs, of.kind+"/"+ref.Storage)
		}
	}
	for _, m := range j.Mounts {
		if m.Storage != "" {
			needs = append(needs, StorageMount+"/"+m.Storage)
		}
	}
	if j.Output != "" {
		needs = append(needs, StorageOutput+"/"+j.OutputStorage)
	}
	slices.Sort(needs)
	return slices.Compact(needs)
}

// Stores tells whether the node has what one of StorageNeeds asks for.
func (n *Node) Stores(need string) bool {
	if strings.HasSuffix(need, "/") {
		return slices.ContainsFunc(n.Storages, func(s string) bool { return strings.HasPrefix(s, need) })
	}
	return slices.Contains(n.Storages, need)
}

package structs

import (
	"slices"
	"strconv"
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

// DataNamesMax bounds how many copies of datasets a node tells of.
const DataNamesMax = 256

// PreparedData names the datasets that the job has copied to fast storage, in
// the order of the job file. Jobs of one project that mean the same dataset name
// it alike. Pure.
func (j *Job) PreparedData() []string {
	var names []string
	for i := range j.Datasets {
		if j.Datasets[i].Prepare {
			names = append(names, j.DataName(&j.Datasets[i]))
		}
	}
	return names
}

// DataName names one dataset of the job as PreparedData does.
func (j *Job) DataName(ref *DataRef) string {
	name := strings.Join([]string{j.Project, ref.Storage, ref.From, ref.Name, strconv.Itoa(ref.Version)}, "/")
	if ref.Source != "" {
		name += ":" + ref.Source
	}
	return name
}

// HoldsData counts the datasets that the job wants on fast storage and the node
// holds: nodes with more are preferred.
func (n *Node) HoldsData(job *Job) int {
	if len(n.Data) == 0 {
		return 0
	}
	held := 0
	for _, name := range job.PreparedData() {
		if slices.Contains(n.Data, name) {
			held++
		}
	}
	return held
}

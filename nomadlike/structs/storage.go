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
	if j.Output != "" && j.OutputStorage == "" && j.OutputKeep != nil { // only that node knows where it lies
		needs = append(needs, j.OutputKeep.As+"/"+j.OutputKeep.Storage)
	}
	slices.Sort(needs)
	return slices.Compact(needs)
}

// Stores reports whether the node has what one of StorageNeeds asks for.
func (n *Node) Stores(need string) bool {
	if strings.HasSuffix(need, "/") {
		return slices.ContainsFunc(n.Storages, func(s string) bool { return strings.HasPrefix(s, need) })
	}
	return slices.Contains(n.Storages, need)
}

// DataNamesMax bounds how many copies of datasets a node reports.
const DataNamesMax = 256

// DataName names data of the job, of one of StorageKinds. Jobs of one project
// that mean the same data name it alike. Pure.
func (j *Job) DataName(kind string, ref *DataRef) string {
	if ref.Object != nil {
		return ref.Object.dataName(kind, ref)
	}
	name := strings.Join([]string{j.Project, ref.Storage, ref.From, ref.Name, strconv.Itoa(ref.Version)}, "/")
	if kind != StorageDataset {
		name = kind + ":" + name
	}
	if ref.Source != "" {
		name += ":" + ref.Source
	}
	return name
}

// CopyName is what a node calls its copy of something that has a DataName.
// remote says that it comes from a server, so that every job reads the copy;
// without it only jobs do that ask for the preparation. user is who has submitted
// the job if the data is this user's own, as where it lies says; or else "".
func CopyName(name string, remote bool, user string) string {
	if remote {
		name = copyRemote + name
	}
	if user != "" {
		name += copyUser + user
	}
	return name
}

const (
	copyRemote = "remote:"
	copyUser   = "~"
)

// UsesCopies reports whether the job has data that it may read from a copy on fast
// storage of a node: of data on servers there is always one, and which storages
// are servers only nodes know. Pure.
func (j *Job) UsesCopies() bool {
	return len(j.Algorithms) > 0 || len(j.Datasets) > 0 || len(j.Models) > 0
}

// CopiesFor counts the data that the job would read from copies that the node
// holds: nodes with more are preferred. A copy that the job would not read, of a
// dataset that it reads from its storage, counts nothing. Pure.
func (n *Node) CopiesFor(job *Job) int {
	if len(n.Data) == 0 {
		return 0
	}
	holds := func(name string, remote bool) bool {
		return slices.Contains(n.Data, CopyName(name, remote, "")) || job.User != "" && slices.Contains(n.Data, CopyName(name, remote, job.User))
	}
	ownedBy := func(pick *DataPick, name string, remote bool) bool {
		return pick != nil && pick.Owner != "" && slices.Contains(n.Data, CopyName(name, remote, pick.Owner))
	}
	held := 0
	for _, of := range []struct {
		kind string
		refs []DataRef
	}{{StorageAlgorithm, job.Algorithms}, {StorageDataset, job.Datasets}, {StorageModel, job.Models}} {
		for i := range of.refs {
			name := job.DataName(of.kind, &of.refs[i])
			pick := of.refs[i].Object
			if holds(name, true) || ownedBy(pick, name, true) || of.refs[i].Prepare && (holds(name, false) || ownedBy(pick, name, false)) {
				held++
			}
		}
	}
	return held
}

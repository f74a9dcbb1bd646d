package structs

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// When what a job writes to its output becomes a version of named data.
const (
	KeepOnSuccess    = "success"
	KeepOnCheckpoint = "checkpoint" // at each checkpoint that it registers
)

// TakenKinds lists what the output of a job can become.
func TakenKinds() []string { return []string{StorageModel, StorageDataset, StorageAlgorithm} }

// OutputKeep has what a job writes to its output become versions of named data of its
// project.
type OutputKeep struct {
	As   string `json:"as"`             // one of TakenKinds
	Name string `json:"name,omitempty"` // "": the job's
	When string `json:"when,omitempty"` // KeepOnSuccess | KeepOnCheckpoint
	Path string `json:"path,omitempty"` // the file or directory below the output; "" is all of it
	// Storage is where the versions lie, fixed at admission.
	Storage string `json:"storage,omitempty"`
	// Apart has what each subjob of a batch writes be a version of its own; fixed at
	// admission.
	Apart bool `json:"apart,omitempty" since:"51"`
}

// KeptName is the name of the named data that the output becomes versions of.
func (j *Job) KeptName() string {
	if j.OutputKeep != nil && j.OutputKeep.Name != "" {
		return j.OutputKeep.Name
	}
	return j.Name
}

// OutputOf is the output of a subjob: each of a batch has a directory of its own, and
// does not know.
func (j *Job) OutputOf(subjob int) string {
	return path.Join(j.Output, j.KeptPath(subjob, ""))
}

// KeptPath is a path below the output of a subjob as one below that of its job.
func (j *Job) KeptPath(subjob int, below string) string {
	if !j.Batched() {
		return below
	}
	return path.Join(j.Name+"-"+strconv.Itoa(subjob), below)
}

// KeepProtocol is the first version of wire.ProtocolVersion that makes versions of
// what jobs write.
const KeepProtocol = 45

// Bounds of what a version says of its origin.
const (
	OriginInputsMax = 64
	OriginTextMax   = 1_000 // bytes of one text
)

// DataOrigin says what made a version: fixed when the version is begun, of the job's own
// record, and kept when the job is forgotten.
type DataOrigin struct {
	Job     string `json:"job"` // its name
	Project string `json:"project"`
	User    string `json:"user,omitempty"`
	Access  string `json:"access,omitempty"` // who else could see the job
	Subjob  int    `json:"subjob,omitempty"`

	Output  string `json:"output"`            // as the job says
	Storage string `json:"storage,omitempty"` // of the output; "": the first of the node
	Path    string `json:"path,omitempty"`    // below the output
	Step    int64  `json:"step,omitempty"`    // of the checkpoint
	NodeID  string `json:"node_id,omitempty"` // that ran rank 0

	Code    string      `json:"code,omitempty"`   // digest of the tree that travelled with the job
	Commit  string      `json:"commit,omitempty"` // of git, in which that tree lay
	Dirty   bool        `json:"dirty,omitempty"`  // with changes
	Image   string      `json:"image,omitempty"`
	Command string      `json:"command,omitempty"` // cut at OriginTextMax
	Inputs  []DataInput `json:"inputs,omitempty"`  // at most OriginInputsMax
	// Apart says that a subjob of a batch made it, in a directory of its own.
	Apart bool `json:"apart,omitempty" since:"51"`
	// Failed is set when the job had not succeeded by then.
	Failed bool `json:"failed,omitempty"`
}

// DataInput is a version of named data that a job read.
type DataInput struct {
	DataID
	Version int    `json:"version"`
	Digest  string `json:"digest,omitempty"`
}

// Copy returns an origin that shares nothing with o; nil copies to nil.
func (o *DataOrigin) Copy() *DataOrigin {
	if o == nil {
		return nil
	}
	c := *o
	c.Inputs = slices.Clone(o.Inputs)
	return &c
}

// OriginOf is what a version says of the job that made it. Pure.
func OriginOf(job *Job, subjob int, attempt uint64) *DataOrigin {
	job = job.OfAttempt(attempt)
	o := &DataOrigin{
		Job: job.Name, Project: job.Project, User: job.User, Access: job.Access, Subjob: subjob,
		Output: job.Output, Storage: job.OutputStorage, Image: job.Task.Image,
		Command: cutText(strings.TrimSpace(job.Task.Command+" "+job.Task.Arguments), OriginTextMax),
	}
	if w := job.Workdir; w != nil {
		if o.Code = w.Tree; w.Git != nil {
			o.Commit, o.Dirty = w.Git.Commit, w.Git.Dirty
		}
	}
	o.Apart = job.OutputKeep != nil && job.OutputKeep.Apart
	job.DataPicks(func(kind string, ref *DataRef) {
		if len(o.Inputs) < OriginInputsMax {
			o.Inputs = append(o.Inputs, DataInput{DataID: ref.Object.Of(kind, ref), Version: ref.Version, Digest: ref.Object.Digest})
		}
	})
	return o
}

func cutText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}

// BelowOutput is the path below the output of what a task calls path, "" for the output
// itself. False: it lies elsewhere. Pure.
func BelowOutput(path string) (below string, ok bool) {
	const output = WorkspaceDir + "/outputs"
	if path == output || path == output+"/" {
		return "", true
	}
	below, ok = strings.CutPrefix(path, output+"/")
	if below = strings.TrimSuffix(below, "/"); !ok || !belowPath(below) {
		return "", false
	}
	return below, true
}

// DataTake asks for a version of what a job has written to its output.
type DataTake struct {
	JobID   string `json:"job_id"`
	Subjob  int    `json:"subjob,omitempty"`
	Attempt uint64 `json:"attempt"`
	Path    string `json:"path,omitempty"` // below the output; "" is all of it
	Step    int64  `json:"step,omitempty"` // of a checkpoint
}

// DataOutput says where the output of a job lies, as the paths of storages are filled
// in.
type DataOutput struct {
	Project string `json:"project"`
	User    string `json:"user"`
	Output  string `json:"output"`
	Storage string `json:"storage"`
	Path    string `json:"path,omitempty"` // below it
	// Ended says that nobody writes there for this job any more, so that files may be
	// shared with the version, which nobody may write to then.
	Ended bool `json:"ended,omitempty"`
}

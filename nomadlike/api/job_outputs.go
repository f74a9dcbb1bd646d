package api

import "nomadlike/nomadlike/structs"

// What became of an output, as JobOutput.State says.
const (
	OutputWaiting = "waiting" // it is to become a version when its time has come
	OutputMaking  = "making"  // the version is begun
	OutputKept    = "kept"    // it is a version
	OutputRefused = "refused" // no version could be made: Cause says why
	OutputUnkept  = "unkept"  // it was to become a version of a job that succeeds, and the job did not
	OutputRemoved = "removed" // it was a version, which is removed
	OutputLies    = "lies"    // nobody asked for a version
)

// OutputsMax bounds the list of JobDetail.Outputs: of more, those that are not kept come first.
const OutputsMax = 64

// JobOutput is what became of what a job, or one subjob of a batch, wrote to its output:
// of its newest attempt, or of one checkpoint.
type JobOutput struct {
	State   string `json:"state"`
	Subjob  int    `json:"subjob,omitempty"`
	Attempt uint64 `json:"attempt,omitempty"`
	Step    int64  `json:"step,omitempty"` // of a checkpoint

	// Where it lies, also when it is a version: path below the storage's place for
	// outputs. Without Storage it is the first storage of Node.
	Path    string `json:"path,omitempty"` // "" before the first attempt
	Storage string `json:"storage,omitempty"`
	Node    string `json:"node,omitempty"` // that ran rank 0

	Kind    string          `json:"kind,omitempty"`    // of named data that it is to become
	Name    string          `json:"name,omitempty"`    // likewise
	Version int             `json:"version,omitempty"` // once it is begun
	Cause   *structs.Reason `json:"cause,omitempty"`   // why there is no version, or not yet
}

// DataOutputJob is a job that was to make a version of named data, and has not.
type DataOutputJob struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	User    string    `json:"user"`
	Project string    `json:"project"`
	Output  JobOutput `json:"output"`
}

// DataOutputJobsMax bounds the list of DataDetail.Outputs.
const DataOutputJobsMax = 20

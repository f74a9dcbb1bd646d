package api

import (
	"context"
	"net/http"
	"strconv"

	"nomadlike/nomadlike/structs"
)

// DataTakeRequest has what a job wrote be a version, without copying where the storage
// allows it.
type DataTakeRequest struct {
	Job         string `json:"job"`                  // id or name, in the project that the request acts in
	Subjob      *int   `json:"subjob,omitempty"`     // of a batch: what this one alone wrote; nil: what all did
	Attempt     uint64 `json:"attempt,omitempty"`    // 0: the newest
	Path        string `json:"path,omitempty"`       // file or directory below the output; "": all of it
	Checkpoint  int64  `json:"checkpoint,omitempty"` // step of a checkpoint that the job registered, instead of Path
	Tag         string `json:"tag,omitempty"`
	Storage     string `json:"storage,omitempty"` // of a new name
	Access      string `json:"access,omitempty"`  // of a new name; "": project
	Description string `json:"description,omitempty"`
}

// What a LineageNode is.
const (
	LineageData = "data"
	LineageJob  = "job"
	LineageCode = "code"
)

// Bounds of a DataLineage.
const (
	LineageNodesMax = 200
	LineageStepsMax = 20
)

// DataLineage is what a version was made of, and what was made of it: bytes went along
// the edges, from data to the jobs that read it, and from a job to what it made.
type DataLineage struct {
	Root  int           `json:"root"` // the version that was asked for, in Nodes
	Nodes []LineageNode `json:"nodes"`
	Edges []LineageEdge `json:"edges"`
	Cut   bool          `json:"cut,omitempty"` // there is more than LineageNodesMax, or LineageStepsMax steps away
}

// LineageEdge says that bytes went from one node to another.
type LineageEdge struct {
	From int `json:"from"`
	To   int `json:"to"`
}

// LineageNode is a version, a job, or the code of a job.
type LineageNode struct {
	What    string           `json:"what"`             // data | job | code
	Depth   int              `json:"depth"`            // below 0: what the version was made of
	Hidden  bool             `json:"hidden,omitempty"` // the caller may not see it: no more is said
	Gone    bool             `json:"gone,omitempty"`   // removed, or forgotten; what a version keeps of it is said
	Kind    string           `json:"kind,omitempty"`
	Name    string           `json:"name,omitempty"`
	Project string           `json:"project,omitempty"`
	Version int              `json:"version,omitempty"`
	Digest  string           `json:"digest,omitempty"`
	Files   int              `json:"files,omitempty"`
	Bytes   int64            `json:"bytes,omitempty"`
	At      structs.UnixNano `json:"at,omitempty"`
	By      string           `json:"by,omitempty"` // who made the version; the user of a job
	JobID   string           `json:"job_id,omitempty"`
	Attempt uint64           `json:"attempt,omitempty"`
	Failed  bool             `json:"failed,omitempty"` // the job had not succeeded
	Image   string           `json:"image,omitempty"`
	Command string           `json:"command,omitempty"`
	Output  string           `json:"output,omitempty"`
	Path    string           `json:"path,omitempty"`
	Step    int64            `json:"step,omitempty"`
	Apart   bool             `json:"apart,omitempty"`  // of a batch whose subjobs make a version each
	Subjob  int              `json:"subjob,omitempty"` // which of them
	Commit  string           `json:"commit,omitempty"`
	Dirty   bool             `json:"dirty,omitempty"`
}

// The endpoints of outputs as versions.
var (
	DataTake = endpoint[DataTakeRequest, DataChanged](Route{
		Name: "data.take", Method: http.MethodPost, Pattern: "/v1/data/{id}/take", Verb: VerbWrite, Kind: ObjectData, From: FromData,
		Query: dataParams(), Summary: "Have what a job wrote become a version, without copying where the storage allows it",
	})
	DataLineageRead = endpoint[None, DataLineage](Route{
		Name: "data.lineage", Method: http.MethodGet, Pattern: "/v1/data/{id}/lineage", Verb: VerbRead, Kind: ObjectData, From: FromData,
		Query:   dataParams(Param{"version", "integer", "this version; the newest unless told"}),
		Summary: "Read what a version was made of, and what was made of it",
	})
)

// TakeData has what a job wrote become a version.
func (c *Client) TakeData(ctx context.Context, of DataName, request DataTakeRequest) (*DataChanged, error) {
	return post(ctx, c, DataTake, call{path: DataTake.path(of.Name), query: of.query()}, request)
}

// DataLineage reads what a version was made of, and what was made of it; 0 is the newest.
func (c *Client) DataLineage(ctx context.Context, of DataName, version int) (*DataLineage, error) {
	query := of.query()
	if version > 0 {
		query.Set("version", strconv.Itoa(version))
	}
	lineage, _, err := read(ctx, c, DataLineageRead, of.Name, query)
	return lineage, err
}

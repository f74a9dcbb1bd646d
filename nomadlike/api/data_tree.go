package api

import (
	"context"
	"net/http"
	"strconv"

	"nomadlike/nomadlike/preview"
	"nomadlike/nomadlike/structs"
)

// Bounds of what is read of the files of named data.
const (
	DataNamesMax   = 10_000 // of one page of a directory
	DataJobsMax    = 200    // jobs that are told of one object
	DataArchiveMax = 64     // downloads of directories that an agent has under way at once
)

// DataEntry is a file, a directory or a link of a version.
type DataEntry struct {
	Name  string `json:"name"`            // as it is shown
	Ref   string `json:"ref,omitempty"`   // the name as addresses spell it, where it is no text
	Dir   bool   `json:"dir,omitempty"`   // a directory
	Link  string `json:"link,omitempty"`  // of a symbolic link: what it says
	Runs  bool   `json:"runs,omitempty"`  // may be executed
	Size  int64  `json:"size"`            // bytes; of a directory those of all files below it
	Files int    `json:"files,omitempty"` // below a directory
}

// DataTree answers data.tree.
type DataTree struct {
	Version int         `json:"version"`
	Entry   DataEntry   `json:"entry"`   // what the path names
	Entries []DataEntry `json:"entries"` // in a directory: directories first
	Names   int         `json:"names"`   // in the directory, in all
	Next    int         `json:"next"`    // after of the next page; 0: this is the last one
}

// DataPreview answers data.preview.
type DataPreview struct {
	Version int           `json:"version"`
	Size    int64         `json:"size"` // bytes of the file
	Shown   preview.Shown `json:"shown"`
}

// DataUse answers data.use: which jobs use an object, and where copies of it lie.
type DataUse struct {
	Jobs    []DataUser  `json:"jobs"`              // that the caller may see: those that have not ended, then the newest
	More    bool        `json:"more"`              // there are more than DataJobsMax
	Hidden  int         `json:"hidden"`            // jobs that have not ended and that the caller may not see
	Storage DataStorage `json:"storage"`           // that has the versions
	Copies  []DataCopy  `json:"copies"`            // on nodes' own disks
	Unknown bool        `json:"unknown,omitempty"` // nodes hold more copies than they tell of
}

// DataUser is a job that uses named data, or did.
type DataUser struct {
	ID          string           `json:"id"`
	Name        string           `json:"name"`
	User        string           `json:"user"`
	Project     string           `json:"project"`
	Version     int              `json:"version"`
	Asked       string           `json:"asked,omitempty"` // what the job said instead of a number: latest, or a tag
	State       structs.JobState `json:"state"`
	SubmittedAt structs.UnixNano `json:"submitted_at"`
	FinishedAt  structs.UnixNano `json:"finished_at,omitempty"`
}

// DataStorage is the storage of an object as its nodes have it.
type DataStorage struct {
	Name  string   `json:"name"`
	Nodes []string `json:"nodes"` // names of those that have it and answer
}

// DataCopy is a node that holds a copy of a version.
type DataCopy struct {
	NodeID  string `json:"node_id"`
	Node    string `json:"node"`
	Version int    `json:"version"`
	Away    bool   `json:"away,omitempty"` // the node does not answer now
}

func fileParams(more ...Param) []Param {
	return versionParams(append([]Param{{"path", "string", "a name below the version, in the bytes that it has; the whole of it unless told"}}, more...)...)
}

// The endpoints of routes about the files of named data.
var (
	DataTreeListed = endpoint[None, DataTree](Route{
		Name: "data.tree", Method: http.MethodGet, Pattern: "/v1/data/{id}/tree", Verb: VerbRead, Kind: ObjectData, From: FromData,
		Query: fileParams(
			Param{"after", "integer", "leave out so many names, as next of the page before says"},
			Param{"limit", "integer", "names of a page, at most 10000; 1000 unless told"},
		),
		Summary: "List a directory of a version of named data",
	})
	DataContent = endpoint[None, None](Route{
		Name: "data.content", Method: http.MethodGet, Pattern: "/v1/data/{id}/tree/content", Verb: VerbRead, Kind: ObjectData, From: FromData, Stream: StreamBinary,
		Query: fileParams(), Summary: "Download a file of a version; a Range of bytes is understood, and If-Range with the ETag of the answer before",
	})
	DataPreviewed = endpoint[None, DataPreview](Route{
		Name: "data.preview", Method: http.MethodGet, Pattern: "/v1/data/{id}/tree/preview", Verb: VerbRead, Kind: ObjectData, From: FromData,
		Query: fileParams(), Summary: "Show the beginning of a file of a version: text, a table, or the size of a picture",
	})
	DataArchived = endpoint[None, None](Route{
		Name: "data.archive", Method: http.MethodGet, Pattern: "/v1/data/{id}/archive", Verb: VerbRead, Kind: ObjectData, From: FromData, Stream: StreamBinary,
		Query:   fileParams(Param{"format", "string", "zip (default) or tar; names that other systems take for something else are spelled with % in a zip"}),
		Summary: "Download a directory of a version, with all below it",
	})
	DataUsed = endpoint[None, DataUse](Route{
		Name: "data.use", Method: http.MethodGet, Pattern: "/v1/data/{id}/use", Verb: VerbRead, Kind: ObjectData, From: FromData,
		Query: dataParams(), Summary: "Which jobs use named data or did, and which nodes hold copies of it",
	})
)

func dataTreeRoutes() []Route {
	return []Route{
		DataTreeListed.route,
		DataContent.route,
		DataPreviewed.route,
		DataArchived.route,
		DataUsed.route,
	}
}

// DataTree lists a directory of a version, path being the bytes of its name; after is the
// Next of the page before.
func (c *Client) DataTree(ctx context.Context, of DataName, version int, path string, after int) (*DataTree, error) {
	query := of.versionQuery(version)
	query.Set("path", path)
	if after > 0 {
		query.Set("after", strconv.Itoa(after))
	}
	list, _, err := read(ctx, c, DataTreeListed, of.Name, query)
	return list, err
}

// PreviewData shows the beginning of a file of a version.
func (c *Client) PreviewData(ctx context.Context, of DataName, version int, path string) (*DataPreview, error) {
	query := of.versionQuery(version)
	query.Set("path", path)
	shown, _, err := read(ctx, c, DataPreviewed, of.Name, query)
	return shown, err
}

// DataUse tells which jobs use named data, and where copies of it lie.
func (c *Client) DataUse(ctx context.Context, of DataName) (*DataUse, error) {
	use, _, err := read(ctx, c, DataUsed, of.Name, of.query())
	return use, err
}

package api

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"nomadlike/nomadlike/structs"
)

// DataName names data: in the project that the client acts in, or in another one that
// lets it be read.
type DataName struct {
	Kind    string // "": a dataset
	Name    string
	Project string // another project's
}

func (n DataName) query() url.Values {
	query := url.Values{}
	if n.Kind != "" {
		query.Set("kind", n.Kind)
	}
	if n.Project != "" {
		query.Set("of", n.Project)
	}
	return query
}

// DataDetail is named data as the caller may see it: uploads are for those who may
// write, and whose favourite it is nobody is told.
type DataDetail struct {
	Object     structs.DataObject `json:"object"`
	Newest     int                `json:"newest,omitempty"` // version that a job gets which names none; 0: there is none yet
	Files      int                `json:"files"`            // of the newest
	Bytes      int64              `json:"bytes"`            // of the newest
	NewestAt   structs.UnixNano   `json:"newest_at,omitempty"`
	NewestTag  string             `json:"newest_tag,omitempty"`
	Count      int                `json:"count"`             // versions that jobs may name
	Running    int                `json:"running,omitempty"` // of data.list: jobs that run and use it, also those that the caller may not see
	AllBytes   int64              `json:"all_bytes"`         // of all versions, as the project's quota counts them
	Favourite  bool               `json:"favourite"`         // the caller's own mark
	Favourites int                `json:"favourites"`        // marks of all users
	Verbs      []string           `json:"verbs"`
	Jobs       []DataJob          `json:"jobs,omitempty"` // of data.read: that have not ended, use it, and may be seen by the caller
	// Outputs are, of data.read with outputs, the newest jobs that were to make a version
	// and have not, of those that the caller may see: at most DataOutputJobsMax.
	Outputs []DataOutputJob `json:"outputs,omitempty"`
}

// DataJob is a job that uses named data.
type DataJob struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	User    string `json:"user"`
	Project string `json:"project"`
	Version int    `json:"version"`
}

// DataList answers data.list, with what the project that the request acts in has of its
// quota.
type DataList struct {
	Objects []DataDetail `json:"objects"`
	Used    int64        `json:"used"`  // bytes, of what the caller may not see too
	Quota   int64        `json:"quota"` // 0: none
}

// DataQuery says which named data to list.
type DataQuery struct {
	Kind       string
	All        bool // of every project that lets it be read
	Favourites bool // only what the caller has marked
}

// DataRequest makes named data, or changes what it says of itself; what is nil stays.
type DataRequest struct {
	Storage     *string            `json:"storage,omitempty"` // that versions are to lie in; only of new data
	Access      *string            `json:"access,omitempty"`  // private | project | cluster
	Description *string            `json:"description,omitempty"`
	Labels      *map[string]string `json:"labels,omitempty"`
	Owner       *string            `json:"owner,omitempty"`     // hand it over
	Published   *bool              `json:"published,omitempty"` // of administrators of the cluster
}

// DataRegisterRequest has a directory that is there be a version, without copying.
type DataRegisterRequest struct {
	Storage     string `json:"storage"`
	Source      string `json:"source"` // the directory, below the storage
	Tag         string `json:"tag,omitempty"`
	Access      string `json:"access,omitempty"` // of new data; "": project
	Description string `json:"description,omitempty"`
}

// DataTagRequest sets the tag of a version; "" takes the version's own away.
type DataTagRequest struct {
	Version int    `json:"version"`
	Tag     string `json:"tag"`
}

// DataMarkRequest marks named data as a favourite of the caller's, or takes that back.
type DataMarkRequest struct {
	Off bool `json:"off,omitempty"`
}

// DataChanged says what was done.
type DataChanged struct {
	Index   uint64 `json:"index"`
	Version int    `json:"version,omitempty"` // that was made, tagged or removed
}

func dataParams(more ...Param) []Param {
	return append([]Param{
		{"kind", "string", "dataset (default), model or algorithm"},
		{"of", "string", "the project that has it, when that is another one"},
	}, more...)
}

// The endpoints of routes about named data.
var (
	DataListed = endpoint[None, DataList](Route{
		Name: "data.list", Method: http.MethodGet, Pattern: "/v1/data", Verb: VerbList, Kind: ObjectData, From: FromKind,
		Query: []Param{
			{"kind", "string", "only datasets, models or algorithms"},
			{"all", "boolean", "also what other projects let everybody use"},
			{"favourites", "boolean", "only what the caller has marked"},
		},
		Summary: "List the project's named data, with what it has of its quota",
	})
	DataRead = endpoint[None, DataDetail](Route{
		Name: "data.read", Method: http.MethodGet, Pattern: "/v1/data/{id}", Verb: VerbRead, Kind: ObjectData, From: FromData,
		Query:   dataParams(Param{"outputs", "boolean", "also which jobs were to make a version of it, and have not"}),
		Summary: "Read named data with its versions, and which jobs use it",
	})
	DataPut = endpoint[DataRequest, DataChanged](Route{
		Name: "data.put", Method: http.MethodPut, Pattern: "/v1/data/{id}", Verb: VerbWrite, Kind: ObjectData, From: FromData,
		Query: dataParams(), Summary: "Make named data without versions, or change what it says of itself",
	})
	DataRegister = endpoint[DataRegisterRequest, DataChanged](Route{
		Name: "data.register", Method: http.MethodPost, Pattern: "/v1/data/{id}/register", Verb: VerbWrite, Kind: ObjectData, From: FromData,
		Query: dataParams(), Summary: "Have a directory of a storage be a version, without copying it",
	})
	DataTag = endpoint[DataTagRequest, DataChanged](Route{
		Name: "data.tag", Method: http.MethodPut, Pattern: "/v1/data/{id}/tag", Verb: VerbWrite, Kind: ObjectData, From: FromData,
		Query: dataParams(), Summary: "Give a version a tag, which the version that had it loses",
	})
	DataMark = endpoint[DataMarkRequest, DataChanged](Route{
		Name: "data.mark", Method: http.MethodPut, Pattern: "/v1/data/{id}/mark", Verb: VerbRead, Kind: ObjectData, From: FromData,
		Query: dataParams(), Summary: "Mark named data as a favourite of one's own",
	})
	DataDelete = endpoint[None, DataChanged](Route{
		Name: "data.delete", Method: http.MethodDelete, Pattern: "/v1/data/{id}", Verb: VerbDelete, Kind: ObjectData, From: FromData,
		Query:   dataParams(Param{"version", "integer", "only this version; without it all of them and the name"}),
		Summary: "Remove a version, or all of them; what a live job uses stays",
	})
)

func dataRoutes() []Route {
	return []Route{
		DataListed.route,
		DataRead.route,
		DataPut.route,
		DataRegister.route,
		DataTag.route,
		DataMark.route,
		DataDelete.route,
		DataTake.route,
		DataLineageRead.route,
	}
}

// Data lists named data.
func (c *Client) Data(ctx context.Context, of DataQuery) (*DataList, error) {
	query := url.Values{}
	if of.Kind != "" {
		query.Set("kind", of.Kind)
	}
	for name, set := range map[string]bool{"all": of.All, "favourites": of.Favourites} {
		if set {
			query.Set(name, "true")
		}
	}
	list, _, err := read(ctx, c, DataListed, "", query)
	return list, err
}

// DataObject reads named data with its versions.
func (c *Client) DataObject(ctx context.Context, of DataName) (*DataDetail, error) {
	detail, _, err := read(ctx, c, DataRead, of.Name, of.query())
	return detail, err
}

// DataWithOutputs reads named data as DataObject does, and with the jobs that were to make
// a version of it and have not.
func (c *Client) DataWithOutputs(ctx context.Context, of DataName) (*DataDetail, error) {
	query := of.query()
	query.Set("outputs", "true")
	detail, _, err := read(ctx, c, DataRead, of.Name, query)
	return detail, err
}

// PutData makes named data, or changes what it says of itself.
func (c *Client) PutData(ctx context.Context, of DataName, request DataRequest) (*DataChanged, error) {
	return post(ctx, c, DataPut, call{path: DataPut.path(of.Name), query: of.query()}, request)
}

// RegisterData has a directory of a storage be a version.
func (c *Client) RegisterData(ctx context.Context, of DataName, request DataRegisterRequest) (*DataChanged, error) {
	return post(ctx, c, DataRegister, call{path: DataRegister.path(of.Name), query: of.query()}, request)
}

// TagData sets the tag of a version, or takes it away.
func (c *Client) TagData(ctx context.Context, of DataName, request DataTagRequest) (*DataChanged, error) {
	return post(ctx, c, DataTag, call{path: DataTag.path(of.Name), query: of.query()}, request)
}

// MarkData marks named data as a favourite of the caller's, or takes that back.
func (c *Client) MarkData(ctx context.Context, of DataName, on bool) (*DataChanged, error) {
	return post(ctx, c, DataMark, call{path: DataMark.path(of.Name), query: of.query()}, DataMarkRequest{Off: !on})
}

// DeleteData removes a version, or the name with all versions where version is 0.
func (c *Client) DeleteData(ctx context.Context, of DataName, version int) (*DataChanged, error) {
	query := of.query()
	if version > 0 {
		query.Set("version", strconv.Itoa(version))
	}
	return send(ctx, c, DataDelete, call{path: DataDelete.path(of.Name), query: query})
}

package api

import (
	"bytes"
	"context"
	"net/http"
	"net/url"

	"nomadlike/nomadlike/structs"
)

// Files of named data are sent one by one, each by the tus protocol, by browsers and by
// programs that know no manifests: data.files begins a version, data.tus_create and
// data.tus_write bring its files, data.files_finish makes it.

// What the tus protocol says in headers.
const (
	TusVersion           = "1.0.0"
	TusExtensions        = "creation,creation-with-upload,termination,checksum,expiration"
	TusChecksums         = "sha256,sha1"
	TusContentType       = "application/offset+octet-stream"
	TusStatusChecksum    = 460
	HeaderTusResumable   = "Tus-Resumable"
	HeaderTusVersion     = "Tus-Version"
	HeaderTusExtension   = "Tus-Extension"
	HeaderTusMaxSize     = "Tus-Max-Size"
	HeaderTusChecksums   = "Tus-Checksum-Algorithm"
	HeaderUploadLength   = "Upload-Length"
	HeaderUploadOffset   = "Upload-Offset"
	HeaderUploadMetadata = "Upload-Metadata"
	HeaderUploadChecksum = "Upload-Checksum"
	HeaderUploadExpires  = "Upload-Expires"
)

// DataFilesRequest begins a version whose files come one by one, or goes on with one.
// What it says of data itself is for data that has no version yet.
type DataFilesRequest struct {
	// Key is a word of the caller's own choice: begun again with the same one, the upload
	// goes on. "" is one that nobody knows.
	Key         string `json:"key,omitempty"`
	Files       int    `json:"files"` // that are to come, at most
	Bytes       int64  `json:"bytes"` // of them together, at most
	Storage     string `json:"storage,omitempty"`
	Access      string `json:"access,omitempty"`
	Description string `json:"description,omitempty"`
	Tag         string `json:"tag,omitempty"`
}

// DataFilesBegun is a version whose files may come.
type DataFilesBegun struct {
	Index     uint64           `json:"index"`
	Upload    string           `json:"upload"` // names it in what follows
	Version   int              `json:"version"`
	Storage   string           `json:"storage"`
	Begun     bool             `json:"begun"` // it was begun before: some of it may be there
	URL       string           `json:"url"`   // that a tus client makes files at
	ExpiresAt structs.UnixNano `json:"expires_at"`
}

// DataFiles lists files of an upload.
type DataFiles struct {
	Files []structs.DataFile `json:"files"`
	Next  string             `json:"next,omitempty"` // the id to ask for those behind; "": these are all
}

// DataFilesFinished says how far a version is that is made of files.
type DataFilesFinished struct {
	Done    bool   `json:"done"`
	Index   uint64 `json:"index,omitempty"`
	Version int    `json:"version"`
	Known   bool   `json:"known"` // the newest version had these files already, and no other one was made
	Digest  string `json:"digest,omitempty"`
	Bytes   int64  `json:"bytes"` // looked at so far
	All     int64  `json:"all"`   // of how many
	Files   int    `json:"files"` // once it is done
}

func filesParams(more ...Param) []Param {
	return dataParams(append([]Param{{"upload", "string", "what data.files named it"}}, more...)...)
}

func tusParams() []Param {
	return filesParams(Param{"file", "string", "the file, as Location named it"})
}

// The endpoints of routes about files that come one by one.
var (
	DataFilesBegin = endpoint[DataFilesRequest, DataFilesBegun](Route{
		Name: "data.files", Method: http.MethodPost, Pattern: "/v1/data/{id}/files", Verb: VerbWrite, Kind: ObjectData, From: FromData,
		Query: dataParams(), Summary: "Begin a version whose files come one by one, or go on with one that was begun",
	})
	DataFilesList = endpoint[None, DataFiles](Route{
		Name: "data.files_list", Method: http.MethodGet, Pattern: "/v1/data/{id}/files", Verb: VerbWrite, Kind: ObjectData, From: FromData,
		Query: filesParams(Param{"after", "string", "only files behind this id"}), Summary: "List the files of a version that is being sent, and how far they are",
	})
	DataFilesFinish = endpoint[None, DataFilesFinished](Route{
		Name: "data.files_finish", Method: http.MethodPost, Pattern: "/v1/data/{id}/files/finish", Verb: VerbWrite, Kind: ObjectData, From: FromData, Upload: true,
		Query: filesParams(), Summary: "Make the version of the files that came; the body is empty, or lists the files that must be there as sha256sum prints them; asked again until it is done",
	})
	DataFilesAbort = endpoint[None, DataChanged](Route{
		Name: "data.files_abort", Method: http.MethodDelete, Pattern: "/v1/data/{id}/files", Verb: VerbWrite, Kind: ObjectData, From: FromData,
		Query: filesParams(), Summary: "Give a version up that is being sent, with its files",
	})
	DataTusOptions = endpoint[None, None](Route{
		Name: "data.tus_options", Method: http.MethodOptions, Pattern: "/v1/data/{id}/tus", Verb: VerbWrite, Kind: ObjectData, From: FromData,
		Query: filesParams(), Summary: "What of the tus protocol is known here, in headers",
	})
	DataTusCreate = endpoint[None, None](Route{
		Name: "data.tus_create", Method: http.MethodPost, Pattern: "/v1/data/{id}/tus", Verb: VerbWrite, Kind: ObjectData, From: FromData, Upload: true,
		Query: filesParams(), Summary: "Begin a file by the tus protocol; Upload-Metadata has its path, and may have sha256 and executable",
	})
	DataTusOffset = endpoint[None, None](Route{
		Name: "data.tus_offset", Method: http.MethodHead, Pattern: "/v1/data/{id}/tus/file", Verb: VerbWrite, Kind: ObjectData, From: FromData,
		Query: tusParams(), Summary: "How far a file is, in Upload-Offset",
	})
	DataTusWrite = endpoint[None, None](Route{
		Name: "data.tus_write", Method: http.MethodPatch, Pattern: "/v1/data/{id}/tus/file", Verb: VerbWrite, Kind: ObjectData, From: FromData, Upload: true,
		Query: tusParams(), Summary: "Send bytes of a file by the tus protocol; answered when they are on the storage's disk",
	})
	DataTusRemove = endpoint[None, None](Route{
		Name: "data.tus_remove", Method: http.MethodDelete, Pattern: "/v1/data/{id}/tus/file", Verb: VerbWrite, Kind: ObjectData, From: FromData,
		Query: tusParams(), Summary: "Forget a file of a version that is being sent",
	})
)

func dataFilesRoutes() []Route {
	return []Route{
		DataFilesBegin.route,
		DataFilesList.route,
		DataFilesFinish.route,
		DataFilesAbort.route,
		DataTusOptions.route,
		DataTusCreate.route,
		DataTusOffset.route,
		DataTusWrite.route,
		DataTusRemove.route,
	}
}

// BeginDataFiles begins a version whose files come one by one, or goes on.
func (c *Client) BeginDataFiles(ctx context.Context, of DataName, request DataFilesRequest) (*DataFilesBegun, error) {
	return post(ctx, c, DataFilesBegin, call{path: DataFilesBegin.path(of.Name), query: of.query(), repeat: request.Key != ""}, request)
}

func (n DataName) filesQuery(upload string) url.Values {
	query := n.query()
	query.Set("upload", upload)
	return query
}

// DataFiles lists files of an upload, those behind an id; "" from the first one on.
func (c *Client) DataFiles(ctx context.Context, of DataName, upload, after string) (*DataFiles, error) {
	query := of.filesQuery(upload)
	if after != "" {
		query.Set("after", after)
	}
	files, _, err := read(ctx, c, DataFilesList, of.Name, query)
	return files, err
}

// FinishDataFiles asks for the version. Sums lists the files that must be there, as
// sha256sum prints them; nil compares what came with what was announced.
func (c *Client) FinishDataFiles(ctx context.Context, of DataName, upload string, sums []byte) (*DataFilesFinished, error) {
	return send(ctx, c, DataFilesFinish, call{path: DataFilesFinish.path(of.Name), query: of.filesQuery(upload), upload: bytes.NewReader(sums)})
}

// AbortDataFiles ends an upload, and removes what was sent.
func (c *Client) AbortDataFiles(ctx context.Context, of DataName, upload string) error {
	_, err := send(ctx, c, DataFilesAbort, call{path: DataFilesAbort.path(of.Name), query: of.filesQuery(upload), repeat: true})
	return err
}

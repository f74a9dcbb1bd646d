package api

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

// DataUploadsMax is how many bodies of data of one caller are taken at once; more wait.
const DataUploadsMax = 8

// DataUploadRequest begins to send a version of named data, or goes on with one. What it
// says of data itself is for data that has no version yet.
type DataUploadRequest struct {
	Digest      string `json:"digest"` // of the manifest that is to come
	Files       int    `json:"files"`
	Bytes       int64  `json:"bytes"`
	Storage     string `json:"storage,omitempty"` // "": where the data is, or the only one that there is
	Access      string `json:"access,omitempty"`  // "": project
	Description string `json:"description,omitempty"`
	Tag         string `json:"tag,omitempty"` // of the version
}

// DataUpload is a version that is being sent.
type DataUpload struct {
	Index   uint64 `json:"index"`
	Upload  string `json:"upload,omitempty"` // names it in what follows; "" where nothing has to be sent
	Version int    `json:"version"`          // that it is to be, or is
	Storage string `json:"storage"`
	Known   bool   `json:"known"` // the newest version is this one already
	Begun   bool   `json:"begun"` // it was begun before: some of it may be there
}

// DataMissingRequest asks which chunks of a version have to be sent.
type DataMissingRequest struct {
	Chunks []CodePartRef `json:"chunks"` // at most structs.DataAskChunksMax
}

// DataMissing says which.
type DataMissing struct {
	Missing []int `json:"missing"` // places in the list that was asked about
}

// DataKept says that chunks are on the disk.
type DataKept struct {
	Chunks int `json:"chunks"`
}

// DataFinished says how far a version is: what has not changed since the one before is
// shared with that, which takes time. Asked again until it is done.
type DataFinished struct {
	Done    bool   `json:"done"`
	Index   uint64 `json:"index,omitempty"`
	Version int    `json:"version"`
	Bytes   int64  `json:"bytes"` // looked at so far
	All     int64  `json:"all"`   // of how many
	Files   int    `json:"files"` // once it is done
}

// DataChunksRequest asks for bytes of a version.
type DataChunksRequest struct {
	Chunks []CodePartRef `json:"chunks"` // together at most structs.DataAskBytesMax
}

// DataVerified says how far a verification is, and what it has found. Asked again until
// it is done.
type DataVerified struct {
	Done    bool                `json:"done"`
	Version int                 `json:"version"`
	Files   int                 `json:"files"`
	Bytes   int64               `json:"bytes"` // looked at so far
	All     int64               `json:"all"`   // of how many
	Wrong   []structs.DataWrong `json:"wrong"` // at most structs.DataWrongMax
	Wrongs  int                 `json:"wrongs"`
}

func uploadParams() []Param {
	return dataParams(
		Param{"upload", "string", "what data.upload named it"},
		Param{"digest", "string", "of its manifest, as in data.upload"},
	)
}

func versionParams(more ...Param) []Param {
	return dataParams(append([]Param{{"version", "integer", "which version; the newest unless told"}}, more...)...)
}

// The endpoints of routes about the bytes of named data.
var (
	DataUploadBegin = endpoint[DataUploadRequest, DataUpload](Route{
		Name: "data.upload", Method: http.MethodPost, Pattern: "/v1/data/{id}/uploads", Verb: VerbWrite, Kind: ObjectData, From: FromData,
		Query: dataParams(), Summary: "Begin to send a version of named data, or go on with one that was begun",
	})
	DataUploadManifest = endpoint[None, DataKept](Route{
		Name: "data.upload_manifest", Method: http.MethodPost, Pattern: "/v1/data/{id}/uploads/manifest", Verb: VerbWrite, Kind: ObjectData, From: FromData, Upload: true,
		Query: uploadParams(), Summary: "Send the manifest of a version, before its chunks",
	})
	DataUploadMissing = endpoint[DataMissingRequest, DataMissing](Route{
		Name: "data.upload_missing", Method: http.MethodPost, Pattern: "/v1/data/{id}/uploads/missing", Verb: VerbWrite, Kind: ObjectData, From: FromData, Question: true,
		Query: uploadParams(), Summary: "Which chunks of a version have neither been sent nor lie in an earlier one",
	})
	DataUploadChunks = endpoint[None, DataKept](Route{
		Name: "data.upload_chunks", Method: http.MethodPost, Pattern: "/v1/data/{id}/uploads/chunks", Verb: VerbWrite, Kind: ObjectData, From: FromData, Upload: true,
		Query: uploadParams(), Summary: "Send chunks of a version, spelled as in code.chunks; answered when they are on the storage's disk",
	})
	DataUploadFinish = endpoint[None, DataFinished](Route{
		Name: "data.upload_finish", Method: http.MethodPost, Pattern: "/v1/data/{id}/uploads/finish", Verb: VerbWrite, Kind: ObjectData, From: FromData,
		Query: uploadParams(), Summary: "Make the version of what was sent; asked again until it is done",
	})
	DataUploadAbort = endpoint[None, DataChanged](Route{
		Name: "data.upload_abort", Method: http.MethodDelete, Pattern: "/v1/data/{id}/uploads", Verb: VerbWrite, Kind: ObjectData, From: FromData,
		Query: uploadParams(), Summary: "Give an upload up, with what was sent",
	})
	DataManifest = endpoint[None, None](Route{
		Name: "data.manifest", Method: http.MethodGet, Pattern: "/v1/data/{id}/manifest", Verb: VerbRead, Kind: ObjectData, From: FromData, Stream: StreamBinary,
		Query: versionParams(), Summary: "Read the manifest of a version of named data",
	})
	DataChunks = endpoint[DataChunksRequest, None](Route{
		Name: "data.chunks", Method: http.MethodPost, Pattern: "/v1/data/{id}/chunks", Verb: VerbRead, Kind: ObjectData, From: FromData, Stream: StreamBinary, Question: true,
		Query: versionParams(), Summary: "Read chunks of a version of named data, one after the other, at most 8 MiB",
	})
	DataVerify = endpoint[None, DataVerified](Route{
		Name: "data.verify", Method: http.MethodPost, Pattern: "/v1/data/{id}/verify", Verb: VerbRead, Kind: ObjectData, From: FromData, Question: true,
		Query:   versionParams(Param{"run", "string", "a word of 8 to 64 letters and digits: the same one asks how far it is"}),
		Summary: "Compare a version on its storage with its manifest; asked again until it is done",
	})
)

func dataBytesRoutes() []Route {
	return []Route{
		DataUploadBegin.route,
		DataUploadManifest.route,
		DataUploadMissing.route,
		DataUploadChunks.route,
		DataUploadFinish.route,
		DataUploadAbort.route,
		DataManifest.route,
		DataChunks.route,
		DataVerify.route,
	}
}

// BeginDataUpload begins to send a version, or goes on.
func (c *Client) BeginDataUpload(ctx context.Context, of DataName, request DataUploadRequest) (*DataUpload, error) {
	return post(ctx, c, DataUploadBegin, call{path: DataUploadBegin.path(of.Name), query: of.query(), repeat: true}, request) // the same one goes on
}

// DataSender sends one version. To do any of it again does no harm.
type DataSender struct {
	client *Client
	of     DataName
	query  url.Values
}

// DataSender returns what sends the version of a digest that BeginDataUpload named.
func (c *Client) DataSender(of DataName, upload string, digest tree.Digest) *DataSender {
	query := of.query()
	query.Set("upload", upload)
	query.Set("digest", string(digest))
	return &DataSender{c, of, query}
}

// Manifest sends the manifest.
func (s *DataSender) Manifest(ctx context.Context, data []byte) error {
	_, err := send(ctx, s.client, DataUploadManifest, call{path: DataUploadManifest.path(s.of.Name), query: s.query, upload: bytes.NewReader(data)})
	return err
}

// Missing returns those of some chunks, at most structs.DataAskChunksMax, that have to be
// sent.
func (s *DataSender) Missing(ctx context.Context, chunks []tree.Chunk) ([]tree.Chunk, error) {
	told, err := post(ctx, s.client, DataUploadMissing, call{path: DataUploadMissing.path(s.of.Name), query: s.query, repeat: true}, DataMissingRequest{Chunks: partRefs(chunks)})
	if err != nil {
		return nil, err
	}
	var missing []tree.Chunk
	for _, at := range told.Missing {
		if at < 0 || at >= len(chunks) {
			return nil, structs.NewError(structs.CodeInternal, "code.body_broken")
		}
		missing = append(missing, chunks[at])
	}
	return missing, nil
}

func partRefs(chunks []tree.Chunk) []CodePartRef {
	refs := make([]CodePartRef, len(chunks))
	for i, chunk := range chunks {
		refs[i] = CodePartRef{Digest: string(chunk.Digest), Size: chunk.Size}
	}
	return refs
}

// Chunks sends chunks, at most CodeChunksMax and CodeBytesMax.
func (s *DataSender) Chunks(ctx context.Context, pieces []CodePiece) error {
	body, err := EncodeCodeChunks(pieces)
	if err != nil {
		return err
	}
	_, err = send(ctx, s.client, DataUploadChunks, call{path: DataUploadChunks.path(s.of.Name), query: s.query, upload: bytes.NewReader(body)})
	return err
}

// Finish asks for the version. A refusal with the id "code.incomplete" says that chunks
// are missing: Missing tells which.
func (s *DataSender) Finish(ctx context.Context) (*DataFinished, error) {
	return send(ctx, s.client, DataUploadFinish, call{path: DataUploadFinish.path(s.of.Name), query: s.query, repeat: true})
}

// Abort removes the upload with what was sent.
func (s *DataSender) Abort(ctx context.Context) error {
	_, err := send(ctx, s.client, DataUploadAbort, call{path: DataUploadAbort.path(s.of.Name), query: s.query, repeat: true})
	return err
}

func (n DataName) versionQuery(version int) url.Values {
	query := n.query()
	if version > 0 {
		query.Set("version", strconv.Itoa(version))
	}
	return query
}

// DataManifest reads the manifest of a version. Nothing is verified: whoever reads it
// compares its digest.
func (c *Client) DataManifest(ctx context.Context, of DataName, version int) ([]byte, error) {
	return c.readCode(ctx, DataManifest.path(of.Name), of.versionQuery(version), tree.ManifestSizeMax)
}

// DataChunks reads chunks of a version, together at most structs.DataAskBytesMax, one
// after the other. Nothing is verified.
func (c *Client) DataChunks(ctx context.Context, of DataName, version int, chunks []tree.Chunk) ([]byte, error) {
	response, err := c.send(ctx, call{
		method: http.MethodPost, path: DataChunks.path(of.Name), query: of.versionQuery(version), in: DataChunksRequest{Chunks: partRefs(chunks)}, repeat: true,
	})
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return io.ReadAll(io.LimitReader(response.Body, structs.DataAskBytesMax))
}

// VerifyData asks how far a verification is, and begins it; run names it.
func (c *Client) VerifyData(ctx context.Context, of DataName, version int, run string) (*DataVerified, error) {
	query := of.versionQuery(version)
	query.Set("run", run)
	return send(ctx, c, DataVerify, call{path: DataVerify.path(of.Name), query: query, repeat: true})
}

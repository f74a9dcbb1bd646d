package api

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"io"
	"net/http"
	"net/url"
	"strings"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

// Bounds of requests about code.
const (
	CodeMissingMax  = 8_000   // chunks of one CodeMissingRequest
	CodeChunksMax   = 4_096   // chunks of one body
	CodeBytesMax    = 8 << 20 // bytes of them together
	codeFrame       = 32 + 4  // bytes before a chunk: its SHA-256, and its size, big-endian
	CodeRequestsMax = 4       // bodies of chunks of one caller that are taken at once; more wait
)

// CodeMissingRequest asks what of a directory the cluster lacks.
type CodeMissingRequest struct {
	Tree   string        `json:"tree"`             // digest of its manifest
	Chunks []CodePartRef `json:"chunks,omitempty"` // at most CodeMissingMax; without any, only Known is of interest
}

// CodePartRef names a chunk of a file.
type CodePartRef struct {
	Digest string `json:"digest"`
	Size   int64  `json:"size"` // bytes
}

// CodeMissing says what of it has to be sent.
type CodeMissing struct {
	Known   bool     `json:"known"`   // the project has the whole tree: nothing has to be sent
	Missing []string `json:"missing"` // digests of the chunks that were asked about and are not there
	Max     int64    `json:"max"`     // bytes of code that may travel with a job of the project
}

// CodeKept says what was taken of a body of chunks.
type CodeKept struct {
	Chunks int `json:"chunks"`
	Fresh  int `json:"fresh"` // of them, that the server did not have
}

// CodeMade is code that more than half of the servers have on their disks.
type CodeMade struct {
	Index uint64 `json:"index"`
	Tree  string `json:"tree"`
	Files int    `json:"files"`
	Bytes int64  `json:"bytes"`
}

// CodeArchived is code that came as an archive.
type CodeArchived struct {
	CodeMade
	LeftOut []CodeLeftOut `json:"left_out"` // at most CodeLeftOutMax
	Left    int           `json:"left"`     // names that stayed behind
}

// CodeLeftOutMax bounds the names of one CodeArchived.
const CodeLeftOutMax = 1_000

// CodeLeftOut is a name that stayed behind, and the rule that left it out. What lies
// below a directory that stayed behind was not looked at.
type CodeLeftOut struct {
	Path string `json:"path"`
	Dir  bool   `json:"dir,omitempty"`
	Rule string `json:"rule"`
	File string `json:"file,omitempty"` // that has the rule; "" of the usual leavings
	Line int    `json:"line,omitempty"`
}

// The endpoints of routes about code.
var (
	CodeAskMissing = endpoint[CodeMissingRequest, CodeMissing](Route{
		Name: "code.missing", Method: http.MethodPost, Pattern: "/v1/code/missing", Verb: VerbSubmit, Kind: ObjectJob, From: FromCode, Question: true,
		Summary: "What of a directory of code does the project not have yet",
	})
	CodeChunks = endpoint[None, CodeKept](Route{
		Name: "code.chunks", Method: http.MethodPost, Pattern: "/v1/code/chunks", Verb: VerbSubmit, Kind: ObjectJob, From: FromCode, Upload: true,
		Summary: "Send chunks of code, at most 4096 and 8 MiB: of each the 32 bytes of its SHA-256, its size in 4 bytes (big-endian), and its bytes",
	})
	CodeCommit = endpoint[None, CodeMade](Route{
		Name: "code.commit", Method: http.MethodPost, Pattern: "/v1/code", Verb: VerbSubmit, Kind: ObjectJob, From: FromCode, Upload: true,
		Summary: "Send the manifest of a directory whose chunks were sent; answered when more than half of the servers have all of it on their disks",
	})
	CodeArchive = endpoint[None, CodeArchived](Route{
		Name: "code.archive", Method: http.MethodPost, Pattern: "/v1/code/archive", Verb: VerbSubmit, Kind: ObjectJob, From: FromCode, Upload: true,
		Summary: "Send a directory of code as a tar archive, plain or compressed by gzip; what .gitignore, .nomadlikeignore and the usual leavings leave out stays behind, as with job run -workdir",
	})
	CodeManifest = endpoint[None, None](Route{
		Name: "code.manifest", Method: http.MethodGet, Pattern: "/v1/code/{id}", Verb: VerbLogs, Kind: ObjectJob, From: FromCode, Stream: StreamBinary,
		Summary: "Read the manifest of the code of a job, by the 64 digits of its digest",
	})
	CodeChunk = endpoint[None, None](Route{
		Name: "code.chunk", Method: http.MethodGet, Pattern: "/v1/code/{id}/chunk", Verb: VerbLogs, Kind: ObjectJob, From: FromCode, Stream: StreamBinary,
		Query:   []Param{{"digest", "string", "of the chunk, sha256: and 64 digits; the manifest names them"}},
		Summary: "Read a chunk of the code of a job",
	})
)

func codeRoutes() []Route {
	return []Route{
		CodeAskMissing.route,
		CodeChunks.route,
		CodeCommit.route,
		CodeArchive.route,
		CodeManifest.route,
		CodeChunk.route,
	}
}

// CodePiece is a chunk with its bytes.
type CodePiece struct {
	Chunk tree.Chunk
	Data  []byte
}

// EncodeCodeChunks spells chunks as a body.
func EncodeCodeChunks(pieces []CodePiece) ([]byte, error) {
	size := 0
	for i := range pieces {
		size += codeFrame + len(pieces[i].Data)
	}
	body := make([]byte, 0, size)
	for i := range pieces {
		sum, err := hex.DecodeString(codeID(pieces[i].Chunk.Digest))
		if err != nil || len(sum) != 32 {
			return nil, structs.NewError(structs.CodeInvalid, "code.digest", "digest", string(pieces[i].Chunk.Digest))
		}
		body = append(body, sum...)
		body = binary.BigEndian.AppendUint32(body, uint32(len(pieces[i].Data)))
		body = append(body, pieces[i].Data...)
	}
	return body, nil
}

// ReadCodeChunks reads a body, and believes nothing but its bounds: that bytes are
// those of the digest before them is for others to see.
func ReadCodeChunks(body io.Reader) ([]CodePiece, error) {
	var pieces []CodePiece
	left := CodeBytesMax
	for {
		var head [codeFrame]byte
		if _, err := io.ReadFull(body, head[:]); err == io.EOF {
			return pieces, nil
		} else if err != nil {
			return nil, brokenBody(err)
		}
		size := binary.BigEndian.Uint32(head[32:])
		if len(pieces) == CodeChunksMax || int64(size) > int64(left) {
			return nil, structs.NewError(structs.CodeTooLarge, "code.body_too_large", "chunks", CodeChunksMax, "max", CodeBytesMax)
		}
		left -= int(size)
		data := make([]byte, size)
		if _, err := io.ReadFull(body, data); err != nil {
			return nil, brokenBody(err)
		}
		pieces = append(pieces, CodePiece{tree.Chunk{Digest: tree.Digest("sha256:" + hex.EncodeToString(head[:32])), Size: int64(size)}, data})
	}
}

func brokenBody(err error) error {
	return structs.NewError(structs.CodeInvalid, "code.body_broken").Because(err)
}

// codeID is how a digest is spelled in a path.
func codeID(digest tree.Digest) string { return strings.TrimPrefix(string(digest), "sha256:") }

// CodeMissing asks whether the project has a directory, and what of some chunks, at most
// CodeMissingMax, it lacks. The client acts in the project of the job: see In.
func (c *Client) CodeMissing(ctx context.Context, digest tree.Digest, chunks []tree.Chunk) (known bool, missing []tree.Digest, err error) {
	request := CodeMissingRequest{Tree: string(digest)}
	for _, chunk := range chunks {
		request.Chunks = append(request.Chunks, CodePartRef{Digest: string(chunk.Digest), Size: chunk.Size})
	}
	told, err := ask(ctx, c, CodeAskMissing, "", request)
	if err != nil {
		return false, nil, err
	}
	for _, one := range told.Missing {
		missing = append(missing, tree.Digest(one))
	}
	return told.Known, missing, nil
}

// CodeMost asks how many bytes of code may travel with a job of the project; what an
// older server does not say is CodeMaxDefault.
func (c *Client) CodeMost(ctx context.Context) (int64, error) {
	told, err := ask(ctx, c, CodeAskMissing, "", CodeMissingRequest{})
	if err != nil || told.Max == 0 {
		return structs.CodeMaxDefault, err
	}
	return told.Max, nil
}

// SendCodeChunks sends chunks, at most CodeChunksMax and CodeBytesMax. To send them
// again does no harm, whatever became of them.
func (c *Client) SendCodeChunks(ctx context.Context, pieces []CodePiece) (*CodeKept, error) {
	body, err := EncodeCodeChunks(pieces)
	if err != nil {
		return nil, err
	}
	return send(ctx, c, CodeChunks, call{path: CodeChunks.path(""), upload: bytes.NewReader(body)})
}

// CommitCode sends the manifest of a directory whose chunks were sent. A refusal with
// the id "code.incomplete" says that some are not there: CodeMissing tells which.
func (c *Client) CommitCode(ctx context.Context, manifest []byte) (*CodeMade, error) {
	return send(ctx, c, CodeCommit, call{path: CodeCommit.path(""), upload: bytes.NewReader(manifest)})
}

// SendCodeArchive sends a directory as a tar archive.
func (c *Client) SendCodeArchive(ctx context.Context, archive []byte) (*CodeArchived, error) {
	return send(ctx, c, CodeArchive, call{path: CodeArchive.path(""), upload: bytes.NewReader(archive)})
}

// CodeManifest reads the manifest of a job's code. Nothing is verified: whoever reads
// it compares its digest.
func (c *Client) CodeManifest(ctx context.Context, digest tree.Digest) ([]byte, error) {
	return c.readCode(ctx, CodeManifest.path(codeID(digest)), nil, tree.ManifestSizeMax)
}

// CodeChunk reads a chunk of a job's code, likewise.
func (c *Client) CodeChunk(ctx context.Context, digest tree.Digest, chunk tree.Chunk) ([]byte, error) {
	return c.readCode(ctx, CodeChunk.path(codeID(digest)), url.Values{"digest": {string(chunk.Digest)}}, tree.ChunkSizeMax)
}

func (c *Client) readCode(ctx context.Context, path string, query url.Values, most int64) ([]byte, error) {
	response, err := c.send(ctx, call{method: http.MethodGet, path: path, query: query, repeat: true})
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return io.ReadAll(io.LimitReader(response.Body, most))
}

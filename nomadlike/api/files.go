package api

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"nomadlike/nomadlike/structs"
)

// FileFilter says whose files are meant. Zero values mean rank 0 of the newest
// attempt of the first subjob.
type FileFilter struct {
	Attempt uint64
	Subjob  int
	Rank    int
}

func (f FileFilter) values(path string) url.Values {
	values := url.Values{"path": {path}}
	if f.Attempt > 0 {
		values.Set("attempt", strconv.FormatUint(f.Attempt, 10))
	}
	if f.Subjob > 0 {
		values.Set("subjob", strconv.Itoa(f.Subjob))
	}
	if f.Rank > 0 {
		values.Set("rank", strconv.Itoa(f.Rank))
	}
	return values
}

// FileList is a file or directory that a job wrote, with the entries of a
// directory by name.
type FileList struct {
	AllocID string              `json:"alloc_id"`
	Attempt uint64              `json:"attempt"`
	Rank    int                 `json:"rank"`
	Path    string              `json:"path"`
	Entry   structs.FileEntry   `json:"entry"`
	Entries []structs.FileEntry `json:"entries"`
	More    bool                `json:"more,omitempty"`   // the directory has more entries than are told
	SHA256  string              `json:"sha256,omitempty"` // of the bytes that were asked about, where that was and the node can tell
}

// Files lists what a job wrote: outputs/… below its output, and logs/… that the
// rank printed.
func (c *Client) Files(ctx context.Context, id, path string, filter FileFilter) (*FileList, error) {
	out, _, err := read(ctx, c, JobsFiles, id, filter.values(path))
	return out, err
}

// OpenFile reads a file that a job wrote, from offset on. The caller closes it.
// A read that fails half way returns an error that is not io.EOF.
func (c *Client) OpenFile(ctx context.Context, id, path string, filter FileFilter, offset int64) (io.ReadCloser, error) {
	header := http.Header{}
	if offset > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-", offset))
	}
	response, err := c.send(ctx, call{method: http.MethodGet, path: JobsFileContent.path(id), query: filter.values(path), header: header, repeat: true})
	if err != nil {
		return nil, err
	}
	return response.Body, nil
}

// FileDigest asks the node for the SHA-256 of bytes of a file that a job wrote, at most
// structs.FileDigestMax from offset on. There is none in the answer of agents that are
// too old to tell, and of a file that is shorter it is of fewer bytes: Entry.Size says.
func (c *Client) FileDigest(ctx context.Context, id, path string, filter FileFilter, offset, limit int64) (*FileList, error) {
	values := filter.values(path)
	values.Set("digest", "true")
	values.Set("offset", strconv.FormatInt(offset, 10))
	values.Set("limit", strconv.FormatInt(limit, 10))
	out, _, err := read(ctx, c, JobsFiles, id, values)
	return out, err
}

// headerContentDigest is of RFC 9530: the digest of the bytes of an answer.
const headerContentDigest = "Content-Digest"

// ContentDigest spells a SHA-256, 64 digits, as the header Content-Digest does.
func ContentDigest(sha256 string) string {
	sum, err := hex.DecodeString(sha256)
	if err != nil {
		return ""
	}
	return "sha-256=:" + base64.StdEncoding.EncodeToString(sum) + ":"
}

// fromContentDigest is the opposite; "" of what it does not know.
func fromContentDigest(header string) string {
	text, ok := strings.CutPrefix(header, "sha-256=:")
	text, closed := strings.CutSuffix(text, ":")
	sum, err := base64.StdEncoding.DecodeString(text)
	if !ok || !closed || err != nil {
		return ""
	}
	return hex.EncodeToString(sum)
}

// OpenFilePart reads some bytes, at least one, of a file that a job wrote. The digest is
// the SHA-256 that its node has of them, before they went over any network; "" of agents
// that are too old to tell. The caller closes the body.
func (c *Client) OpenFilePart(ctx context.Context, id, path string, filter FileFilter, offset, limit int64) (body io.ReadCloser, digest string, err error) {
	values, header := filter.values(path), http.Header{}
	values.Set("digest", "true")
	header.Set("Range", fmt.Sprintf("bytes=%d-%d", offset, offset+limit-1))
	response, err := c.send(ctx, call{method: http.MethodGet, path: JobsFileContent.path(id), query: values, header: header, repeat: true})
	if err != nil {
		return nil, "", err
	}
	if length := response.ContentLength; length < 0 || length > limit { // some proxy does not know ranges
		return nil, "", errors.Join(structs.NewError(structs.CodeUnavailable, "api.no_range"), response.Body.Close())
	}
	return response.Body, fromContentDigest(response.Header.Get(headerContentDigest)), nil
}

// fileRoutes are the routes of what jobs write.
// rankParams choose the rank whose files are meant, beside other parameters.
func rankParams(more ...Param) []Param {
	return append(more,
		Param{"attempt", "integer", "of this attempt; the newest unless told"},
		Param{"subjob", "integer", "of this subjob; 0 unless told"},
		Param{"rank", "integer", "of this rank; 0 unless told"},
	)
}

// The endpoints of file routes.
var (
	JobsFiles = endpoint[None, FileList](Route{
		Name: "jobs.files", Method: http.MethodGet, Pattern: "/v1/jobs/{id}/files", Verb: VerbLogs, Kind: ObjectJob, From: FromJob,
		Query: rankParams(
			Param{"path", "string", "outputs, logs, or a path below one of them; both unless told"},
			Param{"digest", "boolean", "of a file: tell the SHA-256 of its bytes, at most 256 MiB"},
			Param{"offset", "integer", "with digest: of the bytes from this one on; 0 unless told"},
			Param{"limit", "integer", "with digest: of so many bytes; up to the end unless told"},
		),
		Summary: "List what a job wrote into its output and its logs, as long as the node keeps it",
	})
	JobsFileContent = endpoint[None, None](Route{
		Name: "jobs.file_content", Method: http.MethodGet, Pattern: "/v1/jobs/{id}/files/content", Verb: VerbLogs, Kind: ObjectJob, From: FromJob, Stream: StreamBinary,
		Query: rankParams(
			Param{"path", "string", "a file below outputs or logs"},
			Param{"digest", "boolean", "tell the SHA-256 of the bytes, at most 256 MiB, in the header Content-Digest (RFC 9530)"},
		),
		Summary: "Download a file that a job wrote; a Range of bytes is understood",
	})
)

func fileRoutes() []Route {
	return []Route{
		JobsFiles.route,
		JobsFileContent.route,
	}
}

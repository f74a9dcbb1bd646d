package api

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

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
	More    bool                `json:"more,omitempty"` // the directory has more entries than are told
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
		Query:   rankParams(Param{"path", "string", "outputs, logs, or a path below one of them; both unless told"}),
		Summary: "List what a job wrote into its output and its logs, as long as the node keeps it",
	})
	JobsFileContent = endpoint[None, None](Route{
		Name: "jobs.file_content", Method: http.MethodGet, Pattern: "/v1/jobs/{id}/files/content", Verb: VerbLogs, Kind: ObjectJob, From: FromJob, Stream: StreamBinary,
		Query:   rankParams(Param{"path", "string", "a file below outputs or logs"}),
		Summary: "Download a file that a job wrote; a Range of bytes is understood",
	})
)

func fileRoutes() []Route {
	return []Route{
		JobsFiles.route,
		JobsFileContent.route,
	}
}

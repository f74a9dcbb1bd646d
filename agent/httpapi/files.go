package httpapi

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"path"
	"strconv"
	"strings"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/structs"
)

// fileHandlers answers about the files of jobs.
type fileHandlers struct {
	*core
	calls *nodeCalls
}

// fileStream is an answer of a node to a FileRequest.
type fileStream struct {
	*rpc.ClientStream[structs.FileRequest, structs.FileChunk]
	alloc *structs.Allocation
	first *structs.FileChunk
}

// open finds whose files a request means, and asks the node for them.
func (h *fileHandlers) open(ctx context.Context, r *front.Request, ask structs.FileRequest) (*fileStream, error) {
	q := front.Query{R: r}
	attempt, subjob, rank := q.Uint("attempt"), q.Int("subjob", 0, structs.BatchCountMax), q.Int("rank", 0, 1<<30)
	if ask.Path = q.Text("path"); len(ask.Path) > structs.FilePathMax {
		q.Refuse("path", "…")
	}
	if q.Err != nil {
		return nil, q.Err
	}
	if err := h.refresh(r); err != nil {
		return nil, err
	}
	var of *structs.Allocation
	for alloc := range h.store.Snapshot().AllocsOfJob(r.ID) {
		if alloc.Subjob == int(subjob) && alloc.Rank == int(rank) && (attempt == 0 || alloc.Attempt == attempt) && (of == nil || alloc.Attempt > of.Attempt) {
			of = alloc
		}
	}
	if of == nil { // not a matter of who asks: the job is known to them
		return nil, structs.NewError(structs.CodeConflict, "agent.files_none", "job", r.PathValue("id"))
	}
	conn, err := h.calls.ofAllocation(of)
	if err != nil {
		return nil, err
	}
	stream, err := rpc.OpenStream[structs.FileRequest, structs.FileChunk](ctx, conn, structs.MethodAllocFiles)
	if err != nil {
		return nil, err
	}
	ask.AllocID = of.ID
	if err := errors.Join(stream.Send(&ask), stream.CloseSend()); err != nil && !errors.Is(err, rpc.ErrStreamEnded) {
		stream.Close()
		return nil, err
	}
	first, err := stream.Recv()
	if err == nil && first.Entry == nil {
		err = structs.NewError(structs.CodeInternal, "agent.broken_off")
	}
	if err != nil {
		stream.Close()
		return nil, err
	}
	return &fileStream{stream, of, first}, nil
}

// list answers jobs.files.
func (h *fileHandlers) list(r *front.Request, job *structs.Job) (*api.FileList, error) {
	q := front.Query{R: r}
	ask := structs.FileRequest{List: true, Digest: q.Bool("digest")}
	if ask.Digest {
		ask.Offset, ask.Limit = q.Int("offset", 0, math.MaxInt64), q.Int("limit", 0, structs.FileDigestMax)
	}
	if q.Err != nil {
		return nil, q.Err
	}
	stream, err := h.open(r.Context(), r, ask)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	out := api.FileList{
		AllocID: stream.alloc.ID, Attempt: stream.alloc.Attempt, Rank: stream.alloc.Rank, Path: path.Clean("/" + r.URL.Query().Get("path"))[1:],
		Entry: *stream.first.Entry, Entries: stream.first.Entries, More: stream.first.More,
		SHA256: stream.first.SHA256,
	}
	if out.Entries == nil {
		out.Entries = []structs.FileEntry{}
	}
	return &out, nil
}

// inert is the policy of what tasks wrote: a browser that shows it all the same
// runs nothing of it, and takes it for nobody's.
const inert = "sandbox; default-src 'none'"

// read answers jobs.file_content. What breaks off in the middle is shorter
// than its Content-Length.
func (h *fileHandlers) read(r *front.Request, job *structs.Job) error {
	offset, limit, ranged, err := byteRange(r.Header.Get("Range"))
	if err != nil {
		return err
	}
	ctx, end := h.whileValid(r)
	defer end()
	q := front.Query{R: r}
	ask := structs.FileRequest{Offset: offset, Limit: limit, Digest: q.Bool("digest")}
	if q.Err != nil {
		return q.Err
	}
	stream, err := h.open(ctx, r, ask)
	if err != nil {
		return err
	}
	defer stream.Close()
	entry, at := stream.first.Entry, stream.first.Offset
	length := entry.Size - at
	if limit > 0 {
		length = min(length, limit)
	}
	head := r.Writer.Header()
	if ranged && length <= 0 {
		head.Set("Content-Range", "bytes */"+strconv.FormatInt(entry.Size, 10))
		return &front.StatusError{Status: http.StatusRequestedRangeNotSatisfiable, Err: structs.NewError(structs.CodeInvalid, "agent.range", "size", entry.Size)}
	}
	head.Set("Content-Type", "application/octet-stream")
	head.Set("Content-Disposition", "attachment")
	head.Set("Content-Security-Policy", inert)
	head.Set("Accept-Ranges", "bytes")
	if digest := api.ContentDigest(stream.first.SHA256); stream.first.SHA256 != "" && digest != "" {
		head.Set("Content-Digest", digest)
	}
	head.Set("Content-Length", strconv.FormatInt(length, 10))
	head.Set("Last-Modified", entry.Modified.Time().UTC().Format(http.TimeFormat))
	if ranged {
		head.Set("Content-Range", "bytes "+strconv.FormatInt(at, 10)+"-"+strconv.FormatInt(at+length-1, 10)+"/"+strconv.FormatInt(entry.Size, 10))
		r.Writer.WriteHeader(http.StatusPartialContent)
	}
	out := newLineWriter(r.Writer)
	for sent := int64(0); sent < length; {
		chunk, err := stream.Recv()
		if err != nil || chunk.EOF {
			if err == nil || errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			h.log.Debug("file of a job broke off", "error", err)
			panic(http.ErrAbortHandler) // the reader must not take it for whole
		}
		if out.push(chunk.Data) != nil {
			return nil
		}
		sent += int64(len(chunk.Data))
	}
	return nil
}

// byteRange reads a header Range of one range. Others are ignored, as HTTP
// allows; a limit of 0 means up to the end.
func byteRange(header string) (offset, limit int64, ranged bool, err error) {
	text, ok := strings.CutPrefix(header, "bytes=")
	if !ok || strings.Contains(text, ",") {
		return 0, 0, false, nil
	}
	from, to, ok := strings.Cut(text, "-")
	if !ok {
		return 0, 0, false, nil
	}
	bad := structs.NewError(structs.CodeInvalid, "agent.query_malformed", "name", "Range", "value", strconv.Quote(header))
	if from == "" { // the last bytes
		n, err := strconv.ParseInt(to, 10, 64)
		if err != nil || n <= 0 {
			return 0, 0, false, bad
		}
		return -n, 0, true, nil
	}
	if offset, err = strconv.ParseInt(from, 10, 64); err != nil || offset < 0 {
		return 0, 0, false, bad
	}
	if to == "" {
		return offset, 0, true, nil
	}
	last, err := strconv.ParseInt(to, 10, 64)
	if err != nil || last < offset {
		return 0, 0, false, bad
	}
	if last-offset == 1<<63-1 {
		return offset, 0, true, nil
	}
	return offset, last - offset + 1, true, nil
}

package httpapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/codestore"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
	"nomadlike/nomadlike/wire"
)

const (
	codeBodiesMax   = 32 // bodies of chunks, and manifests, that all callers have taken at once
	codeArchivesMax = 4  // archives that all callers have taken at once, one of each
	// codeFresh is for how long after it was last sent code is known without being
	// sent again: until then it surely outlives the submission that is to follow.
	codeFresh = 12 * time.Hour
)

// codeHandlers takes the code that is to travel with jobs, and shows it to those who
// may read the files of such a job.
type codeHandlers struct {
	*core
	code    Code
	members Membership
	bodies  *turns
	// archives bounds those that are written to the disk at once.
	archives *turns
}

// Code is what the doors of code need of a server.
type Code interface {
	// Known reports whether the log and this server have a tree.
	Known(ref structs.CodeRef) bool
	// Missing lists the chunks that this server does not have.
	Missing(project string, chunks []tree.Chunk) ([]tree.Digest, error)
	// Put keeps chunks, and reports how many were not there.
	Put(project string, pieces []codestore.Piece) (fresh int, err error)
	// Scratch makes a directory for so many bytes, and returns what removes it.
	Scratch(project string, bytes int64) (dir string, remove func(), err error)
	// Take keeps a tree whose chunks were sent, on more than half of the servers.
	Take(ctx context.Context, project string, manifest []byte) (*structs.CodePut, error)
	// Manifest returns the manifest of a tree that the log knows.
	Manifest(ctx context.Context, ref structs.CodeRef) ([]byte, error)
	// Chunk opens a chunk of one. Reading to the end verifies it.
	Chunk(ctx context.Context, ref structs.CodeRef, chunk tree.Chunk) (io.ReadCloser, error)
}

func newCodeHandlers(all *core, code Code, members Membership) *codeHandlers {
	return &codeHandlers{core: all, code: code, members: members, bodies: newTurns(codeBodiesMax, api.CodeRequestsMax), archives: newTurns(codeArchivesMax, 1)}
}

// takes refuses code while an agent would start jobs without it.
func (h *codeHandlers) takes() error {
	return knownToAll(h.store.Snapshot(), h.members, wire.ProtocolCode, "agent.code_old")
}

func (h *codeHandlers) missing(r *front.Request, _ *structs.CodeTree, body *api.CodeMissingRequest) (*api.CodeMissing, error) {
	if err := h.takes(); err != nil {
		return nil, err
	}
	if len(body.Chunks) > api.CodeMissingMax {
		return nil, structs.NewError(structs.CodeTooLarge, "code.too_many_asked", "max", api.CodeMissingMax)
	}
	if err := h.refresh(r); err != nil {
		return nil, err
	}
	ref := structs.CodeRef{Project: r.Object.Project, Digest: body.Tree}
	most := h.store.Snapshot().Project(ref.Project).CodeMost()
	if known := h.store.Snapshot().Code(ref); known != nil && h.code.Known(ref) && structs.At(h.now()) < known.SentAt.Add(codeFresh) {
		return &api.CodeMissing{Known: true, Missing: []string{}, Max: most}, nil
	}
	chunks := make([]tree.Chunk, len(body.Chunks))
	for i, chunk := range body.Chunks {
		chunks[i] = tree.Chunk{Digest: tree.Digest(chunk.Digest), Size: chunk.Size}
	}
	missing, err := h.code.Missing(ref.Project, chunks)
	if err != nil {
		return nil, err
	}
	out := &api.CodeMissing{Missing: []string{}, Max: most}
	for _, digest := range missing {
		out.Missing = append(out.Missing, string(digest))
	}
	return out, nil
}

func (h *codeHandlers) chunks(r *front.Request, _ *structs.CodeTree) (*api.CodeKept, error) {
	if err := h.takes(); err != nil {
		return nil, err
	}
	done, err := h.bodies.turn(r)
	if err != nil {
		return nil, err
	}
	defer done()
	came, err := api.ReadCodeChunks(r.Body)
	if err != nil {
		return nil, err
	}
	pieces := make([]codestore.Piece, len(came))
	for i := range came {
		pieces[i] = codestore.Piece(came[i])
	}
	fresh, err := h.code.Put(r.Object.Project, pieces)
	if err != nil {
		return nil, err
	}
	return &api.CodeKept{Chunks: len(pieces), Fresh: fresh}, nil
}

// commit answers code.commit. The record enters the log last: whoever submits a job
// by it finds the bytes on more than half of the servers.
func (h *codeHandlers) commit(r *front.Request, _ *structs.CodeTree) (*api.CodeMade, error) {
	if err := h.takes(); err != nil {
		return nil, err
	}
	done, err := h.bodies.turn(r)
	if err != nil {
		return nil, err
	}
	defer done()
	data, err := io.ReadAll(io.LimitReader(r.Body, tree.ManifestSizeMax+1))
	if err != nil {
		return nil, structs.NewError(structs.CodeInvalid, "code.body_broken").Because(err)
	}
	manifest, err := tree.Decode(data)
	if err != nil {
		return nil, err
	}
	if size, most := manifest.Bytes(), h.store.Snapshot().Project(r.Object.Project).CodeMost(); size > most {
		return nil, structs.NewError(structs.CodeTooLarge, "code.too_large", "size", size, "max", most, "project", r.Object.Project)
	}
	return h.take(r, data)
}

// take keeps a tree whose chunks are here, and has the log name it.
func (h *codeHandlers) take(r *front.Request, manifest []byte) (*api.CodeMade, error) {
	made, err := h.code.Take(r.Context(), r.Object.Project, manifest)
	if err != nil {
		return nil, err
	}
	index, err := h.propose(r, structs.CommandCodePut, *made)
	if err != nil {
		return nil, err
	}
	r.SetIndex(index)
	r.Made(made.Tree.Digest)
	return &api.CodeMade{Index: index, Tree: made.Tree.Digest, Files: made.Tree.Files, Bytes: made.Tree.Bytes}, nil
}

func (h *codeHandlers) manifest(r *front.Request, known *structs.CodeTree) error {
	data, err := h.code.Manifest(r.Context(), known.Ref())
	if err != nil {
		return lackingCode(err)
	}
	binaryHead(r, int64(len(data)))
	_, _ = io.Copy(r.Writer, bytes.NewReader(data)) // a reader that goes away misses bytes of Content-Length
	return nil
}

// chunk answers code.chunk. What is found damaged in the middle is shorter than its
// Content-Length.
func (h *codeHandlers) chunk(r *front.Request, known *structs.CodeTree) error {
	q := front.Query{R: r}
	wanted := tree.Digest(q.Text("digest"))
	if q.Err != nil {
		return q.Err
	}
	data, err := h.code.Manifest(r.Context(), known.Ref())
	if err != nil {
		return lackingCode(err)
	}
	manifest, err := tree.Decode(data)
	if err != nil {
		return err
	}
	for _, chunk := range manifest.Chunks() {
		if chunk.Digest != wanted {
			continue
		}
		from, err := h.code.Chunk(r.Context(), known.Ref(), chunk)
		if err != nil {
			return lackingCode(err)
		}
		defer from.Close()
		binaryHead(r, chunk.Size)
		if _, err := io.Copy(r.Writer, from); err != nil {
			h.log.Debug("a chunk of code broke off", "error", err)
			panic(http.ErrAbortHandler) // the reader must not take it for whole
		}
		return nil
	}
	return auth.NotFound("chunk", string(wanted))
}

func lackingCode(err error) error {
	if errors.Is(err, codestore.ErrLacking) {
		return structs.NewError(structs.CodeUnavailable, "code.lacking").Because(err)
	}
	return err
}

// binaryHead announces bytes that a browser makes nothing of.
func binaryHead(r *front.Request, size int64) {
	head := r.Writer.Header()
	head.Set("Content-Type", "application/octet-stream")
	head.Set("Content-Disposition", "attachment")
	head.Set("Content-Security-Policy", inert)
	head.Set("Content-Length", formatInt(size))
}

// code finds the code of a digest in the project that the request acts in, judged as
// a job that names it; without a digest it is about code that is to be sent, judged as
// a job of the caller's own.
func (f finders) code() front.Finder[*structs.CodeTree] {
	named := found(f.core, api.FromCode, locateCode)
	return front.Finder[*structs.CodeTree]{From: api.FromCode, Find: func(r *front.Request) (*structs.CodeTree, auth.Object, error) {
		if r.PathValue("id") != "" {
			return named.Find(r)
		}
		switch r.Caller.Principal.Kind {
		case auth.KindAnonymous, auth.KindGuest, auth.KindBoard: // they never submit: judged by the kind, and refused
			return nil, auth.Object{Kind: auth.ObjectJob}, nil
		}
		return nil, auth.Object{Kind: auth.ObjectJob, Project: r.Caller.Standing.Project, Owner: r.Caller.Principal.ID}, nil
	}}
}

// locateCode finds code that a job names of which the caller may read the files. Code
// of other jobs is not told from code that is not there.
func locateCode(r *front.Request, snapshot *state.Snapshot) (*structs.CodeTree, auth.Object, error) {
	ref := structs.CodeRef{Project: r.Caller.Standing.Project, Digest: "sha256:" + r.ID}
	if known := snapshot.Code(ref); known != nil {
		for job := range snapshot.JobsOfCode(ref) {
			object := jobObject(job)
			if auth.Allowed(r.Caller.Principal, auth.Verb(r.Route.Verb), object).Allow {
				object.ID = r.PathValue("id")
				return known, object, nil
			}
		}
	}
	return nil, auth.Object{}, auth.NotFound("code", r.PathValue("id"))
}

package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/preview"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

const (
	dataManifestsKept = 4       // lists of files that are kept decoded
	dataPieceMax      = 2 << 20 // bytes that are asked of a node at once for a reader, but for a larger chunk
	dataNamesDefault  = 1000
)

// dataFiles shows the files of versions to people and programs that have no use for
// chunks. Bytes come from nodes that have the storage, compared there, a piece at a time.
type dataFiles struct {
	*dataBytes
	streams   chan struct{} // downloads of directories
	manifests manifests
}

// table maps the endpoints of files to their handlers.
func (h *dataFiles) table(data front.Section[*structs.DataObject]) {
	front.ReadOf(data, api.DataTreeListed, h.files)
	front.StreamOf(data, api.DataContent, h.content)
	front.ReadOf(data, api.DataPreviewed, h.preview)
	front.StreamOf(data, api.DataArchived, h.archive)
	front.ReadOf(data, api.DataUsed, h.use)
}

// manifests keeps the lists of files that were read last, by their digests: who may read
// one is judged each time.
type manifests struct {
	mu   sync.Mutex
	kept []keptManifest // the one used last is the last
}

type keptManifest struct {
	digest   string
	manifest tree.Manifest
}

func (k *manifests) get(digest string) (tree.Manifest, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	at := slices.IndexFunc(k.kept, func(one keptManifest) bool { return one.digest == digest })
	if at < 0 {
		return tree.Manifest{}, false
	}
	one := k.kept[at]
	k.kept = append(slices.Delete(k.kept, at, at+1), one)
	return one.manifest, true
}

func (k *manifests) put(digest string, manifest tree.Manifest) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if slices.ContainsFunc(k.kept, func(one keptManifest) bool { return one.digest == digest }) {
		return
	}
	if k.kept = append(k.kept, keptManifest{digest, manifest}); len(k.kept) > dataManifestsKept {
		k.kept = slices.Delete(k.kept, 0, 1)
	}
}

// opened is a version whose files a request asks for.
type opened struct {
	version  *structs.DataVersion
	place    structs.DataPlace
	manifest tree.Manifest
	path     string
	entry    *tree.Entry // nil: the whole version
}

// open finds the version and what the path names in it.
func (h *dataFiles) open(r *front.Request, known *structs.DataObject) (*opened, error) {
	version, place, err := h.readable(r, known)
	if err != nil {
		return nil, err
	}
	q := front.Query{R: r}
	o := &opened{version: version, place: place, path: strings.Trim(q.Text("path"), "/")}
	if len(o.path) > tree.PathMax {
		q.Refuse("path", "…")
	}
	if q.Err != nil {
		return nil, q.Err
	}
	if o.manifest, err = h.manifestOf(r, version, place); err != nil {
		return nil, err
	}
	if o.path != "" {
		if o.entry = o.manifest.Find(o.path); o.entry == nil {
			return nil, structs.NewError(structs.CodeNotFound, "agent.data_file_unknown", "path", shownName(o.path), "name", known.Name, "version", version.Number)
		}
	}
	return o, nil
}

// manifestOf reads the list of files of a version, and believes it when it has the digest
// that the log knows.
func (h *dataFiles) manifestOf(r *front.Request, version *structs.DataVersion, place structs.DataPlace) (tree.Manifest, error) {
	if known, there := h.manifests.get(version.Digest); there {
		return known, nil
	}
	done, err := h.bodies.turn(r)
	if err != nil {
		return tree.Manifest{}, err
	}
	defer done()
	data, err := h.manifestData(r.Context(), version, place)
	if err != nil {
		return tree.Manifest{}, err
	}
	if string(tree.DigestOf(data)) != version.Digest {
		return tree.Manifest{}, structs.NewError(structs.CodeConflict, "objects.manifest_other", "storage", place.Storage, "path", place.Name)
	}
	manifest, err := tree.Decode(data)
	if err != nil {
		return tree.Manifest{}, err
	}
	h.manifests.put(version.Digest, manifest)
	return manifest, nil
}

// shownName is a name as texts may have it: one line, without what moves a terminal's
// cursor or turns the direction of what is read.
func shownName(name string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '�'
		}
		return r
	}, name)
}

// refOf spells a name as a part of an address where JSON cannot hold it, or where it is
// shown otherwise than it is.
func refOf(name string) string {
	if shownName(name) == name {
		return ""
	}
	return url.PathEscape(name)
}

func shownFile(n *tree.Name) api.DataEntry {
	return api.DataEntry{
		Name: shownName(n.Name), Ref: refOf(n.Name), Dir: n.Kind == tree.KindDir, Link: shownName(n.Link), Runs: n.Runs, Size: n.Size, Files: n.Files,
	}
}

// files answers data.tree.
func (h *dataFiles) files(r *front.Request, known *structs.DataObject) (*api.DataTree, error) {
	o, err := h.open(r, known)
	if err != nil {
		return nil, err
	}
	q := front.Query{R: r}
	after, limit := int(q.Int("after", 0, tree.EntriesMax)), int(q.Int("limit", 1, api.DataNamesMax))
	if q.Err != nil {
		return nil, q.Err
	}
	out := &api.DataTree{Version: o.version.Number, Entries: []api.DataEntry{}}
	if o.entry != nil && o.entry.Kind != tree.KindDir {
		name := tree.Name{Name: path.Base(o.path), Kind: o.entry.Kind, Runs: o.entry.Kind == tree.KindFile && o.entry.Mode&0o100 != 0, Size: o.entry.Size(), Link: o.entry.Target}
		out.Entry = shownFile(&name)
		return out, nil
	}
	names := o.manifest.Names(o.path)
	whole := tree.Name{Kind: tree.KindDir}
	if o.path != "" {
		whole.Name = path.Base(o.path)
	}
	for i := range names {
		whole.Size += names[i].Size
		if whole.Files += names[i].Files; names[i].Kind != tree.KindDir {
			whole.Files++
		}
	}
	out.Entry, out.Names = shownFile(&whole), len(names)
	first := min(after, len(names))
	end := min(first+cmp.Or(limit, dataNamesDefault), len(names))
	for i := first; i < end; i++ {
		out.Entries = append(out.Entries, shownFile(&names[i]))
	}
	if end < len(names) {
		out.Next = end
	}
	return out, nil
}

// file is an opened version of which a request wants one file.
func (h *dataFiles) file(r *front.Request, known *structs.DataObject) (*opened, error) {
	o, err := h.open(r, known)
	if err != nil {
		return nil, err
	}
	if o.entry == nil || o.entry.Kind != tree.KindFile {
		return nil, structs.NewError(structs.CodeInvalid, "agent.data_no_file", "path", shownName(o.path))
	}
	return o, nil
}

// etag names the bytes of a file: two with the same chunks have the same one.
func etag(entry *tree.Entry) string {
	var text strings.Builder
	for _, chunk := range entry.Chunks {
		text.WriteString(string(chunk.Digest) + "\n")
	}
	return `"` + strings.TrimPrefix(string(tree.DigestOf([]byte(text.String()))), "sha256:") + `"`
}

// content answers data.content. What breaks off in the middle is shorter than its
// Content-Length.
func (h *dataFiles) content(r *front.Request, known *structs.DataObject) error {
	o, err := h.file(r, known)
	if err != nil {
		return err
	}
	size, head, mark := o.entry.Size(), r.Writer.Header(), etag(o.entry)
	offset, limit, ranged, err := byteRange(r.Header.Get("Range"))
	if err != nil {
		return err
	}
	if since := r.Header.Get("If-Range"); ranged && since != "" && since != mark {
		offset, limit, ranged = 0, 0, false // it is another file than the reader has the beginning of
	}
	if offset < 0 {
		offset = max(0, size+offset)
	}
	length := size - offset
	if limit > 0 {
		length = min(length, limit)
	}
	if ranged && length <= 0 {
		head.Set("Content-Range", "bytes */"+formatInt(size))
		return &front.StatusError{Status: http.StatusRequestedRangeNotSatisfiable, Err: structs.NewError(structs.CodeInvalid, "agent.range", "size", size)}
	}
	ctx, end := h.whileValid(r)
	defer end()
	// The first piece is there before anything is said: what is damaged is a refusal.
	pieces := piecesOf(o.entry, offset, length)
	first, err := h.firstPiece(ctx, r, o, pieces)
	if err != nil {
		return err
	}
	binaryHead(r, length)
	head.Set("Content-Disposition", attachment(path.Base(o.path)))
	head.Set("Accept-Ranges", "bytes")
	head.Set("ETag", mark)
	if ranged {
		head.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", offset, offset+length-1, size))
		r.Writer.WriteHeader(http.StatusPartialContent)
	}
	out := newLineWriter(r.Writer)
	if len(pieces) == 0 {
		return nil
	}
	if out.add(first) != nil {
		return nil
	}
	for _, piece := range pieces[1:] {
		if err := h.send(ctx, r, o, piece, out); err != nil {
			h.log.Debug("a file of named data broke off", "error", err)
			panic(http.ErrAbortHandler) // the reader must not take it for whole
		}
	}
	return nil
}

// attachment has a browser keep a file, by its name as far as names may be told.
func attachment(name string) string {
	shown := strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\:*?"<>|�`, r) {
			return '_'
		}
		return r
	}, shownName(name))
	if text := mime.FormatMediaType("attachment", map[string]string{"filename": shown}); text != "" {
		return text
	}
	return "attachment"
}

// piece is a run of chunks of a file that is asked of a node at once, and which bytes of
// them are wanted.
type piece struct {
	chunks []structs.CodeChunk
	from   int64 // bytes in front that are not wanted
	length int64
}

// piecesOf are the pieces that hold some bytes of a file.
func piecesOf(entry *tree.Entry, offset, length int64) (pieces []piece) {
	at, end := int64(0), offset+length
	var sum int64 // of the last piece's chunks
	for _, chunk := range entry.Chunks {
		from, to := max(at, offset), min(at+chunk.Size, end)
		if from < to {
			if len(pieces) == 0 || sum+chunk.Size > dataPieceMax {
				pieces, sum = append(pieces, piece{from: from - at}), 0
			}
			last := &pieces[len(pieces)-1]
			last.chunks = append(last.chunks, structs.CodeChunk{Digest: string(chunk.Digest), Size: chunk.Size})
			last.length += to - from
			sum += chunk.Size
		}
		at += chunk.Size
	}
	return pieces
}

// fetch asks a node for a piece.
func (h *dataFiles) fetch(ctx context.Context, o *opened, p piece) ([]byte, error) {
	reply, err := h.ask(ctx, o.version.Digest, true, &structs.DataAsk{What: structs.DataAskRead, Place: o.place, Chunks: p.chunks})
	if err != nil {
		return nil, err
	}
	if int64(len(reply.Data)) < p.from+p.length {
		return nil, structs.NewError(structs.CodeInternal, "agent.broken_off")
	}
	return reply.Data[p.from : p.from+p.length], nil
}

func (h *dataFiles) firstPiece(ctx context.Context, r *front.Request, o *opened, pieces []piece) ([]byte, error) {
	if len(pieces) == 0 {
		return nil, nil
	}
	done, err := h.bodies.turn(r)
	if err != nil {
		return nil, err
	}
	defer done()
	return h.fetch(ctx, o, pieces[0])
}

// send passes a piece on to the reader; one that does not take it is dropped.
func (h *dataFiles) send(ctx context.Context, r *front.Request, o *opened, p piece, out *lineWriter) error {
	done, err := h.bodies.turn(r)
	if err != nil {
		return err
	}
	defer done()
	data, err := h.fetch(ctx, o, p)
	if err != nil {
		return err
	}
	return out.add(data)
}

// preview answers data.preview.
func (h *dataFiles) preview(r *front.Request, known *structs.DataObject) (*api.DataPreview, error) {
	o, err := h.file(r, known)
	if err != nil {
		return nil, err
	}
	done, err := h.bodies.turn(r)
	if err != nil {
		return nil, err
	}
	defer done()
	var head bytes.Buffer
	for _, p := range piecesOf(o.entry, 0, min(o.entry.Size(), preview.Head)) {
		data, err := h.fetch(r.Context(), o, p)
		if err != nil {
			return nil, err
		}
		head.Write(data)
	}
	return &api.DataPreview{Version: o.version.Number, Size: o.entry.Size(), Shown: preview.Of(path.Base(o.path), head.Bytes(), o.entry.Size())}, nil
}

// use answers data.use.
func (h *dataFiles) use(r *front.Request, known *structs.DataObject) (*api.DataUse, error) {
	if known.Next == 0 {
		return nil, h.unknown(r, known)
	}
	snapshot := h.store.Snapshot()
	out := &api.DataUse{Jobs: []api.DataUser{}, Storage: api.DataStorage{Name: known.Storage, Nodes: []string{}}, Copies: []api.DataCopy{}}
	for job := range snapshot.JobsOfData(known.Ref(), 0) {
		view, there := snapshot.Job(job.ID)
		if !there {
			continue
		}
		if !auth.Allowed(r.Caller.Principal, auth.VerbRead, jobObject(job)).Allow {
			if !view.Status.State.Terminal() {
				out.Hidden++
			}
			continue
		}
		job.DataPicks(func(kind string, ref *structs.DataRef) {
			if ref.Object.Of(kind, ref) == known.Ref() {
				out.Jobs = append(out.Jobs, api.DataUser{
					ID: job.ID, Name: job.Name, User: job.User, Project: job.Project, Version: ref.Version, Asked: ref.Object.Asked,
					State: view.Status.State, SubmittedAt: job.SubmittedAt, FinishedAt: view.Status.FinishedAt,
				})
			}
		})
	}
	slices.SortStableFunc(out.Jobs, func(a, b api.DataUser) int {
		live := func(u *api.DataUser) int {
			if u.State.Terminal() {
				return 1
			}
			return 0
		}
		return cmp.Or(cmp.Compare(live(&a), live(&b)), cmp.Compare(b.SubmittedAt, a.SubmittedAt))
	})
	if len(out.Jobs) > api.DataJobsMax {
		out.Jobs, out.More = out.Jobs[:api.DataJobsMax], true
	}
	for node := range snapshot.Nodes() {
		if !auth.Allowed(r.Caller.Principal, auth.VerbRead, auth.Object{Kind: auth.ObjectNode, ID: node.ID}).Allow {
			continue
		}
		ready := node.Status == structs.NodeReady
		if ready && node.Stores(known.Kind+"/"+known.Storage) {
			out.Storage.Nodes = append(out.Storage.Nodes, node.Name)
		}
		for i := range known.Versions {
			if v := &known.Versions[i]; v.Usable() && known.CopiedIn(node.Data, v) {
				out.Copies = append(out.Copies, api.DataCopy{NodeID: node.ID, Node: node.Name, Version: v.Number, Away: !ready})
			}
		}
		out.Unknown = out.Unknown || len(node.Data) >= structs.DataNamesMax
	}
	slices.Sort(out.Storage.Nodes)
	slices.SortFunc(out.Copies, func(a, b api.DataCopy) int {
		return cmp.Or(cmp.Compare(b.Version, a.Version), strings.Compare(a.Node, b.Node))
	})
	return out, nil
}

// archiveName is what the file with a directory is called.
func archiveName(known *structs.DataObject, o *opened, ending string) string {
	name := known.Name + "-" + strconv.Itoa(o.version.Number)
	if o.path != "" {
		name += "-" + path.Base(o.path)
	}
	return name + ending
}

package httpapi

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	"nomadlike/agent/httpapi/front"
	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

const (
	filesKeyMax = 200 // bytes of the word that names an upload for its caller
)

// dataUploads brings files of named data one by one, for callers that know no manifests.
type dataUploads struct {
	*dataBytes
}

// table maps the endpoints of such uploads to their handlers.
func (h *dataUploads) table(data front.Section[*structs.DataObject]) {
	front.WriteOf(data, api.DataFilesBegin, h.begin)
	front.ReadOf(data, api.DataFilesList, h.list)
	front.ReadOf(data, api.DataFilesFinish, h.finish)
	front.ReadOf(data, api.DataFilesAbort, h.abort)
	front.StreamOf(data, api.DataTusOptions, h.options)
	front.StreamOf(data, api.DataTusCreate, h.create)
	front.StreamOf(data, api.DataTusOffset, h.offset)
	front.StreamOf(data, api.DataTusWrite, h.write)
	front.StreamOf(data, api.DataTusRemove, h.remove)
}

// filesName is the name of what somebody sends under a key after the version of a number.
func filesName(of structs.DataID, user, key string, after int) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{"nomadlike files 1", of.ID(), user, key, strconv.Itoa(after)}, "\n")))
	return "files-" + hex.EncodeToString(sum[:16])
}

// filesOf is the caller's upload under a key: the one that was begun, or else the next.
func filesOf(r *front.Request, object *structs.DataObject, key string) (name string, begun bool) {
	return uploadNamed(object, func(after int) string { return filesName(object.Ref(), r.Caller.Principal.ID, key, after) })
}

// begin answers data.files.
func (h *dataUploads) begin(r *front.Request, known *structs.DataObject, body *api.DataFilesRequest) (*api.DataFilesBegun, error) {
	if err := knownToAll(h.store.Snapshot(), h.members, wire.ProtocolDataFiles, "agent.data_old"); err != nil {
		return nil, err
	}
	switch {
	case body.Files < 1 || body.Bytes < 0:
		return nil, structs.NewError(structs.CodeInvalid, "agent.files_announced")
	case len(body.Key) > filesKeyMax:
		return nil, structs.NewError(structs.CodeInvalid, "agent.files_key", "max", filesKeyMax)
	case body.Tag != "" && structs.DataTagProblem(body.Tag) != "":
		return nil, structs.NewError(structs.CodeInvalid, structs.DataTagProblem(body.Tag), "name", body.Tag, "max", structs.NameLengthMax)
	}
	if body.Key == "" {
		drawn := make([]byte, 16)
		if _, err := io.ReadFull(h.rand, drawn); err != nil {
			return nil, fmt.Errorf("draw key: %w", err)
		}
		body.Key = "\n" + hex.EncodeToString(drawn) // nobody's word
	}
	object := known.Copy()
	if known.Next == 0 {
		object.Owner, object.Access, object.Description = r.Caller.Principal.ID, cmp.Or(body.Access, structs.DataProject), body.Description
	}
	var err error
	if object.Storage, err = h.storageFor(known, body.Storage); err != nil {
		return nil, err
	}
	if err := dataProblem(object); err != nil {
		return nil, err
	}
	upload, begun := filesOf(r, known, body.Key)
	object.Versions, object.Favourites = nil, nil
	index, err := h.propose(r, structs.CommandDataBegin, structs.DataBegin{Object: *object, UploadID: upload, Files: body.Files, Bytes: body.Bytes, Tag: body.Tag})
	if err != nil {
		return nil, err
	}
	made := h.store.Snapshot().Data(object.Ref())
	version := made.Copy().Upload(upload)
	if version == nil {
		return nil, structs.NewError(structs.CodeNotFound, "objects.no_upload", "upload", upload)
	}
	if version.Files != body.Files || version.Bytes != body.Bytes {
		return nil, structs.NewError(structs.CodeConflict, "agent.files_other", "files", version.Files, "size", structs.FormatSize(version.Bytes))
	}
	question := &structs.DataAsk{What: structs.DataAskOpen, Place: placeOf(made, version.Number, ""), Upload: upload, Files: version.Files, Bytes: version.Bytes}
	if _, err := h.ask(r.Context(), upload, false, question); err != nil {
		if !begun { // nothing came of it: no number of uploads fills up with those
			if _, drop := h.propose(r, structs.CommandDataDrop, structs.DataDrop{ID: object.Ref(), UploadID: upload}); drop != nil {
				h.log.Debug("an upload that no node took stays for a while", logkey.Error, drop)
			}
		}
		return nil, err
	}
	r.SetIndex(index)
	query := url.Values{"kind": {object.Kind}, "of": {object.Project}, "upload": {upload}}
	return &api.DataFilesBegun{
		Index: index, Upload: upload, Version: version.Number, Storage: object.Storage, Begun: begun, ExpiresAt: version.ExpiresAt,
		URL: "/v1/data/" + object.Name + "/tus?" + query.Encode(),
	}, nil
}

// coming finds the upload that a request names. One of somebody else is not told from one
// that is not there.
func (h *dataUploads) coming(r *front.Request, object *structs.DataObject) (*sending, error) {
	q := front.Query{R: r}
	upload := q.Text("upload")
	if q.Err != nil {
		return nil, q.Err
	}
	version := object.Upload(upload)
	if version == nil || version.MadeBy != r.Caller.Principal.ID || !strings.HasPrefix(upload, "files-") {
		return nil, structs.NewError(structs.CodeNotFound, "objects.no_upload", "upload", clipText(upload))
	}
	return &sending{object, version, placeOf(object, version.Number, ""), upload}, nil
}

// list answers data.files_list.
func (h *dataUploads) list(r *front.Request, known *structs.DataObject) (*api.DataFiles, error) {
	s, err := h.coming(r, known)
	if err != nil {
		return nil, err
	}
	q := front.Query{R: r}
	after := q.Text("after")
	if q.Err != nil {
		return nil, q.Err
	}
	reply, err := h.ask(r.Context(), s.upload, false, &structs.DataAsk{What: structs.DataAskFiles, Place: s.place, Upload: s.upload, File: &structs.DataFile{ID: after}})
	if err != nil {
		return nil, err
	}
	out := &api.DataFiles{Files: append([]structs.DataFile{}, reply.List...)}
	if !reply.Done && len(reply.List) > 0 {
		out.Next = reply.List[len(reply.List)-1].ID
	}
	return out, nil
}

// finish answers data.files_finish: the node makes the manifest of what came, and then
// the version as of any other upload.
func (h *dataUploads) finish(r *front.Request, known *structs.DataObject) (*api.DataFilesFinished, error) {
	s, err := h.coming(r, known)
	if err != nil {
		return nil, err
	}
	out := &api.DataFilesFinished{Version: s.version.Number}
	if s.version.State == structs.DataReady {
		out.Done, out.Files, out.Bytes, out.All, out.Digest = true, s.version.Files, s.version.Bytes, s.version.Bytes, s.version.Digest
		return out, nil
	}
	if err := h.names(r, s); err != nil {
		return nil, err
	}
	gathered, err := h.ask(r.Context(), s.upload, false, &structs.DataAsk{
		What: structs.DataAskGather, Place: s.place, Upload: s.upload, Files: s.version.Files, Bytes: s.version.Bytes,
	})
	if err != nil {
		return nil, err
	}
	if out.Bytes, out.All = gathered.Bytes, gathered.All; !gathered.Done {
		return out, nil
	}
	if newest := known.Newest(); newest != nil && newest.Digest == gathered.Digest {
		return h.same(r, s, newest)
	}
	s.place.Digest = gathered.Digest
	reply, err := h.ask(r.Context(), s.upload, false, &structs.DataAsk{What: structs.DataAskFinish, Place: s.place, Upload: s.upload})
	if err != nil {
		return nil, err
	}
	if out.Bytes, out.All = reply.Bytes, reply.All; !reply.Done {
		return out, nil
	}
	index, err := h.propose(r, structs.CommandDataCommit, structs.DataCommit{
		ID: known.Ref(), UploadID: s.upload, Digest: gathered.Digest, Files: reply.Files, Bytes: reply.Bytes,
	})
	if err != nil {
		return nil, err
	}
	h.forget(r.Context(), s)
	r.SetIndex(index)
	out.Done, out.Index, out.Files, out.Digest = true, index, reply.Files, gathered.Digest
	return out, nil
}

// names passes on the list of files that must be there.
func (h *dataUploads) names(r *front.Request, s *sending) error {
	done, err := h.bodies.turn(r)
	if err != nil {
		return err
	}
	defer done()
	data, err := io.ReadAll(io.LimitReader(r.Body, structs.DataListMax+1))
	switch {
	case err != nil:
		return structs.NewError(structs.CodeInvalid, "code.body_broken").Because(err)
	case len(data) > structs.DataListMax:
		return structs.NewError(structs.CodeTooLarge, "objects.names_large", "max", structs.FormatSize(structs.DataListMax))
	}
	for offset := 0; offset < len(data); offset += structs.DataAskBytesMax {
		piece := data[offset:min(len(data), offset+structs.DataAskBytesMax)]
		_, err := h.ask(r.Context(), s.upload, false, &structs.DataAsk{What: structs.DataAskNames, Place: s.place, Upload: s.upload, Offset: int64(offset), Data: piece})
		if structs.CodeOf(err) == structs.CodeNotFound { // it has become a version, and nobody was told
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// same ends an upload that brought what the newest version has already.
func (h *dataUploads) same(r *front.Request, s *sending, newest *structs.DataVersion) (*api.DataFilesFinished, error) {
	if err := h.retag(r, s.object, newest, s.version.Tag); err != nil {
		return nil, err
	}
	if _, err := h.giveUp(r, s); err != nil {
		return nil, err
	}
	return &api.DataFilesFinished{
		Done: true, Version: newest.Number, Known: true, Digest: newest.Digest, Files: newest.Files, Bytes: newest.Bytes, All: newest.Bytes,
	}, nil
}

// abort answers data.files_abort.
func (h *dataUploads) abort(r *front.Request, known *structs.DataObject) (*api.DataChanged, error) {
	s, err := h.coming(r, known)
	if err != nil {
		return nil, err
	}
	if s.version.State != structs.DataUploading {
		return nil, structs.NewError(structs.CodeConflict, "state.data_committed", "kind", known.Kind, "name", known.Name, "version", s.version.Number)
	}
	index, err := h.giveUp(r, s)
	return h.done(r, index, s.version.Number, err)
}

package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash/fnv"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"nomadlike/agent/httpapi/front"
	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
	"nomadlike/nomadlike/wire"
)

const (
	dataBodiesMax = 32             // bodies of data that all callers have under way at once
	dataAskedMax  = 4              // nodes that one request asks, where the first ones cannot answer
	extendLeft    = 24 * time.Hour // of the time that an upload is kept, has to be gone before it is kept longer
)

// dataBytes brings the bytes of named data to a node that has the storage, and fetches
// them from there. They pass through this server's memory, and neither its disk nor
// the log.
type dataBytes struct {
	*dataHandlers
	calls  *nodeCalls
	bodies *turns
}

// table maps the endpoints of bytes to their handlers.
func (h *dataBytes) table(data front.Section[*structs.DataObject]) {
	front.WriteOf(data, api.DataUploadBegin, h.begin)
	front.ReadOf(data, api.DataUploadManifest, h.manifest)
	front.WriteOf(data, api.DataUploadMissing, h.missing)
	front.ReadOf(data, api.DataUploadChunks, h.chunks)
	front.ReadOf(data, api.DataUploadFinish, h.finish)
	front.ReadOf(data, api.DataUploadAbort, h.abort)
	front.StreamOf(data, api.DataManifest, h.list)
	front.AnswerOf(data, api.DataChunks, h.read)
	front.ReadOf(data, api.DataVerify, h.verify)
}

// begin answers data.upload. The name of an upload is drawn from who sends what to
// where: so whoever begins the same again goes on with it.
func (h *dataBytes) begin(r *front.Request, known *structs.DataObject, body *api.DataUploadRequest) (*api.DataUpload, error) {
	if err := knownToAll(h.store.Snapshot(), h.members, wire.ProtocolDataBytes, "agent.data_old"); err != nil {
		return nil, err
	}
	switch {
	case !structs.IsTreeDigest(body.Digest):
		return nil, structs.NewError(structs.CodeInvalid, "code.digest", "digest", clipText(body.Digest))
	case body.Tag != "" && structs.DataTagProblem(body.Tag) != "":
		return nil, structs.NewError(structs.CodeInvalid, structs.DataTagProblem(body.Tag), "name", body.Tag, "max", structs.NameLengthMax)
	}
	object := known.Copy()
	if known.Next == 0 {
		object.Owner, object.Access, object.Description = r.Caller.Principal.ID, cmp.Or(body.Access, structs.DataProject), body.Description
	}
	if newest := known.Newest(); newest != nil && newest.Digest == body.Digest {
		err := h.retag(r, known, newest, body.Tag)
		return &api.DataUpload{Version: newest.Number, Storage: known.Storage, Known: true}, err
	}
	var err error
	if object.Storage, err = h.storageFor(known, body.Storage); err != nil {
		return nil, err
	}
	if err := dataProblem(object); err != nil {
		return nil, err
	}
	upload, begun := uploadOf(r, known, body.Digest)
	object.Versions, object.Favourites = nil, nil
	index, err := h.propose(r, structs.CommandDataBegin, structs.DataBegin{Object: *object, UploadID: upload, Files: body.Files, Bytes: body.Bytes, Tag: body.Tag})
	if err != nil {
		return nil, err
	}
	r.SetIndex(index)
	out := &api.DataUpload{Index: index, Upload: upload, Storage: object.Storage, Begun: begun}
	if made := h.store.Snapshot().Data(object.Ref()); made != nil {
		if version := made.Upload(upload); version != nil {
			out.Version = version.Number
		}
	}
	return out, nil
}

// uploadName is the name of what somebody sends after the version of a number.
func uploadName(of structs.DataID, user, digest string, after int) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{"nomadlike upload 1", of.ID(), user, digest, strconv.Itoa(after)}, "\n")))
	return hex.EncodeToString(sum[:16])
}

// uploadOf is the caller's upload of a digest: the one that was begun, or else the next.
func uploadOf(r *front.Request, object *structs.DataObject, digest string) (name string, begun bool) {
	return uploadNamed(object, func(after int) string { return uploadName(object.Ref(), r.Caller.Principal.ID, digest, after) })
}

// uploadNamed is the upload that was begun under the name that name has for the number
// of a version, or else the one to begin after the newest.
func uploadNamed(object *structs.DataObject, name func(after int) string) (upload string, begun bool) {
	newest := 0
	if v := object.Newest(); v != nil {
		newest = v.Number
	}
	for after := newest; after >= 0; after-- {
		upload := name(after)
		if v := object.Upload(upload); v != nil && v.State == structs.DataUploading {
			return upload, true
		}
	}
	return name(newest), false
}

// storageFor is the storage of new data: the one that is named, or the only one.
func (h *dataBytes) storageFor(known *structs.DataObject, wanted string) (string, error) {
	if known.Next > 0 {
		if wanted != "" && wanted != known.Storage {
			return "", structs.NewError(structs.CodeConflict, "state.data_storage", "kind", known.Kind, "name", known.Name, "storage", known.Storage, "wanted", wanted)
		}
		return known.Storage, nil
	}
	var storages []string
	for node := range h.store.Snapshot().Nodes() {
		if node.Status != structs.NodeReady {
			continue
		}
		for _, offer := range node.Storages {
			if kind, name, ok := strings.Cut(offer, "/"); ok && kind == known.Kind && !slices.Contains(storages, name) {
				storages = append(storages, name)
			}
		}
	}
	slices.Sort(storages)
	switch {
	case wanted != "" && slices.Contains(storages, wanted):
		return wanted, nil
	case len(storages) == 0:
		return "", structs.NewError(structs.CodeConflict, "agent.data_no_storage", "kind", known.Kind)
	case wanted != "":
		return "", structs.NewError(structs.CodeNotFound, "agent.data_storage_unknown", "storage", wanted, "kind", known.Kind, "storages", strings.Join(storages, ", "))
	case len(storages) > 1:
		return "", structs.NewError(structs.CodeInvalid, "agent.data_storage_which", "kind", known.Kind, "storages", strings.Join(storages, ", "))
	}
	return storages[0], nil
}

func clipText(text string) string { return text[:min(len(text), 80)] }

// sending is an upload of the caller's that a request goes on with.
type sending struct {
	object  *structs.DataObject
	version *structs.DataVersion
	place   structs.DataPlace
	upload  string
}

// sending finds the upload that a request names. One of somebody else, or of another
// digest, is not told from one that is not there.
func (h *dataBytes) sending(r *front.Request, object *structs.DataObject) (*sending, error) {
	q := front.Query{R: r}
	upload, digest := q.Text("upload"), q.Text("digest")
	if q.Err != nil {
		return nil, q.Err
	}
	version := object.Upload(upload)
	newest := 0
	if v := object.Newest(); v != nil {
		newest = v.Number
	}
	for after := newest; version != nil && after >= 0; after-- {
		if uploadName(object.Ref(), r.Caller.Principal.ID, digest, after) == upload {
			return &sending{object, version, placeOf(object, version.Number, digest), upload}, nil
		}
	}
	return nil, structs.NewError(structs.CodeNotFound, "objects.no_upload", "upload", clipText(upload))
}

// placeOf says where a version lies, and beside which earlier one.
func placeOf(object *structs.DataObject, number int, digest string) structs.DataPlace {
	place := structs.DataPlace{
		Project: object.Project, Owner: object.Home, Kind: object.Kind, Name: object.Name, Storage: object.Storage, Version: number, Digest: digest,
	}
	for i := range object.Versions {
		if v := &object.Versions[i]; v.State == structs.DataReady && v.Number < number {
			place.Base = v.Number
		}
	}
	return place
}

// ask asks nodes that have a storage, in an order that stays the same for a key: a node
// remembers what it was asked before. The next one is asked where a node is away, and
// with others also where it has not what is asked for.
func (h *dataBytes) ask(ctx context.Context, key string, others bool, question *structs.DataAsk) (*structs.DataReply, error) {
	nodes := h.nodesOf(question.Place.Kind+"/"+question.Place.Storage, key)
	err := error(structs.NewError(structs.CodeUnavailable, "agent.data_storage_away", "storage", question.Place.Storage, "kind", question.Place.Kind))
	for _, node := range nodes[:min(len(nodes), dataAskedMax)] {
		var reply *structs.DataReply
		if reply, err = askNode[structs.DataAsk, structs.DataReply](ctx, h.calls, node, structs.MethodNodeData, question); err == nil {
			return reply, nil
		}
		if ctx.Err() != nil || !elsewhere(err, others) {
			break
		}
		h.log.Debug("a node was asked for data in vain", logkey.NodeID, node.ID, logkey.Error, err)
	}
	if errors.Is(err, errNodeAway) {
		err = structs.NewError(structs.CodeUnavailable, "agent.data_storage_away", "storage", question.Place.Storage, "kind", question.Place.Kind)
	}
	return nil, err
}

// elsewhere reports whether another node may do better.
func elsewhere(err error, others bool) bool {
	var told *structs.Error
	if !errors.As(err, &told) {
		return true
	}
	switch told.ID {
	case "objects.gone":
		return others
	case "objects.busy", "objects.stopping", "client.storage_away", "client.storage_missing":
		return true
	}
	return structs.CodeOf(err) == structs.CodeUnavailable && !strings.HasPrefix(told.ID, "objects.")
}

// nodesOf lists the nodes that have a storage, in the order of a key.
func (h *dataBytes) nodesOf(need, key string) []*structs.Node {
	var nodes []*structs.Node
	rank := make(map[string]uint64)
	for node := range h.store.Snapshot().Nodes() {
		if node.Status != structs.NodeReady || node.RPCAddr == "" || !node.Stores(need) {
			continue
		}
		sum := fnv.New64a()
		_, _ = io.WriteString(sum, key+" "+node.ID) // takes everything
		nodes, rank[node.ID] = append(nodes, node), sum.Sum64()
	}
	slices.SortFunc(nodes, func(a, b *structs.Node) int {
		return cmp.Or(cmp.Compare(rank[a.ID], rank[b.ID]), cmp.Compare(a.ID, b.ID))
	})
	return nodes
}

// longer keeps an upload for another week, once a day at most: it does not end while
// somebody sends it.
func (h *dataBytes) longer(r *front.Request, s *sending) error {
	if s.version.State != structs.DataUploading {
		return nil
	}
	left := time.Duration(s.version.ExpiresAt - structs.At(h.now()))
	if left > structs.DataUploadFor.Std()-extendLeft {
		return nil
	}
	object := s.object.Copy()
	object.Versions, object.Favourites = nil, nil
	if _, err := h.propose(r, structs.CommandDataBegin, structs.DataBegin{Object: *object, UploadID: s.upload, Files: s.version.Files, Bytes: s.version.Bytes}); err != nil {
		return err
	}
	if now := h.store.Snapshot().Data(s.object.Ref()).Copy().Upload(s.upload); now != nil {
		s.version = now
	}
	return nil
}

// manifest answers data.upload_manifest.
func (h *dataBytes) manifest(r *front.Request, known *structs.DataObject) (*api.DataKept, error) {
	s, err := h.sending(r, known)
	if err != nil {
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
	m, err := tree.Decode(data)
	if err != nil {
		return nil, err
	}
	switch {
	case string(tree.DigestOf(data)) != s.place.Digest:
		return nil, structs.NewError(structs.CodeInvalid, "objects.manifest_digest", "digest", tree.Digest(s.place.Digest).Short())
	case m.Files() != s.version.Files || m.Bytes() != s.version.Bytes: // what the quota has counted
		return nil, structs.NewError(structs.CodeInvalid, "agent.data_size", "files", m.Files(), "bytes", m.Bytes())
	}
	for offset := 0; offset == 0 || offset < len(data); offset += structs.DataAskBytesMax {
		piece := data[offset:min(len(data), offset+structs.DataAskBytesMax)]
		_, err := h.ask(r.Context(), s.upload, false, &structs.DataAsk{
			What: structs.DataAskManifest, Place: s.place, Upload: s.upload, Offset: int64(offset), Data: piece, End: offset+len(piece) == len(data),
		})
		if err != nil {
			return nil, err
		}
	}
	return &api.DataKept{}, nil
}

func askedChunks(refs []api.CodePartRef) ([]structs.CodeChunk, error) {
	if len(refs) > structs.DataAskChunksMax {
		return nil, structs.NewError(structs.CodeTooLarge, "code.too_many_asked", "max", structs.DataAskChunksMax)
	}
	chunks := make([]structs.CodeChunk, len(refs))
	for i, ref := range refs {
		chunks[i] = structs.CodeChunk(ref)
	}
	return chunks, nil
}

func (h *dataBytes) missing(r *front.Request, known *structs.DataObject, body *api.DataMissingRequest) (*api.DataMissing, error) {
	s, err := h.sending(r, known)
	if err != nil {
		return nil, err
	}
	if err := h.longer(r, s); err != nil {
		return nil, err
	}
	chunks, err := askedChunks(body.Chunks)
	if err != nil {
		return nil, err
	}
	reply, err := h.ask(r.Context(), s.upload, false, &structs.DataAsk{What: structs.DataAskMissing, Place: s.place, Upload: s.upload, Chunks: chunks})
	if err != nil {
		return nil, err
	}
	return &api.DataMissing{Missing: append([]int{}, reply.Missing...)}, nil
}

// chunks answers data.upload_chunks.
func (h *dataBytes) chunks(r *front.Request, known *structs.DataObject) (*api.DataKept, error) {
	s, err := h.sending(r, known)
	if err != nil {
		return nil, err
	}
	if err := h.longer(r, s); err != nil {
		return nil, err
	}
	done, err := h.bodies.turn(r)
	if err != nil {
		return nil, err
	}
	defer done()
	pieces, err := api.ReadCodeChunks(r.Body)
	if err != nil {
		return nil, err
	}
	bytes := 0
	for i := range pieces {
		bytes += len(pieces[i].Data)
	}
	question := &structs.DataAsk{What: structs.DataAskPut, Place: s.place, Upload: s.upload, Data: make([]byte, 0, bytes)}
	for i := range pieces {
		question.Chunks = append(question.Chunks, structs.CodeChunk{Digest: string(pieces[i].Chunk.Digest), Size: pieces[i].Chunk.Size})
		question.Data = append(question.Data, pieces[i].Data...)
	}
	if _, err := h.ask(r.Context(), s.upload, false, question); err != nil {
		return nil, err
	}
	return &api.DataKept{Chunks: len(pieces)}, nil
}

// finish answers data.upload_finish. The version enters the log when its directory has
// its name.
func (h *dataBytes) finish(r *front.Request, known *structs.DataObject) (*api.DataFinished, error) {
	s, err := h.sending(r, known)
	if err != nil {
		return nil, err
	}
	out := &api.DataFinished{Version: s.version.Number}
	if s.version.State == structs.DataReady {
		out.Done, out.Files, out.Bytes, out.All = true, s.version.Files, s.version.Bytes, s.version.Bytes
		return out, nil
	}
	reply, err := h.ask(r.Context(), s.upload, false, &structs.DataAsk{What: structs.DataAskFinish, Place: s.place, Upload: s.upload})
	if err != nil {
		return nil, err
	}
	if out.Bytes, out.All = reply.Bytes, reply.All; !reply.Done {
		return out, nil
	}
	index, err := h.propose(r, structs.CommandDataCommit, structs.DataCommit{
		ID: known.Ref(), UploadID: s.upload, Digest: s.place.Digest, Files: reply.Files, Bytes: reply.Bytes,
	})
	if err != nil {
		return nil, err
	}
	h.forget(r.Context(), s)
	r.SetIndex(index)
	out.Done, out.Index, out.Files = true, index, reply.Files
	return out, nil
}

// forget has a node remove what it keeps of an upload that is a version by now. What stays
// is swept.
func (h *dataBytes) forget(ctx context.Context, s *sending) {
	if _, err := h.ask(ctx, s.upload, false, &structs.DataAsk{What: structs.DataAskAbort, Place: s.place, Upload: s.upload}); err != nil {
		h.log.Debug("what is left of an upload stays for a while", logkey.Error, err)
	}
}

// abort answers data.upload_abort.
func (h *dataBytes) abort(r *front.Request, known *structs.DataObject) (*api.DataChanged, error) {
	s, err := h.sending(r, known)
	if err != nil {
		return nil, err
	}
	if s.version.State != structs.DataUploading {
		return nil, structs.NewError(structs.CodeConflict, "state.data_committed", "kind", known.Kind, "name", known.Name, "version", s.version.Number)
	}
	index, err := h.giveUp(r, s)
	return h.done(r, index, s.version.Number, err)
}

// giveUp ends an upload, with what was sent.
func (h *dataBytes) giveUp(r *front.Request, s *sending) (uint64, error) {
	index, err := h.propose(r, structs.CommandDataDrop, structs.DataDrop{ID: s.object.Ref(), UploadID: s.upload})
	if err != nil {
		return 0, err
	}
	h.clear(r.Context(), s.place, s.upload)
	return index, nil
}

// clear has what was sent of an upload removed, and what was made of it, which never was a
// version. Several nodes may have it under way, of an output of a job; what they do not
// remove now is swept.
func (h *dataBytes) clear(ctx context.Context, place structs.DataPlace, upload string) {
	nodes := h.nodesOf(place.Kind+"/"+place.Storage, upload)
	for _, node := range nodes[:min(len(nodes), dataAskedMax)] {
		question := &structs.DataAsk{What: structs.DataAskClear, Place: place, Upload: upload, End: true}
		if node.Speaks() < wire.ProtocolDataLeft {
			question.What, question.End = structs.DataAskAbort, false
		}
		if _, err := askNode[structs.DataAsk, structs.DataReply](ctx, h.calls, node, structs.MethodNodeData, question); err != nil {
			h.log.Debug("what is left of an upload stays for a while", logkey.NodeID, node.ID, logkey.Error, err)
		}
	}
}

// retag sets the tag of a version that is there already to that with which it was sent
// again.
func (h *dataBytes) retag(r *front.Request, object *structs.DataObject, version *structs.DataVersion, tag string) error {
	if tag == "" || version.Tag == tag {
		return nil
	}
	_, err := h.propose(r, structs.CommandDataTag, structs.DataTag{ID: object.Ref(), Number: version.Number, Tag: tag})
	return err
}

// readable finds the version whose bytes a request asks for.
func (h *dataBytes) readable(r *front.Request, known *structs.DataObject) (*structs.DataVersion, structs.DataPlace, error) {
	q := front.Query{R: r}
	number := int(q.Uint("version"))
	if q.Err != nil {
		return nil, structs.DataPlace{}, q.Err
	}
	if known.Next == 0 {
		return nil, structs.DataPlace{}, h.unknown(r, known)
	}
	version := known.Newest()
	if number > 0 {
		version = known.Version(number)
	}
	switch {
	case version == nil && number == 0:
		return nil, structs.DataPlace{}, structs.NewError(structs.CodeConflict, "agent.data_no_version", "kind", known.Kind, "name", known.Name)
	case version == nil, !version.Usable():
		return nil, structs.DataPlace{}, auth.NotFound(auth.ObjectData, known.Name+"@"+strconv.Itoa(number))
	case version.State != structs.DataReady:
		return nil, structs.DataPlace{}, structs.NewError(structs.CodeConflict, "agent.data_registered", "kind", known.Kind, "name", known.Name,
			"version", version.Number, "storage", known.Storage, "source", version.Source)
	}
	return version, placeOf(known, version.Number, version.Digest), nil
}

// list answers data.manifest.
func (h *dataBytes) list(r *front.Request, known *structs.DataObject) error {
	version, place, err := h.readable(r, known)
	if err != nil {
		return err
	}
	data, err := h.manifestData(r.Context(), version, place)
	if err != nil {
		return err
	}
	binaryHead(r, int64(len(data)))
	_, _ = r.Writer.Write(data) // a reader that goes away misses bytes of Content-Length
	return nil
}

// manifestData reads the list of files of a version. Nothing of it is compared.
func (h *dataBytes) manifestData(ctx context.Context, version *structs.DataVersion, place structs.DataPlace) ([]byte, error) {
	var data bytes.Buffer
	for {
		reply, err := h.ask(ctx, version.Digest, true, &structs.DataAsk{What: structs.DataAskList, Place: place, Offset: int64(data.Len())})
		if err != nil {
			return nil, err
		}
		data.Write(reply.Data)
		if len(reply.Data) == 0 || int64(data.Len()) >= reply.Total || data.Len() > tree.ManifestSizeMax {
			return data.Bytes(), nil
		}
	}
}

// read answers data.chunks.
func (h *dataBytes) read(r *front.Request, known *structs.DataObject, body *api.DataChunksRequest) error {
	version, place, err := h.readable(r, known)
	if err != nil {
		return err
	}
	chunks, err := askedChunks(body.Chunks)
	if err != nil {
		return err
	}
	done, err := h.bodies.turn(r)
	if err != nil {
		return err
	}
	defer done()
	reply, err := h.ask(r.Context(), version.Digest, true, &structs.DataAsk{What: structs.DataAskRead, Place: place, Chunks: chunks})
	if err != nil {
		return err
	}
	binaryHead(r, int64(len(reply.Data)))
	_, _ = r.Writer.Write(reply.Data) // likewise
	return nil
}

// verify answers data.verify.
func (h *dataBytes) verify(r *front.Request, known *structs.DataObject) (*api.DataVerified, error) {
	version, place, err := h.readable(r, known)
	if err != nil {
		return nil, err
	}
	q := front.Query{R: r}
	run := q.Text("run")
	if q.Err != nil {
		return nil, q.Err
	}
	reply, err := h.ask(r.Context(), version.Digest, true, &structs.DataAsk{What: structs.DataAskVerify, Place: place, Upload: run})
	if err != nil {
		return nil, err
	}
	return &api.DataVerified{
		Done: reply.Done, Version: version.Number, Files: reply.Files, Bytes: reply.Bytes, All: reply.All,
		Wrong: append([]structs.DataWrong{}, reply.Wrong...), Wrongs: reply.Wrongs,
	}, nil
}

// drop has the bytes of versions removed that the log does not name any more. A node
// that cannot do it now is told in the log of this server: what stays is in nobody's way.
func (h *dataBytes) drop(ctx context.Context, object *structs.DataObject, number int) {
	for i := range object.Versions {
		v := &object.Versions[i]
		if number > 0 && v.Number != number || v.State == structs.DataRegistered {
			continue
		}
		if v.State == structs.DataUploading {
			h.clear(ctx, placeOf(object, v.Number, v.Digest), v.UploadID)
			continue
		}
		question := &structs.DataAsk{What: structs.DataAskRemove, Place: placeOf(object, v.Number, v.Digest)}
		if _, err := h.ask(ctx, cmp.Or(v.UploadID, v.Digest), false, question); err != nil {
			h.log.Warn("bytes of removed data stay on their storage", "storage", object.Storage, "name", object.Name, "version", v.Number, logkey.Error, err)
		}
	}
}

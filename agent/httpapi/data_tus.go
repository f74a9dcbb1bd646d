package httpapi

import (
	"bytes"
	"context"
	"crypto/sha1" // the tus protocol demands it
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

const (
	tusPieceFor   = 5 * time.Second // in which bytes are read before they are kept: what was read is not lost then
	tusKeepFor    = 2 * time.Minute // to keep a piece, also for a caller that has gone
	tusPieceFirst = 64 << 10        // bytes that a piece takes up at first
)

// tusHead says what every answer says, and refuses another version of the protocol.
func tusHead(r *front.Request) error {
	head := r.Writer.Header()
	head.Set(api.HeaderTusResumable, api.TusVersion)
	if r.Method == http.MethodOptions || r.Header.Get(api.HeaderTusResumable) == api.TusVersion {
		return nil
	}
	head.Set(api.HeaderTusVersion, api.TusVersion)
	return &front.StatusError{Status: http.StatusPreconditionFailed, Err: structs.NewError(structs.CodeInvalid, "agent.tus_version",
		"version", clipText(r.Header.Get(api.HeaderTusResumable)), "known", api.TusVersion)}
}

// options answers data.tus_options.
func (h *dataUploads) options(r *front.Request, _ *structs.DataObject) error {
	if err := tusHead(r); err != nil {
		return err
	}
	head := r.Writer.Header()
	head.Set(api.HeaderTusVersion, api.TusVersion)
	head.Set(api.HeaderTusExtension, api.TusExtensions)
	head.Set(api.HeaderTusChecksums, api.TusChecksums)
	head.Set(api.HeaderTusMaxSize, strconv.FormatInt(structs.DataBytesMax, 10))
	r.Writer.WriteHeader(http.StatusNoContent)
	return nil
}

// create answers data.tus_create. A file that was begun before goes on.
func (h *dataUploads) create(r *front.Request, known *structs.DataObject) error {
	if err := tusHead(r); err != nil {
		return err
	}
	s, err := h.coming(r, known)
	if err != nil {
		return err
	}
	if err := h.longer(r, s); err != nil {
		return err
	}
	file, err := tusFile(r.Header)
	if err != nil {
		return err
	}
	reader := newPieces(r, file.Size)
	if err := reader.prepare(); err != nil {
		return err
	}
	release, err := h.bodies.turn(r)
	if err != nil {
		return err
	}
	data, cut := reader.next()
	if err := reader.check(data, cut); err != nil {
		release()
		return err
	}
	told, err := h.tusAsk(r, s, &structs.DataAsk{What: structs.DataAskFile, File: file, Data: data, Files: s.version.Files, Bytes: s.version.Bytes})
	release()
	if err != nil {
		return h.tusFailed(r, err)
	}
	if cut == nil && !reader.ended && told.Offset == int64(len(data)) { // else it was begun before, and the caller looks how far it is
		if told, err = h.rest(r, s, told, reader); err != nil {
			return err
		}
	}
	query := url.Values{"kind": {known.Kind}, "of": {known.Project}, "upload": {s.upload}, "file": {told.ID}}
	r.Writer.Header().Set("Location", "/v1/data/"+known.Name+"/tus/file?"+query.Encode())
	tusTold(r, s, told)
	r.Writer.WriteHeader(http.StatusCreated)
	return nil
}

// tusTold says how far a file is, and until when it can be gone on with.
func tusTold(r *front.Request, s *sending, file *structs.DataFile) {
	head := r.Writer.Header()
	head.Set(api.HeaderUploadOffset, strconv.FormatInt(file.Offset, 10))
	head.Set(api.HeaderUploadExpires, s.version.ExpiresAt.Time().UTC().Format(http.TimeFormat))
}

// tusAsk asks the node that has the storage about a file; it goes on to keep bytes when
// the caller has gone.
func (h *dataUploads) tusAsk(r *front.Request, s *sending, question *structs.DataAsk) (*structs.DataFile, error) {
	ctx, done := context.WithTimeout(context.WithoutCancel(r.Context()), tusKeepFor)
	defer done()
	question.Place, question.Upload = s.place, s.upload
	reply, err := h.ask(ctx, s.upload, false, question)
	if err != nil {
		return nil, err
	}
	if reply.File == nil {
		return &structs.DataFile{}, nil
	}
	return reply.File, nil
}

// tusFailed is an error as tus clients know it: by its status, with the offset to go on
// from.
func (h *dataUploads) tusFailed(r *front.Request, err error) error {
	var told *structs.Error
	if !errors.As(err, &told) {
		return err
	}
	if offset := told.Params["offset"]; offset != "" {
		r.Writer.Header().Set(api.HeaderUploadOffset, offset)
	}
	switch told.ID {
	case "objects.file_digest":
		return &front.StatusError{Status: api.TusStatusChecksum, Err: told}
	case "objects.file_busy":
		return &front.StatusError{Status: http.StatusLocked, Err: told}
	}
	return err
}

// tusFile reads what a request says of the file that it begins.
func tusFile(head http.Header) (*structs.DataFile, error) {
	size, err := strconv.ParseInt(head.Get(api.HeaderUploadLength), 10, 64)
	if err != nil || size < 0 {
		return nil, structs.NewError(structs.CodeInvalid, "agent.tus_length", "value", clipText(head.Get(api.HeaderUploadLength)))
	}
	if size > structs.DataBytesMax {
		return nil, structs.NewError(structs.CodeTooLarge, "agent.tus_large", "max", structs.FormatSize(structs.DataBytesMax))
	}
	said, err := tusMetadata(head.Get(api.HeaderUploadMetadata))
	if err != nil {
		return nil, err
	}
	file := &structs.DataFile{Size: size}
	for _, key := range []string{"path", "relativePath", "filename", "name"} { // what clients of others call it stands behind ours
		if file.Path = said[key]; file.Path != "" && file.Path != "null" {
			break
		}
	}
	file.Path, file.Dir = strings.CutSuffix(file.Path, "/")
	file.Executable = said["executable"] == "true"
	file.SHA256 = strings.TrimPrefix(said["sha256"], "sha256:")
	if file.SHA256 != "" && !structs.IsTreeDigest("sha256:"+file.SHA256) {
		return nil, structs.NewError(structs.CodeInvalid, "agent.tus_sha256", "value", clipText(file.SHA256))
	}
	if file.Path == "" {
		return nil, structs.NewError(structs.CodeInvalid, "agent.tus_path")
	}
	return file, nil
}

// tusMetadata reads keys, each with a value in base64 behind it.
func tusMetadata(text string) (map[string]string, error) {
	said := make(map[string]string)
	for pair := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(pair), " ")
		if key == "" {
			continue
		}
		data, err := base64.StdEncoding.DecodeString(strings.TrimSpace(value))
		if _, twice := said[key]; err != nil || twice {
			return nil, structs.NewError(structs.CodeInvalid, "agent.tus_metadata", "key", clipText(key))
		}
		said[key] = string(data)
	}
	return said, nil
}

// fileAsked is the file that a request names.
func fileAsked(r *front.Request) (*structs.DataFile, error) {
	q := front.Query{R: r}
	id := q.Text("file")
	return &structs.DataFile{ID: id}, q.Err
}

// offset answers data.tus_offset.
func (h *dataUploads) offset(r *front.Request, known *structs.DataObject) error {
	if err := tusHead(r); err != nil {
		return err
	}
	s, err := h.coming(r, known)
	if err != nil {
		return err
	}
	file, err := fileAsked(r)
	if err != nil {
		return err
	}
	told, err := h.tusAsk(r, s, &structs.DataAsk{What: structs.DataAskOffset, File: file})
	if err != nil {
		return err
	}
	head := r.Writer.Header()
	head.Set(api.HeaderUploadLength, strconv.FormatInt(told.Size, 10))
	head.Set(api.HeaderUploadMetadata, "path "+base64.StdEncoding.EncodeToString([]byte(told.Path)))
	tusTold(r, s, told)
	r.Writer.WriteHeader(http.StatusOK)
	return nil
}

// write answers data.tus_write.
func (h *dataUploads) write(r *front.Request, known *structs.DataObject) error {
	if err := tusHead(r); err != nil {
		return err
	}
	s, err := h.coming(r, known)
	if err != nil {
		return err
	}
	file, err := fileAsked(r)
	if err != nil {
		return err
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != api.TusContentType {
		return &front.StatusError{Status: http.StatusUnsupportedMediaType, Err: structs.NewError(structs.CodeInvalid, "agent.tus_type", "type", api.TusContentType)}
	}
	offset, err := strconv.ParseInt(r.Header.Get(api.HeaderUploadOffset), 10, 64)
	if err != nil || offset < 0 {
		return structs.NewError(structs.CodeInvalid, "agent.tus_offset", "value", clipText(r.Header.Get(api.HeaderUploadOffset)))
	}
	if err := h.longer(r, s); err != nil {
		return err
	}
	reader := newPieces(r, structs.DataBytesMax)
	if err := reader.prepare(); err != nil {
		return err
	}
	if r.ContentLength != 0 { // what does not fit is refused before it is read
		now, err := h.tusAsk(r, s, &structs.DataAsk{What: structs.DataAskOffset, File: file})
		if err != nil {
			return err
		}
		if now.Offset != offset {
			return h.tusFailed(r, structs.NewError(structs.CodeConflict, "objects.offset", "path", now.Path, "offset", now.Offset, "given", offset))
		}
		if r.ContentLength > now.Size-now.Offset {
			return structs.NewError(structs.CodeTooLarge, "objects.file_over", "path", now.Path, "size", structs.FormatSize(now.Size))
		}
	}
	file.Offset = offset
	told, err := h.rest(r, s, file, reader)
	if err != nil {
		return err
	}
	tusTold(r, s, told)
	r.Writer.WriteHeader(http.StatusNoContent)
	return nil
}

// rest keeps what comes of a body, piece by piece, from where a file is.
func (h *dataUploads) rest(r *front.Request, s *sending, file *structs.DataFile, reader *pieces) (*structs.DataFile, error) {
	for first := true; !reader.ended || first; first = false {
		release, err := h.bodies.turn(r)
		if err != nil {
			return nil, err
		}
		data, cut := reader.next()
		err = reader.check(data, cut)
		if err != nil {
			r.Writer.Header().Set(api.HeaderUploadOffset, strconv.FormatInt(file.Offset, 10))
		} else if len(data) > 0 || first && cut == nil {
			var told *structs.DataFile
			if told, err = h.tusAsk(r, s, &structs.DataAsk{What: structs.DataAskWrite, File: file, Offset: file.Offset, Data: data}); err == nil {
				file = told
			}
			err = h.tusFailed(r, err)
		}
		release()
		if err == nil && cut != nil {
			err = structs.NewError(structs.CodeInvalid, "code.body_broken").Because(cut)
		}
		if err != nil {
			return nil, err
		}
	}
	return file, nil
}

// remove answers data.tus_remove.
func (h *dataUploads) remove(r *front.Request, known *structs.DataObject) error {
	if err := tusHead(r); err != nil {
		return err
	}
	s, err := h.coming(r, known)
	if err != nil {
		return err
	}
	file, err := fileAsked(r)
	if err != nil {
		return err
	}
	if _, err := h.tusAsk(r, s, &structs.DataAsk{What: structs.DataAskDrop, File: file}); err != nil {
		return h.tusFailed(r, err)
	}
	r.Writer.WriteHeader(http.StatusNoContent)
	return nil
}

// pieces reads a body in pieces that are kept one after the other: of at most
// structs.DataAskBytesMax, and of what came in a few seconds.
type pieces struct {
	r     *front.Request
	left  int64 // bytes that may come
	ended bool

	algorithm string // of the digest that all of the body has; "": none was told
	sum       []byte
}

func newPieces(r *front.Request, most int64) *pieces {
	return &pieces{r: r, left: most, ended: r.ContentLength == 0}
}

// prepare reads the digest of the body. One of more than a piece would have to be kept
// before it could be judged.
func (p *pieces) prepare() error {
	text := p.r.Header.Get(api.HeaderUploadChecksum)
	if text == "" {
		return nil
	}
	algorithm, value, _ := strings.Cut(text, " ")
	sum, err := base64.StdEncoding.DecodeString(strings.TrimSpace(value))
	sizes := map[string]int{"sha256": sha256.Size, "sha1": sha1.Size}
	if err != nil || sizes[algorithm] == 0 || len(sum) != sizes[algorithm] {
		return structs.NewError(structs.CodeInvalid, "agent.tus_checksum", "value", clipText(algorithm), "known", api.TusChecksums)
	}
	if p.r.ContentLength > structs.DataAskBytesMax {
		return p.tooLarge()
	}
	p.algorithm, p.sum = algorithm, sum
	return nil
}

func (p *pieces) tooLarge() error {
	return structs.NewError(structs.CodeTooLarge, "agent.tus_checksum_large", "max", structs.FormatSize(structs.DataAskBytesMax))
}

// next reads a piece. With a reason why the body broke off there are the bytes that came
// before it.
func (p *pieces) next() (data []byte, cut error) {
	if p.ended {
		return nil, nil
	}
	most := int64(structs.DataAskBytesMax)
	if p.r.ContentLength > 0 {
		most = min(most, p.r.ContentLength)
	}
	begun := time.Now()
	for int64(len(data)) < most {
		if len(data) == cap(data) {
			data = append(make([]byte, 0, min(int64(max(4*cap(data), tusPieceFirst)), most)), data...)
		}
		n, err := p.r.Body.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if errors.Is(err, io.EOF) {
			p.ended = true
			break
		}
		if err != nil {
			p.ended = true
			return data, err
		}
		if p.algorithm == "" && time.Since(begun) > tusPieceFor {
			break
		}
	}
	return data, nil
}

// check compares a piece with the digest of the body that it is all of. What broke off
// is not kept then.
func (p *pieces) check(data []byte, cut error) error {
	p.left -= int64(len(data))
	if p.left < 0 {
		return structs.NewError(structs.CodeTooLarge, "agent.tus_over")
	}
	if p.algorithm == "" {
		return nil
	}
	if cut != nil {
		return structs.NewError(structs.CodeInvalid, "code.body_broken").Because(cut)
	}
	if !p.ended { // behind the last byte stands the end, or more
		one := make([]byte, 1)
		n, err := p.r.Body.Read(one)
		if n > 0 {
			return p.tooLarge()
		}
		if p.ended = errors.Is(err, io.EOF); !p.ended {
			return structs.NewError(structs.CodeInvalid, "code.body_broken").Because(err)
		}
	}
	var got []byte
	if p.algorithm == "sha1" {
		sum := sha1.Sum(data) // the tus protocol demands it
		got = sum[:]
	} else {
		sum := sha256.Sum256(data)
		got = sum[:]
	}
	if bytes.Equal(got, p.sum) {
		return nil
	}
	return &front.StatusError{Status: api.TusStatusChecksum, Err: structs.NewError(structs.CodeConflict, "agent.tus_wrong", "algorithm", p.algorithm)}
}

package parcel

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"strings"

	"nomadlike/nomadlike/structs"
)

// Options say how a parcel is read. The zero value is what most want.
type Options struct {
	AnyRatio bool // however much larger it becomes
}

// Reader takes a parcel apart. One goroutine uses it. Whatever it has told is to be
// believed only when Next has returned io.EOF.
type Reader struct {
	in     io.Reader // the archive as tar reads it
	packed *gzip.Reader
	tar    *tar.Reader
	top    string
	head   Head
	names  names
	list   []Entry
	bytes  int64
	code   *codeCheck
	job    []byte
	digest string

	current *Entry
	content io.Reader
	sum     hash.Hash
	read    int64
	wrong   []Problem // of bytes: all of them are told at the end
	err     error
}

// Problem is something of a parcel that is not what was packed.
type Problem struct {
	Path string `json:"path"`
	What string `json:"what"` // one of the constants below
}

// What may be wrong.
const (
	ProblemBytes   = "bytes"   // other bytes than were packed
	ProblemEntry   = "entry"   // another kind, mode, size, target or place
	ProblemMissing = "missing" // the manifest lists it, the archive has it not
	ProblemUnknown = "unknown" // the archive has it, the manifest does not list it
	ProblemCode    = "code"    // not what the digest of the code says
)

// problemsMax bounds the problems that are told.
const problemsMax = 1000

// DamagedError says that a parcel is whole as an archive, and not what was packed.
type DamagedError struct{ Problems []Problem }

// Error names the first problem; programs that show more look at the fields.
func (e *DamagedError) Error() string {
	return "the package is damaged: " + shown(e.Problems[0].Path) + ": " + e.Problems[0].What
}

// Open begins to read a parcel of that many bytes, and returns when its head is known.
func Open(file io.Reader, size int64, options Options) (*Reader, error) {
	buffered := bufio.NewReaderSize(file, 64<<10)
	r := &Reader{in: buffered}
	if magic, err := buffered.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		packed, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, r.broken(err)
		}
		packed.Multistream(false)
		r.in, r.packed = packed, packed
	}
	r.tar = tar.NewReader(r.in)
	header, err := r.tar.Next()
	if err != nil {
		return nil, structs.NewError(structs.CodeInvalid, "parcel.none").Because(err)
	}
	var ok bool
	if r.top, ok = strings.CutSuffix(header.Name, "/"+HeadName); !ok || !local(r.top) || strings.Contains(r.top, "/") {
		return nil, structs.NewError(structs.CodeInvalid, "parcel.none")
	}
	data, err := r.small(header, HeadSizeMax)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &r.head); err != nil || r.head.Entries < 0 || r.head.Bytes < 0 {
		return nil, structs.NewError(structs.CodeInvalid, "parcel.unreadable", "path", HeadName).Because(err)
	}
	if r.head.Format != Format {
		return nil, structs.NewError(structs.CodeInvalid, "parcel.format", "format", r.head.Format, "known", Format)
	}
	if r.head.Entries > EntriesMax-2 {
		return nil, structs.NewError(structs.CodeTooLarge, "parcel.too_many", "max", EntriesMax)
	}
	if !options.AnyRatio && r.head.Bytes > RatioFree && r.head.Bytes/RatioMax > size {
		return nil, structs.NewError(structs.CodeTooLarge, "parcel.ratio", "size", size, "bytes", r.head.Bytes)
	}
	return r, nil
}

// Head is what the parcel says of itself.
func (r *Reader) Head() *Head { return &r.head }

// Job is the text of the job file, once Next has returned io.EOF.
func (r *Reader) Job() []byte { return r.job }

// Digest is the digest of the manifest, once Next has returned io.EOF or a *DamagedError.
func (r *Reader) Digest() string { return r.digest }

// Entries are those that have been read, the head first.
func (r *Reader) Entries() []Entry { return r.list }

// Next goes on to the next entry, whose bytes Read has. It returns io.EOF when the parcel
// is at its end and every byte is what was packed, and a *DamagedError when some are not.
func (r *Reader) Next() (*Entry, error) {
	if r.err == nil {
		r.err = r.next()
	}
	if r.err != nil {
		return nil, r.err
	}
	return r.current, nil
}

func (r *Reader) next() error {
	if err := r.finish(); err != nil {
		return err
	}
	header, err := r.tar.Next()
	if errors.Is(err, io.EOF) {
		return structs.NewError(structs.CodeInvalid, "parcel.cut")
	}
	if err != nil {
		return r.broken(err)
	}
	if header.Name == r.top+"/"+ManifestName {
		return r.end(header)
	}
	entry, err := r.judge(header)
	if err != nil {
		return err
	}
	if len(r.list) > r.head.Entries {
		return structs.NewError(structs.CodeInvalid, "parcel.more", "path", shown(entry.Path))
	}
	if r.bytes += entry.Size; r.bytes > r.head.Bytes {
		return structs.NewError(structs.CodeInvalid, "parcel.more", "path", shown(entry.Path))
	}
	return r.begin(entry)
}

// judge makes an entry of what the archive says, and refuses what no parcel has.
func (r *Reader) judge(header *tar.Header) (*Entry, error) {
	name, ok := strings.CutPrefix(header.Name, r.top+"/")
	if !ok {
		return nil, wrong("parcel.path", header.Name)
	}
	entry := &Entry{Path: name, Kind: KindFile, Size: header.Size}
	if header.Mode&^0o777 != 0 {
		return nil, wrong("parcel.entry", name)
	}
	entry.Mode = uint32(header.Mode)
	switch header.Typeflag {
	case tar.TypeReg:
		for key := range header.PAXRecords { // holes, of which an archive may have exabytes
			if strings.HasPrefix(key, "GNU.sparse") {
				return nil, wrong("parcel.special", name)
			}
		}
	case tar.TypeDir:
		entry.Kind, entry.Path = KindDir, strings.TrimSuffix(name, "/")
	case tar.TypeSymlink:
		entry.Kind, entry.Target, entry.Mode = KindLink, header.Linkname, 0
	default:
		return nil, wrong("parcel.special", name)
	}
	if entry.Kind != KindFile && entry.Size != 0 {
		return nil, wrong("parcel.entry", name)
	}
	if entry.Path == HeadName {
		return nil, wrong("parcel.twice", name)
	}
	return entry, r.names.add(entry)
}

// small reads a file that is kept in memory.
func (r *Reader) small(header *tar.Header, most int64) ([]byte, error) {
	entry, err := &Entry{}, error(nil)
	name := strings.TrimPrefix(header.Name, r.top+"/")
	if header.Typeflag != tar.TypeReg || header.Mode&^0o777 != 0 {
		return nil, wrong("parcel.entry", name)
	}
	*entry = Entry{Path: name, Kind: KindFile, Mode: uint32(header.Mode), Size: header.Size}
	if header.Size > most {
		return nil, structs.NewError(structs.CodeTooLarge, "parcel.file_too_large", "path", shown(name), "max", most)
	}
	if err := r.names.add(entry); err != nil {
		return nil, err
	}
	data := new(bytes.Buffer)
	if _, err = data.ReadFrom(io.LimitReader(r.tar, header.Size)); err != nil || int64(data.Len()) != header.Size {
		return nil, r.broken(err)
	}
	sum := sha256.Sum256(data.Bytes())
	entry.SHA256 = hex.EncodeToString(sum[:])
	r.list = append(r.list, *entry)
	return data.Bytes(), nil
}

// begin makes an entry the one that is read.
func (r *Reader) begin(entry *Entry) error {
	r.current, r.content, r.sum, r.read = entry, r.tar, sha256.New(), 0
	switch entry.Path {
	case JobName, SubmittedName, TreeName:
		most := int64(JobSizeMax)
		if entry.Path == TreeName {
			most = treeSizeMax
		}
		if entry.Size > most {
			return structs.NewError(structs.CodeTooLarge, "parcel.file_too_large", "path", entry.Path, "max", most)
		}
		data := new(bytes.Buffer)
		if _, err := data.ReadFrom(io.LimitReader(r.tar, entry.Size)); err != nil {
			return r.broken(err)
		}
		r.content = bytes.NewReader(data.Bytes())
		switch entry.Path {
		case JobName:
			r.job = data.Bytes()
		case TreeName:
			code, err := openCode(data.Bytes(), r.head.Code)
			if err != nil {
				return err
			}
			r.code = code
		}
	default:
		if below, ok := strings.CutPrefix(entry.Path, CodeDir+"/"); ok {
			return r.code.begin(below, entry)
		}
	}
	return nil
}

// Read reads bytes of the current entry's file; io.EOF is at their end.
func (r *Reader) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	if r.current == nil || r.current.Kind != KindFile {
		return 0, io.EOF
	}
	n, err := r.content.Read(p)
	r.read += int64(n)
	r.sum.Write(p[:n])
	if strings.HasPrefix(r.current.Path, CodeDir+"/") {
		r.code.write(p[:n])
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = r.broken(err)
		r.err = err
	}
	return n, err
}

// finish reads what nobody has read of the current entry, and remembers it.
func (r *Reader) finish() error {
	if r.current == nil {
		return nil
	}
	if _, err := io.Copy(io.Discard, struct{ io.Reader }{r}); err != nil {
		return err
	}
	if r.current.Kind == KindFile {
		if r.read != r.current.Size {
			return r.broken(io.ErrUnexpectedEOF)
		}
		r.current.SHA256 = hex.EncodeToString(r.sum.Sum(nil))
	}
	if strings.HasPrefix(r.current.Path, CodeDir+"/") && !r.code.finish() {
		r.notes(r.current.Path, ProblemCode)
	}
	r.list = append(r.list, *r.current)
	r.current = nil
	return nil
}

func (r *Reader) notes(name, what string) {
	if len(r.wrong) < problemsMax {
		r.wrong = append(r.wrong, Problem{Path: name, What: what})
	}
}

// end reads the manifest and compares all with it.
func (r *Reader) end(header *tar.Header) error {
	seen := r.list
	data, err := r.small(header, ManifestSizeMax)
	if err != nil {
		return err
	}
	r.list = seen
	r.digest = digestOf(data)
	var m Manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return structs.NewError(structs.CodeInvalid, "parcel.unreadable", "path", ManifestName).Because(err)
	}
	again, err := m.encode()
	if err != nil || m.Format != Format || !bytes.Equal(again, data) { // one list has one spelling, and so one digest
		return structs.NewError(structs.CodeInvalid, "parcel.unreadable", "path", ManifestName).Because(err)
	}
	if err := r.nothingBehind(); err != nil {
		return err
	}
	r.compare(m.Entries)
	if r.head.Code != nil && !r.code.whole() || r.head.Code == nil && r.code != nil {
		r.notes(TreeName, ProblemCode)
	}
	if len(r.list)-1 != r.head.Entries || r.bytes != r.head.Bytes {
		r.notes(HeadName, ProblemEntry)
	}
	if len(r.wrong) > 0 {
		return &DamagedError{Problems: r.wrong}
	}
	if r.job == nil {
		return structs.NewError(structs.CodeInvalid, "parcel.no_job")
	}
	return io.EOF
}

// nothingBehind refuses what stands behind the manifest: nobody would see it.
func (r *Reader) nothingBehind() error {
	if _, err := r.tar.Next(); err == nil {
		return structs.NewError(structs.CodeInvalid, "parcel.behind")
	} else if !errors.Is(err, io.EOF) {
		return r.broken(err)
	}
	const padding = 1 << 20 // blocks of zeros that tar programs end archives with
	rest, err := io.ReadAll(io.LimitReader(r.in, padding+1))
	if err != nil {
		return r.broken(err)
	}
	if len(rest) > padding || len(bytes.Trim(rest, "\x00")) > 0 {
		return structs.NewError(structs.CodeInvalid, "parcel.behind")
	}
	return nil
}

// compare holds what was read against the manifest.
func (r *Reader) compare(listed []Entry) {
	read := make(map[string]int, len(r.list))
	for i := range r.list {
		read[r.list[i].Path] = i
	}
	known := make(map[string]bool, len(listed))
	for i := range listed {
		want := &listed[i]
		at, there := read[want.Path]
		switch {
		case known[want.Path]:
			r.notes(want.Path, ProblemEntry)
		case !there:
			r.notes(want.Path, ProblemMissing)
		default:
			got := r.list[at]
			same := got
			same.SHA256 = want.SHA256
			switch {
			case same != *want || at != i && len(listed) == len(r.list):
				r.notes(want.Path, ProblemEntry)
			case got != *want:
				r.notes(want.Path, ProblemBytes)
			}
		}
		known[want.Path] = true
	}
	for i := range r.list {
		if !known[r.list[i].Path] {
			r.notes(r.list[i].Path, ProblemUnknown)
		}
	}
}

// broken says where an archive that cannot be read on broke off.
func (r *Reader) broken(err error) error {
	var told *structs.Error
	if errors.As(err, &told) {
		return told
	}
	at := HeadName
	if r.current != nil {
		at = r.current.Path
	} else if len(r.list) > 0 {
		at = r.list[len(r.list)-1].Path
	}
	return structs.NewError(structs.CodeInvalid, "parcel.broken", "path", shown(at)).Because(err)
}

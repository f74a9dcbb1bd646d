// Package parcel is one run of a job in one file: its job file, its code, what it read,
// what it wrote, its logs and the record of what happened, with a digest of each.
//
// Flow: a Writer takes entries in order and writes a tar archive, compressed or not,
// which any tar opens; a Reader takes one apart again, believes nothing of it, and knows
// at its end whether every byte is what was packed.
//
// Limits: an archive is hostile until Reader.Next has returned io.EOF. No owners travel,
// of modes only the permission bits, and links only within the code. What is in a parcel
// is neither signed nor encrypted: whoever can write the file can write another one.
package parcel

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"path"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"nomadlike/nomadlike/structs"
)

// Format is the number of the form that this package writes, and the only one that it
// reads. It is no part of the protocol: parcels stay when the protocol goes on.
const Format = 1

// The names of what a parcel holds, below the one directory that all of it lies in. The
// head stands first, the manifest last.
const (
	HeadName      = "package.json"
	ManifestName  = "manifest.json"
	JobName       = "job.hcl"       // every value written out
	SubmittedName = "submitted.hcl" // as a person wrote it
	TreeName      = "code-tree"     // the manifest of the code, as package tree spells it
	RecordDir     = "record"
	CodeDir       = "code"
	InputsDir     = "inputs"
	LogsDir       = "logs"
	OutputsDir    = "outputs"
)

// Bounds of every parcel.
const (
	EntriesMax      = 200_000   // files, directories and links
	PathMax         = 4096      // bytes of a path
	NameMax         = 255       // bytes of one name
	NamesMax        = 64 << 20  // bytes of all paths together
	HeadSizeMax     = 1 << 20   // bytes of the head
	JobSizeMax      = 1 << 20   // bytes of a job file
	ManifestSizeMax = 128 << 20 // bytes of the manifest
	RatioMax        = 200       // times that a parcel may become larger when it is opened,
	RatioFree       = 1 << 30   // once it has more bytes than these
)

// Kind is what an entry is.
type Kind string

// The kinds of entries. Nothing else travels.
const (
	KindFile Kind = "file"
	KindDir  Kind = "dir"
	KindLink Kind = "link"
)

// Entry is one name of a parcel.
type Entry struct {
	Path   string // below the parcel's directory; any bytes but NUL
	Kind   Kind
	Mode   uint32 // permission bits; 0 of a link
	Size   int64  // bytes of a file
	SHA256 string // of a file: 64 hexadecimal digits
	Target string // of a link: what it says
}

// spelled is an entry in JSON. A text that is no UTF-8 is spelled in base64.
type spelled struct {
	Path         string `json:"path,omitempty"`
	PathBase64   string `json:"path_base64,omitempty"`
	Kind         Kind   `json:"kind"`
	Mode         string `json:"mode,omitempty"`
	Size         *int64 `json:"size,omitempty"`
	SHA256       string `json:"sha256,omitempty"`
	Target       string `json:"target,omitempty"`
	TargetBase64 string `json:"target_base64,omitempty"`
}

// MarshalJSON spells the entry.
func (e Entry) MarshalJSON() ([]byte, error) {
	s := spelled{Kind: e.Kind, SHA256: e.SHA256}
	s.Path, s.PathBase64 = spell(e.Path)
	s.Target, s.TargetBase64 = spell(e.Target)
	if e.Kind != KindLink {
		s.Mode = "0" + strconv.FormatUint(uint64(e.Mode), 8)
	}
	if e.Kind == KindFile {
		s.Size = &e.Size
	}
	return json.Marshal(s)
}

func spell(text string) (plain, base string) {
	if utf8.ValidString(text) {
		return text, ""
	}
	return "", base64.StdEncoding.EncodeToString([]byte(text))
}

var errSpelling = errors.New("an entry is not spelled as entries are")

// UnmarshalJSON reads the entry.
func (e *Entry) UnmarshalJSON(data []byte) error {
	var s spelled
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	*e = Entry{Kind: s.Kind, SHA256: s.SHA256}
	var err error
	if e.Path, err = unspell(s.Path, s.PathBase64); err != nil {
		return err
	}
	if e.Target, err = unspell(s.Target, s.TargetBase64); err != nil {
		return err
	}
	if s.Mode != "" {
		mode, err := strconv.ParseUint(s.Mode, 8, 32)
		if err != nil {
			return errSpelling
		}
		e.Mode = uint32(mode)
	}
	if s.Size != nil {
		e.Size = *s.Size
	}
	return nil
}

func unspell(plain, base string) (string, error) {
	if base == "" {
		return plain, nil
	}
	text, err := base64.StdEncoding.DecodeString(base)
	if err != nil || plain != "" {
		return "", errSpelling
	}
	return string(text), nil
}

// Head says what a parcel is, before anything of it has been read.
type Head struct {
	Format  int       `json:"format"`
	Program string    `json:"program"` // the version that wrote it
	Job     Job       `json:"job"`
	Code    *Code     `json:"code,omitempty"` // nil: none is in it
	Entries int       `json:"entries"`        // between the head and the manifest
	Bytes   int64     `json:"bytes"`          // of their files together
	LeftOut []LeftOut `json:"left_out"`       // what belongs to the run and is not in the parcel
}

// Job is whose run a parcel holds.
type Job struct {
	ID          string           `json:"id"`
	Name        string           `json:"name"`
	Project     string           `json:"project"`
	User        string           `json:"user,omitempty"`
	State       structs.JobState `json:"state"` // when it was packed
	SubmittedAt structs.UnixNano `json:"submitted_at"`
	FinishedAt  structs.UnixNano `json:"finished_at,omitempty"`
}

// Code is the code of a run.
type Code struct {
	Tree  string              `json:"tree"` // its digest: "sha256:" and 64 digits
	Files int                 `json:"files"`
	Bytes int64               `json:"bytes"`
	Git   *structs.WorkdirGit `json:"git,omitempty"` // where git stood
}

// LeftOut is something that belongs to a run and is not in its parcel.
type LeftOut struct {
	Path   string `json:"path"`
	Reason string `json:"reason"` // in the language of whoever packed it
}

// Manifest lists all that a parcel holds but itself, in the order of the archive. Its
// digest is the parcel's.
type Manifest struct {
	Format  int     `json:"format"`
	Entries []Entry `json:"entries"`
}

// encode spells the manifest: an entry a line, for people and for diff.
func (m Manifest) encode() ([]byte, error) {
	var out strings.Builder
	out.WriteString(`{"format": ` + strconv.Itoa(m.Format) + `, "entries": [`)
	for i := range m.Entries {
		line, err := json.Marshal(m.Entries[i])
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString("\n  ")
		out.Write(line)
	}
	out.WriteString("\n]}\n")
	return []byte(out.String()), nil
}

// check refuses what no parcel holds, whatever else is in it: paths that lead elsewhere,
// special bits, links outside of the code.
func (e *Entry) check() error {
	if !local(e.Path) {
		return wrong("parcel.path", e.Path)
	}
	top, below, _ := strings.Cut(e.Path, "/")
	switch top {
	case HeadName, ManifestName, JobName, SubmittedName, TreeName:
		if e.Kind != KindFile || below != "" {
			return wrong("parcel.entry", e.Path)
		}
	case RecordDir, CodeDir, InputsDir, LogsDir, OutputsDir:
		if below == "" && e.Kind != KindDir {
			return wrong("parcel.entry", e.Path)
		}
	default:
		return wrong("parcel.path", e.Path)
	}
	switch {
	case e.Mode&^0o777 != 0, e.Size < 0,
		e.Kind != KindFile && e.Size != 0,
		e.Kind != KindLink && e.Target != "",
		e.Kind == KindLink && (top != CodeDir || e.Mode != 0):
		return wrong("parcel.entry", e.Path)
	}
	return nil
}

// local reports whether a path stays below where it begins, however it is read.
func local(name string) bool {
	if name == "" || len(name) > PathMax || strings.ContainsRune(name, 0) {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." || len(part) > NameMax {
			return false
		}
	}
	return true
}

// names are the paths of a parcel on the way through it: each once, each below a
// directory that stands before it.
type names struct {
	kinds map[string]Kind
	bytes int
}

func (n *names) add(e *Entry) error {
	if err := e.check(); err != nil {
		return err
	}
	if n.kinds == nil {
		n.kinds = make(map[string]Kind)
	}
	if _, twice := n.kinds[e.Path]; twice {
		return wrong("parcel.twice", e.Path)
	}
	if above := path.Dir(e.Path); above != "." && n.kinds[above] != KindDir {
		return wrong("parcel.no_parent", e.Path)
	}
	n.kinds[e.Path] = e.Kind
	n.bytes += len(e.Path)
	if len(n.kinds) > EntriesMax || n.bytes > NamesMax {
		return structs.NewError(structs.CodeTooLarge, "parcel.too_many", "max", EntriesMax)
	}
	return nil
}

// wrong is an error about one name.
func wrong(id, name string) error {
	return structs.NewError(structs.CodeInvalid, id, "path", shown(name))
}

// shown is a path as errors name it: as it is, or quoted where a terminal or a log would
// not show it so.
func shown(name string) string {
	const most = 200
	if len(name) > most {
		name = name[:most] + "…"
	}
	if utf8.ValidString(name) && strings.IndexFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return name
	}
	return strconv.Quote(name)
}

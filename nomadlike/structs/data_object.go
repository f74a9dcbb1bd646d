package structs

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// DataKinds lists what named data may be: what jobs mount and do not change. Each is
// one of StorageKinds.
func DataKinds() []string { return []string{StorageDataset, StorageModel, StorageAlgorithm} }

// Who may use named data, beside its owner and the administrators of its project.
const (
	DataPrivate = "private" // nobody
	DataProject = "project" // who belongs to the project
	DataCluster = "cluster" // jobs and people of other projects too, who only read
)

// States of a version.
const (
	DataUploading  = "uploading"  // nobody's yet: no job sees it
	DataReady      = "ready"      // it never changes
	DataRegistered = "registered" // a directory that was there before; whoever has it may change it
)

// DataID names named data: of a project, of one of DataKinds.
type DataID struct {
	Project string `json:"project"`
	Kind    string `json:"kind"`
	Name    string `json:"name"`
}

// ID spells it in one word: project/kind/NAME.
func (id DataID) ID() string { return id.Project + "/" + id.Kind + "/" + id.Name }

// ParseDataID reads what DataID.ID spells.
func ParseDataID(text string) (id DataID, ok bool) {
	parts := strings.Split(text, "/")
	if len(parts) != 3 {
		return DataID{}, false
	}
	return DataID{Project: parts[0], Kind: parts[1], Name: parts[2]}, true
}

// DataObject is a dataset, model or algorithm that has a name in its project, with its
// versions. Each version is a directory of an administrator's storage: where a job
// that names storage, name and version finds it. Written through the API; Apply fixes
// versions, times and by whom.
type DataObject struct {
	Project string `json:"project"`
	Kind    string `json:"kind"` // one of DataKinds
	Name    string `json:"name"`
	Owner   string `json:"owner,omitempty"` // a user
	// Home is the user in whose directory its versions lie, of a storage that has one for
	// each: who made it. It stays when the owner changes, for the bytes do.
	Home    string `json:"home,omitempty" since:"44"`
	Storage string `json:"storage"` // that all its versions lie in
	Access  string `json:"access"`  // DataPrivate | DataProject | DataCluster

	// Published by administrators of the cluster: jobs of every project find it with
	// from = "pretrained".
	Published   bool              `json:"published,omitempty"`
	Description string            `json:"description,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Favourites  []string          `json:"favourites,omitempty"` // users who marked it, sorted

	Next     int           `json:"next"` // number of the next version; none comes twice
	Versions []DataVersion `json:"versions,omitempty"`

	MadeAt      UnixNano `json:"made_at,omitempty"`
	MadeBy      string   `json:"made_by,omitempty"`
	ChangedAt   UnixNano `json:"changed_at,omitempty"` // what it says of itself, not its versions
	ChangedBy   string   `json:"changed_by,omitempty"`
	ModifyIndex uint64   `json:"modify_index,omitempty"`
}

// DataVersion is one version of named data. Once it is ready it never changes.
type DataVersion struct {
	Number int    `json:"number"`           // from 1
	State  string `json:"state"`            // DataUploading | DataReady | DataRegistered
	Digest string `json:"digest,omitempty"` // of its manifest; "" until it is ready, and of a registered one
	Files  int    `json:"files,omitempty"`  // of an upload: that it is to have
	Bytes  int64  `json:"bytes,omitempty"`
	Tag    string `json:"tag,omitempty"` // a name for it; one version of an object has it

	UploadID  string   `json:"upload_id,omitempty"`
	ExpiresAt UnixNano `json:"expires_at,omitempty"` // when an upload is given up

	MadeAt  UnixNano `json:"made_at,omitempty"` // when the upload began, then when it was ready
	MadeBy  string   `json:"made_by,omitempty"`
	JobID   string   `json:"job_id,omitempty"` // that made it
	Attempt uint64   `json:"attempt,omitempty"`
	// Origin is what made it, of a version that is made of what a job wrote.
	Origin *DataOrigin `json:"origin,omitempty" since:"45"`

	// Source is the directory of a registered version, below the storage; "" is the
	// version's own place.
	Source string `json:"source,omitempty"`
}

// Bounds of named data.
const (
	DataObjectsPerProject = 2_000
	DataObjectsMax        = 50_000  // of the cluster
	DataVersionsMax       = 500     // of one object, uploads included
	DataUploadsMax        = 16      // of one object at once
	DataFilesMax          = 1 << 30 // of one version
	DataBytesMax          = 1 << 50 // of one version
	DataLabelsMax         = 16      // of one object
	DataLabelMax          = 200     // bytes of a label's value
	DataMarksMax          = 1_000   // users who mark one object
	DataExpireMax         = 256     // uploads that one command gives up
)

// DataUploadFor is how long an upload is kept after it was begun, or gone on with.
const DataUploadFor = Duration(7 * 24 * time.Hour)

// Usable reports whether jobs may mount the version.
func (v *DataVersion) Usable() bool { return v.State == DataReady || v.State == DataRegistered }

// Ref names the object.
func (o *DataObject) Ref() DataID { return DataID{Project: o.Project, Kind: o.Kind, Name: o.Name} }

// Version returns a version by its number, nil when there is none.
func (o *DataObject) Version(number int) *DataVersion {
	for i := range o.Versions {
		if o.Versions[i].Number == number {
			return &o.Versions[i]
		}
	}
	return nil
}

// Upload returns the version that an upload became, or is to become; nil when there is
// none.
func (o *DataObject) Upload(id string) *DataVersion {
	for i := range o.Versions {
		if id != "" && o.Versions[i].UploadID == id {
			return &o.Versions[i]
		}
	}
	return nil
}

// Uploads reports whether a version is being made.
func (o *DataObject) Uploads() bool {
	return slices.ContainsFunc(o.Versions, func(v DataVersion) bool { return v.State == DataUploading })
}

// Tagged returns the usable version that has a tag, nil when none has.
func (o *DataObject) Tagged(tag string) *DataVersion {
	for i := range o.Versions {
		if v := &o.Versions[i]; tag != "" && v.Tag == tag && v.Usable() {
			return v
		}
	}
	return nil
}

// Newest returns the usable version of the highest number, nil when there is none.
func (o *DataObject) Newest() *DataVersion {
	for i := len(o.Versions) - 1; i >= 0; i-- {
		if o.Versions[i].Usable() {
			return &o.Versions[i]
		}
	}
	return nil
}

// Bytes is how much all versions hold, and how much uploads are to hold. What versions
// share counts once for each: a quota does not depend on how a storage keeps them.
func (o *DataObject) Bytes() int64 {
	sum := int64(0)
	for i := range o.Versions {
		sum += o.Versions[i].Bytes
	}
	return sum
}

// Copy returns an object that shares nothing with o; nil copies to nil.
func (o *DataObject) Copy() *DataObject {
	if o == nil {
		return nil
	}
	c := *o
	c.Labels = maps.Clone(o.Labels)
	c.Favourites, c.Versions = slices.Clone(o.Favourites), slices.Clone(o.Versions)
	for i := range c.Versions {
		c.Versions[i].Origin = c.Versions[i].Origin.Copy()
	}
	return &c
}

// DataTagLatest means the newest version wherever a tag is read, so that none has it.
const DataTagLatest = "latest"

// DataTagProblem reports why text may not be the tag of a version, as the message id of
// the reason, or "" when it may: lower-case ASCII letters, digits, '.', '_' and '-',
// beginning with a letter, so that no tag looks like a number.
func DataTagProblem(tag string) string {
	switch {
	case tag == "":
		return "name.empty"
	case len(tag) > NameLengthMax:
		return "name.too_long"
	case tag == DataTagLatest:
		return "data.tag_latest"
	case tag[0] < 'a' || tag[0] > 'z':
		return "data.tag_first"
	case strings.Trim(tag, "abcdefghijklmnopqrstuvwxyz0123456789._-") != "":
		return "data.tag_characters"
	}
	return ""
}

// SplitDataName reads NAME, NAME@VERSION or NAME@TAG as people write them; with neither,
// and with NAME@latest, the newest version is meant. The parts are not checked.
func SplitDataName(text string) (name string, version int, tag string) {
	name, of, _ := strings.Cut(text, "@")
	if of == DataTagLatest {
		return name, 0, ""
	}
	if number, err := strconv.Atoi(of); err == nil && number > 0 && strconv.Itoa(number) == of {
		return name, number, ""
	}
	return name, 0, of
}

// Problem is what keeps the record from being stored, as the path of a field, ""
// for nothing. It rests on no table that changes, so that replicas agree.
func (o *DataObject) Problem() string {
	switch {
	case NameProblem(o.Project) != "":
		return "project"
	case !slices.Contains(DataKinds(), o.Kind):
		return "kind"
	case NameProblem(o.Name) != "":
		return "name"
	case NameProblem(o.Storage) != "":
		return "storage"
	case o.Access != DataPrivate && o.Access != DataProject && o.Access != DataCluster:
		return "access"
	case len(o.Owner) > WordMax || len(o.Home) > WordMax:
		return "owner"
	case len(o.Description) > DescriptionMax || !utf8.ValidString(o.Description):
		return "description"
	case len(o.Labels) > DataLabelsMax:
		return "labels"
	}
	for key, value := range o.Labels {
		if NameProblem(key) != "" || len(value) > DataLabelMax || !utf8.ValidString(value) || strings.ContainsAny(value, "\x00\r\n\x1b") {
			return "labels"
		}
	}
	return ""
}

// DataPut makes an object without versions, or replaces what one says of itself: all
// but versions, marks and storage.
type DataPut struct {
	Object DataObject `json:"object"`
}

// DataBegin reserves the number of a version for an upload, of an object that is made
// when it is missing. Begun again by the same id it goes on, and is kept longer. With
// Source it registers a directory, and the version is there at once.
type DataBegin struct {
	// Object says what an object that is missing is made of. Of one that is there only
	// the storage is compared, where one is named.
	Object DataObject `json:"object"`

	UploadID string `json:"upload_id"` // drawn by the proposer
	Files    int    `json:"files,omitempty"`
	Bytes    int64  `json:"bytes,omitempty"` // that the version is to have: counted in the project's quota
	Tag      string `json:"tag,omitempty"`   // that it gets when it is there
	JobID    string `json:"job_id,omitempty"`
	Attempt  uint64 `json:"attempt,omitempty"`
	Source   string `json:"source,omitempty"`
	// Take has the version be made of what a job wrote, by a node that has both storages;
	// job and attempt above are then of it.
	Take *DataTake `json:"take,omitempty" since:"45"`
}

// DataCommit has an upload be a version: its bytes are where jobs look for them.
// Committed again it changes nothing.
type DataCommit struct {
	ID       DataID `json:"id"`
	UploadID string `json:"upload_id"`
	Digest   string `json:"digest"`
	Files    int    `json:"files"`
	Bytes    int64  `json:"bytes"`
}

// DataDrop removes one version, an upload, or the whole object. What a live job names
// stays.
type DataDrop struct {
	ID       DataID `json:"id"`
	Number   int    `json:"number,omitempty"` // 0, without UploadID: the object
	UploadID string `json:"upload_id,omitempty"`
	// Cause is why a version cannot be made of what a job wrote; the job's history tells.
	Cause *Reason `json:"cause,omitempty" since:"45"`
}

// DataExpire ends uploads. What is not over at the command's time is left alone.
type DataExpire struct {
	Uploads []DataUpload `json:"uploads"` // at most DataExpireMax
}

// DataUpload names an upload.
type DataUpload struct {
	ID       DataID `json:"id"`
	UploadID string `json:"upload_id"`
}

// DataTag sets the tag of a version, which the version that had it loses; "" takes the
// version's own away.
type DataTag struct {
	ID     DataID `json:"id"`
	Number int    `json:"number"`
	Tag    string `json:"tag,omitempty"`
}

// DataMark has an object be a favourite of a user, or not.
type DataMark struct {
	ID   DataID `json:"id"`
	User string `json:"user"`
	Off  bool   `json:"off,omitempty"`
}

// DataPick is what a name in a job means, fixed at admission: jobs of other names for
// the same, or of none, have the same bytes at every attempt. The version and the
// storage stand beside it in DataRef.
type DataPick struct {
	Project string `json:"project"`         // whose it is
	Owner   string `json:"owner,omitempty"` // stands for {user} in the storage's path
	Digest  string `json:"digest,omitempty"`
	Source  string `json:"source,omitempty"` // of a registered version
	// Asked is what the job said instead of a version: a tag, or DataTagLatest where it
	// said nothing; "" where it named the version itself.
	Asked string `json:"asked,omitempty"`
}

// Of names the data of a reference that has a pick.
func (p *DataPick) Of(kind string, ref *DataRef) DataID {
	return DataID{Project: p.Project, Kind: kind, Name: ref.Name}
}

// dataName names the data as Job.DataName does: jobs of every project that mean the
// same share a node's copy of it. With the digest, a version that was removed and made
// anew is another.
func (p *DataPick) dataName(kind string, ref *DataRef) string {
	name := strings.Join([]string{kind + ":" + p.Project, ref.Storage, FromPrivate, ref.Name, strconv.Itoa(ref.Version)}, "/")
	if p.Source != "" {
		name += ":" + p.Source
	}
	const shown = 16
	if digits, ok := strings.CutPrefix(p.Digest, workdirTreePart); ok && len(digits) >= shown {
		name += "@" + digits[:shown]
	}
	return name
}

// DataPicks calls visit for every reference of the job that means named data.
func (j *Job) DataPicks(visit func(kind string, ref *DataRef)) {
	for _, of := range []struct {
		kind string
		refs []DataRef
	}{{StorageAlgorithm, j.Algorithms}, {StorageDataset, j.Datasets}, {StorageModel, j.Models}} {
		for i := range of.refs {
			if of.refs[i].Object != nil {
				visit(of.kind, &of.refs[i])
			}
		}
	}
}

// DataProtocol is the first version of wire.ProtocolVersion whose agents know where
// named data lies.
const DataProtocol = 39

// NamesData reports whether a reference of the job means named data.
func (j *Job) NamesData() bool {
	named := false
	j.DataPicks(func(string, *DataRef) { named = true })
	return named
}

// BelowPath reports whether a path names something below whatever it is added to.
func BelowPath(p string) bool {
	return p != "" && len(p) <= PathMax && utf8.ValidString(p) && !strings.ContainsAny(p, "\x00\r\n\x1b") && belowPath(p)
}

// CopiedIn reports whether a node that holds these copies has one of a version. Pure.
func (o *DataObject) CopiedIn(copies []string, version *DataVersion) bool {
	if len(copies) == 0 {
		return false
	}
	pick := DataPick{Project: o.Project, Owner: o.Home, Digest: version.Digest, Source: version.Source}
	name := pick.dataName(o.Kind, &DataRef{Name: o.Name, Storage: o.Storage, Version: version.Number})
	for _, of := range []string{"", o.Home} {
		if slices.Contains(copies, CopyName(name, false, of)) || slices.Contains(copies, CopyName(name, true, of)) {
			return true
		}
	}
	return false
}

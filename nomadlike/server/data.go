package server

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// fixData writes into a job which named data it means: the version, newest where it
// names none, the storage, whose it is and the digest. From then on nothing that
// becomes of the name reaches the job. Whatever the request says of that is not
// believed. Names that no object has are directories of storages, which nodes look for.
// defaults are what was chosen for the job: of a job that says nothing of who else may
// see it, and uses what is private, nobody may.
func fixData(snapshot *state.Snapshot, job *structs.Job, defaults []structs.Default) (problems []structs.Problem) {
	for i := range job.Volumes { // no volume is named data: it would be that of whomever the request says
		job.Volumes[i].Object = nil
	}
	for _, of := range []struct {
		kind string
		refs []structs.DataRef
	}{{structs.StorageAlgorithm, job.Algorithms}, {structs.StorageDataset, job.Datasets}, {structs.StorageModel, job.Models}} {
		for i := range of.refs {
			f := dataFixer{snapshot: snapshot, job: job, kind: of.kind, ref: &of.refs[i], path: structs.IndexedPath(of.kind, i)}
			if problem := f.fix(); problem != nil {
				problems = append(problems, *problem)
				continue
			}
			if f.private && job.Access != structs.AccessNone {
				if at := slices.IndexFunc(defaults, func(d structs.Default) bool { return d.Path == "access" }); at >= 0 {
					job.Access, defaults[at].Value, defaults[at].From = structs.AccessNone, structs.AccessNone, ""
					continue
				}
				problems = append(problems, placeProblem("access", "server.data_wider", "value", job.Access, "kind", of.kind, "name", f.ref.Name))
			}
		}
	}
	return problems
}

// dataFixer finds what one reference of a job means.
type dataFixer struct {
	snapshot *state.Snapshot
	job      *structs.Job
	kind     string
	ref      *structs.DataRef
	path     string
	private  bool // it found what is private
}

func (f *dataFixer) fix() *structs.Problem {
	f.ref.Object = nil
	named := f.ref.Project != "" || f.ref.Tag != "" // what only an object has
	switch {
	case f.ref.Source != "" && named:
		return f.problem("server.data_source")
	case f.ref.Source != "":
		return nil
	case f.ref.Tag != "" && f.ref.Version != 0:
		return f.problem("server.data_tag_version", "tag", f.ref.Tag)
	}
	object, hidden := f.find()
	switch {
	case object == nil && (named || hidden):
		return f.unknown()
	case object == nil:
		return nil
	case f.ref.Storage != "" && f.ref.Storage != object.Storage && named:
		return f.problem("server.data_storage", "storage", object.Storage, "wanted", f.ref.Storage)
	case f.ref.Storage != "" && f.ref.Storage != object.Storage:
		return nil // a directory of another storage
	}
	version, asked := f.version(object)
	if version == nil {
		return f.versionUnknown(object)
	}
	f.private = object.Access == structs.DataPrivate && !object.Published
	f.ref.Version, f.ref.Storage, f.ref.Tag = version.Number, object.Storage, ""
	f.ref.ReadOnly = f.ref.ReadOnly || version.State == structs.DataReady
	f.ref.Object = &structs.DataPick{
		Project: object.Project, Owner: object.Home, Digest: version.Digest, Source: version.Source, Asked: asked,
	}
	return nil
}

// find looks for the object that the reference means. One that the job's user may not
// use is as one that is not there, and its directory is not to be had by its name
// either.
func (f *dataFixer) find() (object *structs.DataObject, hidden bool) {
	own := structs.DataID{Project: cmp.Or(f.ref.Project, f.job.Project), Kind: f.kind, Name: f.ref.Name}
	known := f.snapshot.Data(own)
	if f.ref.Project != "" || f.ref.From == "" || f.ref.From == structs.FromPrivate {
		if known == nil {
			return nil, false
		}
		if !MayUseData(f.snapshot, f.job.Project, f.job.User, known) {
			return nil, true
		}
		return known, false
	}
	means := func(o *structs.DataObject) bool { return o.Published } // from = "pretrained"
	if f.ref.From == structs.FromFavorite {
		means = func(o *structs.DataObject) bool {
			_, marked := slices.BinarySearch(o.Favourites, f.job.User)
			return marked && MayUseData(f.snapshot, f.job.Project, f.job.User, o)
		}
	}
	if known != nil && means(known) {
		return known, false
	}
	for other := range f.snapshot.DataNamed(f.kind, f.ref.Name) {
		if means(other) {
			return other, false
		}
	}
	return nil, false
}

// version is the version that the reference means, and what it said instead of one.
func (f *dataFixer) version(object *structs.DataObject) (version *structs.DataVersion, asked string) {
	switch {
	case f.ref.Tag != "":
		return object.Tagged(f.ref.Tag), f.ref.Tag
	case f.ref.Version == 0:
		return object.Newest(), structs.DataTagLatest
	}
	if version = object.Version(f.ref.Version); version != nil && !version.Usable() {
		version = nil
	}
	return version, ""
}

func (f *dataFixer) problem(id string, params ...string) *structs.Problem {
	p := placeProblem(f.path, id, append([]string{"kind", f.kind, "name", f.ref.Name}, params...)...)
	return &p
}

func (f *dataFixer) unknown() *structs.Problem {
	project := cmp.Or(f.ref.Project, f.job.Project)
	p := f.problem("server.data_unknown", "project", project)
	if near := NearestData(f.snapshot, f.job.Project, f.job.User, project, f.kind, f.ref.Name); near != "" {
		p.HintID = "server.data_unknown.near"
		p.Params["near"] = near
	}
	return p
}

func (f *dataFixer) versionUnknown(object *structs.DataObject) *structs.Problem {
	var known []string
	for i := len(object.Versions) - 1; i >= 0; i-- {
		v := &object.Versions[i]
		if !v.Usable() {
			continue
		}
		text := strconv.Itoa(v.Number)
		if v.Tag != "" {
			text += " (" + v.Tag + ")"
		}
		const most = 10
		if known = append(known, text); len(known) == most {
			known = append(known, "…")
			break
		}
	}
	switch {
	case len(known) == 0:
		return f.problem("server.data_empty")
	case f.ref.Tag != "":
		return f.problem("server.data_tag_unknown", "tag", f.ref.Tag, "known", strings.Join(known, ", "))
	}
	return f.problem("server.data_version_unknown", "version", strconv.Itoa(f.ref.Version), "known", strings.Join(known, ", "))
}

// MayUseData reports whether a user's jobs in a project may use named data: their own,
// what their project has while its owners may share, and what another project, or an
// administrator, lets everybody use. Pure.
func MayUseData(snapshot *state.Snapshot, project, user string, object *structs.DataObject) bool {
	switch {
	case object.Published:
		return true
	case object.Project == project && user != "" && object.Owner == user:
		return true
	case structs.SharingOff(snapshot.Settings(), snapshot.Project(object.Project)) != nil:
		return false
	case object.Project == project:
		return object.Access != structs.DataPrivate
	}
	return object.Access == structs.DataCluster
}

// NearestData is the name of named data in a project that was probably meant, "" when
// none is near that the user's jobs may use. Pure.
func NearestData(snapshot *state.Snapshot, project, user, of, kind, name string) string {
	var names []string
	for object := range snapshot.DataOf(of) {
		if object.Kind == kind && MayUseData(snapshot, project, user, object) {
			names = append(names, object.Name)
		}
	}
	return structs.Nearest(name, names)
}

// dueData ends uploads that nobody finished.
func dueData(snapshot *state.Snapshot, now structs.UnixNano) []dueSweep {
	var over structs.DataExpire
	for object := range snapshot.UploadingData() {
		for i := range object.Versions {
			v := &object.Versions[i]
			if v.State == structs.DataUploading && v.ExpiresAt <= now && len(over.Uploads) < structs.DataExpireMax {
				over.Uploads = append(over.Uploads, structs.DataUpload{ID: object.Ref(), UploadID: v.UploadID})
			}
		}
	}
	if len(over.Uploads) == 0 {
		return nil
	}
	return []dueSweep{{structs.CommandDataExpire, &over}}
}

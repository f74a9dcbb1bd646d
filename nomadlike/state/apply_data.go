package state

import (
	"cmp"
	"slices"

	"nomadlike/nomadlike/structs"
)

// dataObject returns named data, nil when there is none.
func (tx *txn) dataObject(id structs.DataID) *structs.DataObject {
	object, _ := get[*structs.DataObject](tx, tableData, dataKey(id))
	return object
}

func (tx *txn) putData(object *structs.DataObject) {
	object.ModifyIndex = tx.index()
	tx.put(tableData, dataKey(object.Ref()), object)
}

// tellData tells of an object, and who may hear of it: what is removed has no record that
// says so. Of uploads nobody hears before they are versions.
func (tx *txn) tellData(id string, object *structs.DataObject, version int) {
	params := []string{"kind", object.Kind, "name", object.Name, "project", object.Project, "by", tx.by, "owner", object.Owner, "access", object.Access}
	if version > 0 {
		params = append(params, "version", decimal(version))
	}
	if object.Published {
		params = append(params, "published", "true")
	}
	tx.tell(structs.Event{Topic: topicData, ID: id, Project: object.Project}, params...)
}

func dataUnknown(id structs.DataID) *structs.Error {
	return structs.NewError(structs.CodeNotFound, "state.data_unknown", "kind", id.Kind, "name", id.Name, "project", id.Project)
}

// applyDataPut makes an object without versions, or replaces what one says of itself.
func applyDataPut(tx *txn, body *structs.DataPut) (structs.ApplyResult, *structs.Error) {
	object := body.Object
	if problem := object.Problem(); problem != "" {
		return refuse(structs.CodeInvalid, "state.data_malformed", "field", problem)
	}
	if refusal := tx.archivedProblem(object.Project); refusal != nil {
		return structs.ApplyResult{}, refusal
	}
	known := tx.dataObject(object.Ref())
	if known == nil {
		made, refusal := tx.makeData(&object)
		if refusal != nil {
			return structs.ApplyResult{}, refusal
		}
		tx.putData(made)
		tx.tellData("event.data.made", made, 0)
		return accepted()
	}
	if object.Storage != known.Storage {
		return structs.ApplyResult{}, dataElsewhere(known, object.Storage)
	}
	next := known.Copy()
	next.Owner, next.Access, next.Published = object.Owner, object.Access, object.Published
	next.Description, next.Labels = object.Description, object.Labels
	next.ChangedAt, next.ChangedBy = tx.now, tx.by
	tx.putData(next)
	tx.tellData("event.data.changed", next, 0)
	return accepted()
}

func dataElsewhere(known *structs.DataObject, storage string) *structs.Error {
	return structs.NewError(structs.CodeConflict, "state.data_storage", "kind", known.Kind, "name", known.Name, "storage", known.Storage, "wanted", storage)
}

// archivedProblem refuses what would be new in a project that is archived.
func (tx *txn) archivedProblem(name string) *structs.Error {
	if project := tx.project(name); project != nil && project.Archived {
		return structs.NewError(structs.CodeConflict, "state.project_archived", "project", project.Name, "by", project.ArchivedBy)
	}
	return nil
}

// makeData is a new object, where there is room for one.
func (tx *txn) makeData(of *structs.DataObject) (*structs.DataObject, *structs.Error) {
	if len(listRows[*structs.DataObject](tx, tableData, indexID, idKey(of.Project))) >= structs.DataObjectsPerProject {
		return nil, structs.NewError(structs.CodeTooLarge, "state.data_full", "max", structs.DataObjectsPerProject, "scope", of.Project)
	}
	if len(listRows[*structs.DataObject](tx, tableData, indexID, nil)) >= structs.DataObjectsMax {
		return nil, structs.NewError(structs.CodeTooLarge, "state.data_full", "max", structs.DataObjectsMax, "scope", "cluster")
	}
	object := of.Copy()
	object.Favourites, object.Versions, object.Next = nil, nil, 1
	object.Home = cmp.Or(object.Home, object.Owner)
	object.MadeAt, object.MadeBy, object.ChangedAt, object.ChangedBy = tx.now, tx.by, 0, ""
	return object, nil
}

// applyDataBegin reserves a version for an upload, goes on with one, or registers a
// directory.
func applyDataBegin(tx *txn, body *structs.DataBegin) (structs.ApplyResult, *structs.Error) {
	return tx.beginVersion(body, tx.by)
}

func (tx *txn) beginVersion(body *structs.DataBegin, by string) (structs.ApplyResult, *structs.Error) {
	if refusal := checkTake(body); refusal != nil {
		return structs.ApplyResult{}, refusal
	}
	switch problem := body.Object.Problem(); {
	case problem != "":
		return refuse(structs.CodeInvalid, "state.data_malformed", "field", problem)
	case !validKey(body.UploadID):
		return refuse(structs.CodeInvalid, "state.data_malformed", "field", "upload_id")
	case body.Tag != "" && structs.DataTagProblem(body.Tag) != "":
		return refuse(structs.CodeInvalid, "state.data_malformed", "field", "tag")
	case body.JobID != "" && !validKey(body.JobID):
		return refuse(structs.CodeInvalid, "state.data_malformed", "field", "job_id")
	case body.Source != "" && !structs.BelowPath(body.Source):
		return refuse(structs.CodeInvalid, "state.data_malformed", "field", "source")
	case badDataSize(body.Files, body.Bytes):
		return refuse(structs.CodeInvalid, "state.data_malformed", "field", "bytes")
	}
	id := body.Object.Ref()
	if refusal := tx.archivedProblem(id.Project); refusal != nil {
		return structs.ApplyResult{}, refusal
	}
	object, refusal := tx.dataObject(id).Copy(), (*structs.Error)(nil)
	if object == nil {
		if object, refusal = tx.makeData(&body.Object); refusal != nil {
			return structs.ApplyResult{}, refusal
		}
	} else if object.Storage != body.Object.Storage {
		return structs.ApplyResult{}, dataElsewhere(object, body.Object.Storage)
	}
	var origin *structs.DataOrigin
	if body.Take != nil {
		if origin, refusal = tx.takeOrigin(object, body, by); refusal != nil {
			return structs.ApplyResult{}, refusal
		}
	}
	if begun := object.Upload(body.UploadID); begun != nil {
		if begun.State == structs.DataUploading {
			begun.ExpiresAt = max(begun.ExpiresAt, tx.now.Add(structs.DataUploadFor.Std()))
			tx.putData(object)
		}
		return accepted()
	}
	if refusal := tx.roomForVersion(object, body, origin); refusal != nil {
		return structs.ApplyResult{}, refusal
	}
	version := structs.DataVersion{
		Number: object.Next, State: structs.DataUploading, Files: body.Files, Bytes: body.Bytes, Tag: body.Tag,
		UploadID: body.UploadID, ExpiresAt: tx.now.Add(structs.DataUploadFor.Std()),
		MadeAt: tx.now, MadeBy: by, JobID: body.JobID, Attempt: body.Attempt, Origin: origin, Source: body.Source,
	}
	if body.Source != "" {
		version.State, version.ExpiresAt, version.Files, version.Bytes = structs.DataRegistered, 0, 0, 0
		untag(object, version.Tag)
	}
	object.Next++
	object.Versions = append(object.Versions, version)
	tx.putData(object)
	if version.Usable() {
		tx.tellData("event.data.version", object, version.Number)
	}
	return accepted()
}

func badDataSize(files int, bytes int64) bool {
	return files < 0 || files > structs.DataFilesMax || bytes < 0 || bytes > structs.DataBytesMax
}

// roomForVersion refuses one version too many, and bytes over the project's quota. The
// subjobs of a batch may end together, and what they wrote counts for no upload: it is
// made some at a time.
func (tx *txn) roomForVersion(object *structs.DataObject, body *structs.DataBegin, origin *structs.DataOrigin) *structs.Error {
	apart := func(o *structs.DataOrigin) bool { return o != nil && o.Apart }
	uploads := 0
	for i := range object.Versions {
		if v := &object.Versions[i]; v.State == structs.DataUploading && !apart(v.Origin) {
			uploads++
		}
	}
	switch {
	case len(object.Versions) >= structs.DataVersionsMax:
		return structs.NewError(structs.CodeTooLarge, "state.data_versions", "kind", object.Kind, "name", object.Name, "max", structs.DataVersionsMax)
	case uploads >= structs.DataUploadsMax && body.Source == "" && !apart(origin):
		return structs.NewError(structs.CodeTooLarge, "state.data_uploads", "kind", object.Kind, "name", object.Name, "max", structs.DataUploadsMax)
	case body.Source != "":
		return nil
	}
	return tx.dataQuotaProblem(object.Project, body.Bytes)
}

// dataQuotaProblem refuses more bytes in a project than its quota lets it have.
func (tx *txn) dataQuotaProblem(name string, more int64) *structs.Error {
	project := tx.project(name)
	if project == nil || project.DataQuota == 0 || more <= 0 {
		return nil
	}
	used := int64(0)
	for _, object := range listRows[*structs.DataObject](tx, tableData, indexID, idKey(name)) {
		used += object.Bytes()
	}
	if used+more <= project.DataQuota {
		return nil
	}
	return structs.NewError(structs.CodeTooLarge, "state.data_quota", "project", name,
		"size", structs.FormatSize(more), "used", structs.FormatSize(used), "max", structs.FormatSize(project.DataQuota))
}

// untag takes a tag from the version that has it.
func untag(object *structs.DataObject, tag string) {
	for i := range object.Versions {
		if v := &object.Versions[i]; tag != "" && v.Tag == tag && v.Usable() {
			v.Tag = ""
		}
	}
}

// applyDataCommit has an upload be a version that jobs may name.
func applyDataCommit(tx *txn, body *structs.DataCommit) (structs.ApplyResult, *structs.Error) {
	if !structs.IsTreeDigest(body.Digest) || badDataSize(body.Files, body.Bytes) {
		return refuse(structs.CodeInvalid, "state.data_malformed", "field", "digest")
	}
	object := tx.dataObject(body.ID).Copy()
	if object == nil {
		return structs.ApplyResult{}, dataUnknown(body.ID)
	}
	version := object.Upload(body.UploadID)
	switch {
	case version == nil:
		return refuse(structs.CodeNotFound, "state.data_upload_unknown", "upload", body.UploadID, "name", body.ID.Name)
	case version.State == structs.DataReady && version.Digest == body.Digest:
		return accepted()
	case version.State != structs.DataUploading:
		return refuse(structs.CodeConflict, "state.data_committed", "kind", object.Kind, "name", object.Name, "version", version.Number)
	}
	if refusal := tx.archivedProblem(object.Project); refusal != nil {
		return structs.ApplyResult{}, refusal
	}
	if refusal := tx.dataQuotaProblem(object.Project, body.Bytes-version.Bytes); refusal != nil {
		return structs.ApplyResult{}, refusal
	}
	untag(object, version.Tag)
	version.State, version.ExpiresAt = structs.DataReady, 0
	version.Digest, version.Files, version.Bytes = body.Digest, body.Files, body.Bytes
	version.MadeAt = tx.now
	tx.putData(object)
	if o := version.Origin; o != nil {
		tx.tellKept(version.JobID, o.Subjob, version.Attempt, "event.job.output_kept", object.Ref(), version.Number, nil)
	}
	tx.tellData("event.data.version", object, version.Number)
	return accepted()
}

// applyDataDrop removes a version, an upload or an object.
func applyDataDrop(tx *txn, body *structs.DataDrop) (structs.ApplyResult, *structs.Error) {
	object := tx.dataObject(body.ID).Copy()
	if object == nil {
		return structs.ApplyResult{}, dataUnknown(body.ID)
	}
	number := body.Number
	if body.UploadID != "" {
		upload := object.Upload(body.UploadID)
		switch {
		case upload == nil:
			return refuse(structs.CodeNotFound, "state.data_upload_unknown", "upload", body.UploadID, "name", body.ID.Name)
		case upload.State != structs.DataUploading:
			return refuse(structs.CodeConflict, "state.data_committed", "kind", object.Kind, "name", object.Name, "version", upload.Number)
		}
		number = upload.Number
	} else if number != 0 && object.Version(number) == nil {
		return refuse(structs.CodeNotFound, "state.data_version_unknown", "kind", object.Kind, "name", object.Name, "version", number)
	}
	if job := tx.liveJobOfData(body.ID, number); job != nil {
		return refuse(structs.CodeConflict, "state.data_in_use", "kind", object.Kind, "name", object.Name, "job", job.Name, "id", job.ID)
	}
	if number == 0 {
		tx.remove(tableData, dataKey(body.ID), tx.dataObject(body.ID))
		tx.tellData("event.data.removed", object, 0)
		return accepted()
	}
	if gone := object.Version(number); gone != nil && gone.Origin != nil && body.Cause != nil {
		tx.tellKept(gone.JobID, gone.Origin.Subjob, gone.Attempt, "event.job.output_refused", object.Ref(), number, body.Cause)
	}
	if object.Version(number).Usable() {
		tx.tellData("event.data.version_removed", object, number)
	}
	object.Versions = slices.DeleteFunc(object.Versions, func(v structs.DataVersion) bool { return v.Number == number })
	tx.putData(object)
	return accepted()
}

// liveJobOfData returns a job that has not ended and names a version of an object, or
// any version where number is 0; nil when there is none.
func (tx *txn) liveJobOfData(id structs.DataID, number int) *structs.Job {
	prefix := dataKey(id)
	if number > 0 {
		prefix = appendUint(prefix, uint64(number))
	}
	for _, row := range listRows[*jobRow](tx, tableJobs, indexData, prefix) {
		if !tx.jobStatus(row.Job.ID).Status.State.Terminal() {
			return row.Job
		}
	}
	return nil
}

// applyDataExpire ends uploads that are over.
func applyDataExpire(tx *txn, body *structs.DataExpire) (structs.ApplyResult, *structs.Error) {
	if len(body.Uploads) > structs.DataExpireMax {
		return refuse(structs.CodeTooLarge, "state.too_many", "what", "uploads", "max", structs.DataExpireMax)
	}
	for _, upload := range body.Uploads {
		object := tx.dataObject(upload.ID).Copy()
		if object == nil {
			continue
		}
		kept := len(object.Versions)
		object.Versions = slices.DeleteFunc(object.Versions, func(v structs.DataVersion) bool {
			return v.UploadID == upload.UploadID && v.State == structs.DataUploading && v.ExpiresAt <= tx.now
		})
		if len(object.Versions) < kept {
			tx.putData(object)
		}
	}
	return accepted()
}

// applyDataTag sets the tag of a version, or takes it away.
func applyDataTag(tx *txn, body *structs.DataTag) (structs.ApplyResult, *structs.Error) {
	if body.Tag != "" && structs.DataTagProblem(body.Tag) != "" {
		return refuse(structs.CodeInvalid, "state.data_malformed", "field", "tag")
	}
	object := tx.dataObject(body.ID).Copy()
	if object == nil {
		return structs.ApplyResult{}, dataUnknown(body.ID)
	}
	version := object.Version(body.Number)
	if version == nil || !version.Usable() {
		return refuse(structs.CodeNotFound, "state.data_version_unknown", "kind", object.Kind, "name", object.Name, "version", body.Number)
	}
	untag(object, body.Tag)
	version.Tag = body.Tag
	tx.putData(object)
	tx.tellData("event.data.tagged", object, version.Number)
	return accepted()
}

// applyDataMark has an object be a favourite of a user, or not.
func applyDataMark(tx *txn, body *structs.DataMark) (structs.ApplyResult, *structs.Error) {
	if body.User == "" || len(body.User) > structs.WordMax {
		return refuse(structs.CodeInvalid, "state.data_malformed", "field", "user")
	}
	object := tx.dataObject(body.ID).Copy()
	if object == nil {
		return structs.ApplyResult{}, dataUnknown(body.ID)
	}
	at, marked := slices.BinarySearch(object.Favourites, body.User)
	switch {
	case marked == !body.Off:
		return accepted()
	case body.Off:
		object.Favourites = slices.Delete(object.Favourites, at, at+1)
	case len(object.Favourites) >= structs.DataMarksMax:
		return refuse(structs.CodeTooLarge, "state.too_many", "what", "favourites", "max", structs.DataMarksMax)
	default:
		object.Favourites = slices.Insert(object.Favourites, at, body.User)
	}
	tx.put(tableData, dataKey(body.ID), object) // its version stays: who may do what has not changed
	return accepted()
}

// removeMarksOf takes the marks of a user who goes from all objects: whoever gets the
// name does not get them.
func (tx *txn) removeMarksOf(user string) {
	for _, object := range listRows[*structs.DataObject](tx, tableData, indexID, nil) {
		if at, marked := slices.BinarySearch(object.Favourites, user); marked {
			next := object.Copy()
			next.Favourites = slices.Delete(next.Favourites, at, at+1)
			tx.put(tableData, dataKey(next.Ref()), next)
		}
	}
}

// dataProblem refuses a job that names a version which is not there any more.
func (tx *txn) dataProblem(job *structs.Job) (refusal *structs.Error) {
	job.DataPicks(func(kind string, ref *structs.DataRef) {
		object := tx.dataObject(ref.Object.Of(kind, ref))
		if object != nil {
			if version := object.Version(ref.Version); version != nil && version.Usable() {
				return
			}
		}
		if refusal == nil {
			refusal = structs.NewError(structs.CodeConflict, "state.data_gone", "kind", kind, "name", ref.Name, "version", ref.Version)
		}
	})
	return refusal
}

package state

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"nomadlike/nomadlike/structs"
)

// dataPlay applies commands about named data.
type dataPlay struct {
	*play
}

func newDataPlay(t *testing.T) *dataPlay { return &dataPlay{&play{t: t, store: New(), now: 1}} }

// apply reports the id of the refusal, "" for none.
func (p *dataPlay) apply(kind structs.CommandKind, body any) string {
	p.t.Helper()
	if err := p.store.Apply(p.store.Snapshot().Index()+1, encode(kind, p.now, body)).Err; err != nil {
		return err.ID
	}
	return ""
}

func (p *dataPlay) want(refusal string, kind structs.CommandKind, body any) {
	p.t.Helper()
	if got := p.apply(kind, body); got != refusal {
		p.t.Errorf("%+v: %q, want %q", body, got, refusal)
	}
}

func cifar() structs.DataObject {
	return structs.DataObject{Project: "vision", Kind: structs.StorageDataset, Name: "cifar10", Owner: "li", Storage: "nas", Access: structs.DataProject}
}

func (p *dataPlay) begin(refusal, upload, tag string, size int64) {
	p.t.Helper()
	p.want(refusal, structs.CommandDataBegin, &structs.DataBegin{Object: cifar(), UploadID: upload, Files: 1, Bytes: size, Tag: tag})
}

func (p *dataPlay) commit(refusal, upload string, digest int, size int64) {
	p.t.Helper()
	object := cifar()
	p.want(refusal, structs.CommandDataCommit, &structs.DataCommit{ID: object.Ref(), UploadID: upload, Digest: treeDigest(digest), Files: 1, Bytes: size})
}

// versions lists those of cifar10: number, state, end of the digest, tag.
func (p *dataPlay) versions() (list []string) {
	object := cifar()
	known := p.store.Snapshot().Data(object.Ref())
	if known == nil {
		return nil
	}
	for _, v := range known.Versions {
		list = append(list, strings.TrimSpace(fmt.Sprintf("%d %s %s %s", v.Number, v.State, v.Digest[max(0, len(v.Digest)-1):], v.Tag)))
	}
	return list
}

func (p *dataPlay) has(want ...string) {
	p.t.Helper()
	if got := p.versions(); !slices.Equal(got, want) {
		p.t.Errorf("%q, want %q", got, want)
	}
}

// Numbers come once, uploads are no versions until they are committed, committing again
// changes nothing, a tag is one version's, and all of it is restored as it was.
func TestVersionsOfData(t *testing.T) {
	p := newDataPlay(t)
	p.begin("", "u1", "", 100)
	p.begin("", "u2", "stable", 100)
	p.has("1 uploading", "2 uploading  stable")
	p.commit("state.data_upload_unknown", "u9", 1, 100)
	p.commit("", "u2", 2, 120)
	p.commit("", "u2", 2, 120)
	p.commit("state.data_committed", "u2", 3, 120)
	p.commit("", "u1", 1, 100)
	p.has("1 ready 1", "2 ready 2 stable")
	object := cifar()
	p.want("", structs.CommandDataTag, &structs.DataTag{ID: object.Ref(), Number: 1, Tag: "stable"})
	p.has("1 ready 1 stable", "2 ready 2")
	p.begin("", "u3", "stable", 1)
	p.want("state.data_version_unknown", structs.CommandDataTag, &structs.DataTag{ID: object.Ref(), Number: 3, Tag: "x"})
	p.want("", structs.CommandDataDrop, &structs.DataDrop{ID: object.Ref(), UploadID: "u3"})
	p.begin("", "u4", "stable", 1)
	p.commit("", "u4", 4, 1)
	p.has("1 ready 1", "2 ready 2", "4 ready 4 stable")
	p.want("", structs.CommandDataDrop, &structs.DataDrop{ID: object.Ref(), Number: 2})
	p.want("state.data_version_unknown", structs.CommandDataDrop, &structs.DataDrop{ID: object.Ref(), Number: 2})
	p.want("state.data_committed", structs.CommandDataDrop, &structs.DataDrop{ID: object.Ref(), UploadID: "u4"})
	p.want("", structs.CommandDataBegin, &structs.DataBegin{Object: cifar(), UploadID: "r1", Source: "old/cifar"})
	p.has("1 ready 1", "4 ready 4 stable", "5 registered")
	p.want("", structs.CommandDataMark, &structs.DataMark{ID: object.Ref(), User: "mei"})
	p.want("", structs.CommandDataMark, &structs.DataMark{ID: object.Ref(), User: "li"})
	p.want("", structs.CommandDataMark, &structs.DataMark{ID: object.Ref(), User: "mei"})

	snapshot := p.store.Snapshot()
	if got := snapshot.Data(object.Ref()).Favourites; !slices.Equal(got, []string{"li", "mei"}) {
		t.Errorf("favourites: %q", got)
	}
	var stored bytes.Buffer
	if err := snapshot.Persist(&stored); err != nil {
		t.Fatal(err)
	}
	again := New()
	if err := again.Restore(&stored); err != nil || again.Snapshot().Hash() != snapshot.Hash() || again.Snapshot().Data(object.Ref()).Next != 6 {
		t.Errorf("restored: %v, %+v", err, again.Snapshot().Data(object.Ref()))
	}
	p.want("", structs.CommandDataDrop, &structs.DataDrop{ID: object.Ref()})
	p.has()
	p.want("state.data_unknown", structs.CommandDataDrop, &structs.DataDrop{ID: object.Ref()})
}

// Uploads that nobody goes on with are given up after a week, and no sooner.
func TestUploadsOfDataEnd(t *testing.T) {
	p := newDataPlay(t)
	object := cifar()
	expire := func() {
		t.Helper()
		p.want("", structs.CommandDataExpire, &structs.DataExpire{Uploads: []structs.DataUpload{
			{ID: object.Ref(), UploadID: "u1"}, {ID: object.Ref(), UploadID: "u2"}, {ID: structs.DataID{Project: "vision", Kind: "model", Name: "none"}, UploadID: "u1"},
		}})
	}
	p.begin("", "u1", "", 1)
	p.begin("", "u2", "", 1)
	p.now = structs.UnixNano(6 * 24 * time.Hour)
	p.begin("", "u2", "", 1) // it goes on
	expire()
	p.has("1 uploading", "2 uploading")
	p.now = structs.UnixNano(8 * 24 * time.Hour)
	expire()
	p.has("2 uploading")
	p.commit("", "u2", 2, 1)
	p.now = structs.UnixNano(80 * 24 * time.Hour)
	expire()
	p.has("2 ready 2")
	p.want("state.too_many", structs.CommandDataExpire, &structs.DataExpire{Uploads: make([]structs.DataUpload, structs.DataExpireMax+1)})
}

// The quota counts what uploads are to have before it is sent, and what they had in the
// end. Nothing of a refusal stays.
func TestDataQuota(t *testing.T) {
	p := newDataPlay(t)
	p.want("", structs.CommandProjectPut, &structs.ProjectPut{Project: structs.Project{Name: "vision", DataQuota: 1000}})
	p.begin("state.data_quota", "u1", "", 1001)
	p.has()
	p.begin("", "u1", "", 600)
	p.begin("state.data_quota", "u2", "", 401)
	p.begin("", "u2", "", 400)
	p.commit("state.data_quota", "u1", 1, 601) // more than it said
	p.commit("", "u1", 1, 500)
	p.commit("", "u2", 2, 500)
	p.begin("state.data_quota", "u3", "", 1)
	object := cifar()
	p.want("", structs.CommandDataDrop, &structs.DataDrop{ID: object.Ref(), Number: 1})
	p.begin("", "u3", "", 500)
	p.want("", structs.CommandDataBegin, &structs.DataBegin{Object: cifar(), UploadID: "r1", Bytes: 1 << 40, Source: "there/already"})
	p.has("2 ready 2", "3 uploading", "4 registered")
}

// A version that a live job names stays, and a job whose version was removed between
// its admission and the log is refused.
func TestJobsKeepTheirData(t *testing.T) {
	p := newDataPlay(t)
	object := cifar()
	submit := func(refusal, id string, version int) {
		t.Helper()
		p.want(refusal, structs.CommandJobSubmit, &structs.JobSubmit{Job: &structs.Job{
			ID: id, Name: id, Project: "speech", User: "mei", Nodes: 1, Resources: []structs.Resources{{CPU: 1}},
			Datasets: []structs.DataRef{{Name: "words"}, {Name: "cifar10", Version: version, Storage: "nas", Object: &structs.DataPick{Project: "vision", Digest: treeDigest(version)}}},
		}})
	}
	submit("state.data_gone", "j1", 1)
	p.begin("", "u1", "", 1)
	submit("state.data_gone", "j1", 1)
	p.commit("", "u1", 1, 1)
	p.begin("", "u2", "", 1)
	p.commit("", "u2", 2, 1)
	submit("", "j1", 1)
	drop := func(refusal string, number int) {
		t.Helper()
		p.want(refusal, structs.CommandDataDrop, &structs.DataDrop{ID: object.Ref(), Number: number})
	}
	drop("state.data_in_use", 1)
	drop("state.data_in_use", 0)
	drop("", 2)
	users := 0
	for job := range p.store.Snapshot().JobsOfData(object.Ref(), 1) {
		if users++; job.ID != "j1" {
			t.Errorf("job %s uses it", job.ID)
		}
	}
	if users != 1 {
		t.Errorf("%d jobs use it", users)
	}
	p.want("", structs.CommandJobStop, &structs.JobStop{JobID: "j1"})
	drop("", 1)
	submit("state.data_gone", "j2", 1)
}

// What a replica may not take in is refused, and bounds hold.
func TestMalformedData(t *testing.T) {
	p := newDataPlay(t)
	for field, change := range map[string]func(*structs.DataBegin){
		"project":     func(b *structs.DataBegin) { b.Object.Project = "../x" },
		"kind":        func(b *structs.DataBegin) { b.Object.Kind = structs.StorageVolume },
		"name":        func(b *structs.DataBegin) { b.Object.Name = "a/b" },
		"storage":     func(b *structs.DataBegin) { b.Object.Storage = "" },
		"access":      func(b *structs.DataBegin) { b.Object.Access = "all" },
		"description": func(b *structs.DataBegin) { b.Object.Description = strings.Repeat("x", structs.DescriptionMax+1) },
		"labels":      func(b *structs.DataBegin) { b.Object.Labels = map[string]string{"team": "a\x1b[31m"} },
		"upload_id":   func(b *structs.DataBegin) { b.UploadID = "a b" },
		"tag":         func(b *structs.DataBegin) { b.Tag = "3" },
		"latest":      func(b *structs.DataBegin) { b.Tag = structs.DataTagLatest },
		"source":      func(b *structs.DataBegin) { b.Source = "a/../../b" },
		"bytes":       func(b *structs.DataBegin) { b.Bytes = -1 },
		"many bytes":  func(b *structs.DataBegin) { b.Bytes = structs.DataBytesMax + 1 },
	} {
		body := &structs.DataBegin{Object: cifar(), UploadID: "u"}
		change(body)
		if got := p.apply(structs.CommandDataBegin, body); got != "state.data_malformed" {
			t.Errorf("%s: %q", field, got)
		}
	}
	for i := range structs.DataUploadsMax {
		p.begin("", fmt.Sprint("u", i), "", 0)
	}
	p.begin("state.data_uploads", "one-more", "", 0)
	elsewhere := cifar()
	elsewhere.Storage = "home"
	p.want("state.data_storage", structs.CommandDataPut, &structs.DataPut{Object: elsewhere})
	p.want("state.data_storage", structs.CommandDataBegin, &structs.DataBegin{Object: elsewhere, UploadID: "v"})
	shared := cifar()
	shared.Access, shared.Description, shared.Next = structs.DataCluster, "60,000 pictures", 99
	p.want("", structs.CommandDataPut, &structs.DataPut{Object: shared})
	if got := p.store.Snapshot().Data(shared.Ref()); got.Access != structs.DataCluster || got.Next != structs.DataUploadsMax+1 || len(got.Versions) != structs.DataUploadsMax {
		t.Errorf("changed: %+v", got)
	}
	p.want("", structs.CommandProjectPut, &structs.ProjectPut{Project: structs.Project{Name: "vision"}})
	p.want("state.project_has_data", structs.CommandProjectDelete, &structs.ProjectDelete{Name: "vision"})
	p.want("", structs.CommandProjectArchive, &structs.ProjectArchive{Name: "vision", Archived: true})
	p.begin("state.project_archived", "u1", "", 0)
	p.commit("state.project_archived", "u1", 1, 0)
}

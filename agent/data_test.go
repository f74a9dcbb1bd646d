package agent

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"nomadlike/agent/config"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// The catalogue shows to each what they may use, says of everything else that it is not
// there, and lets owners and administrators of the project decide who else may.
func TestCatalogueOfData(t *testing.T) {
	w := newWorld(t)
	ann, ben, eve := w.admin.WithToken(w.tokens["user"]), w.admin.WithToken(w.tokens["mate"]), w.admin.WithToken(w.tokens["stranger"])
	text := func(s string) *string { return &s }
	storage, yes := "nas", true
	named := func(name string) api.DataName { return api.DataName{Name: name} }
	refused := func(what, want string, err error) {
		t.Helper()
		got := ""
		var failed *structs.Error
		if errors.As(err, &failed) {
			got = failed.ID
		} else if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	_, err := ann.PutData(t.Context(), named("cifar10"), api.DataRequest{})
	refused("without a storage", "agent.data_storage_missing", err)
	_, err = ann.PutData(t.Context(), named("Cifar"), api.DataRequest{Storage: &storage})
	refused("a name", "name.characters", err)
	_, err = ann.PutData(t.Context(), named("cifar10"), api.DataRequest{Storage: &storage, Access: text("all")})
	refused("an access", "agent.data_field", err)
	_, err = ann.PutData(t.Context(), named("cifar10"), api.DataRequest{Storage: &storage, Published: &yes})
	refused("publish", "agent.data_publish", err)
	_, err = ann.PutData(t.Context(), named("cifar10"), api.DataRequest{Storage: &storage})
	refused("make", "", err)
	_, err = ben.PutData(t.Context(), named("cifar10"), api.DataRequest{Description: text("60,000 pictures")})
	refused("a member describes", "", err)
	_, err = ben.PutData(t.Context(), named("cifar10"), api.DataRequest{Access: text("cluster")})
	refused("a member shares", "agent.data_owner", err)
	_, err = ben.DeleteData(t.Context(), named("cifar10"), 0)
	refused("a member deletes", "auth.forbidden.owner_only", err)
	_, err = eve.DataObject(t.Context(), api.DataName{Name: "cifar10", Project: "one"})
	refused("another project", "auth.not_found", err)
	_, err = ben.DataObject(t.Context(), named("cifra10"))
	refused("nearly the name", "agent.data_unknown", err)
	for _, source := range []string{"../up", "/etc", "a/../../b", "", "a\x00b"} {
		_, err = ann.RegisterData(t.Context(), named("cifar10"), api.DataRegisterRequest{Storage: storage, Source: source})
		refused("register "+source, "agent.data_source", err)
	}
	_, err = ann.RegisterData(t.Context(), named("cifar10"), api.DataRegisterRequest{Storage: "home", Source: "old"})
	refused("another storage", "state.data_storage", err)
	made, err := ann.RegisterData(t.Context(), named("cifar10"), api.DataRegisterRequest{Storage: storage, Source: "old/cifar10", Tag: "stable"})
	if err != nil || made.Version != 1 {
		t.Fatalf("registered: %+v, %v", made, err)
	}
	_, err = ann.TagData(t.Context(), named("cifar10"), api.DataTagRequest{Version: 1, Tag: "1"})
	refused("a number as tag", "data.tag_first", err)
	_, err = ann.TagData(t.Context(), named("cifar10"), api.DataTagRequest{Version: 2, Tag: "x"})
	refused("no version", "state.data_version_unknown", err)
	_, err = ben.MarkData(t.Context(), named("cifar10"), true)
	refused("mark", "", err)

	seen := func(client *api.Client, query api.DataQuery) (names []string) {
		t.Helper()
		list, err := client.Data(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		for i := range list.Objects {
			d := &list.Objects[i]
			name := d.Object.Name
			if d.Favourite {
				name += "*"
			}
			if len(d.Object.Favourites) > 0 {
				t.Errorf("%s tells who has marked it", name)
			}
			names = append(names, name)
		}
		return names
	}
	see := func(client *api.Client, query api.DataQuery, want ...string) {
		t.Helper()
		if got := seen(client, query); !slices.Equal(got, want) {
			t.Errorf("%+v: %q, want %q", query, got, want)
		}
	}
	see(ben, api.DataQuery{}, "cifar10*")
	see(ann, api.DataQuery{Kind: "model"})
	see(ann, api.DataQuery{Favourites: true})
	see(eve, api.DataQuery{All: true})
	_, err = ann.PutData(t.Context(), named("cifar10"), api.DataRequest{Access: text("private")})
	refused("private", "", err)
	see(ben, api.DataQuery{})
	_, err = ben.DataObject(t.Context(), named("cifar10"))
	refused("a private one", "auth.not_found", err)
	_, err = ann.PutData(t.Context(), named("cifar10"), api.DataRequest{Access: text("cluster")})
	refused("shared", "", err)
	see(eve, api.DataQuery{})
	see(eve, api.DataQuery{All: true}, "cifar10")
	_, err = eve.PutData(t.Context(), api.DataName{Name: "cifar10", Project: "one"}, api.DataRequest{Description: text("mine")})
	if err == nil {
		t.Error("another project changes what it may only read")
	}
	detail, err := eve.DataObject(t.Context(), api.DataName{Name: "cifar10", Project: "one"})
	if err != nil || detail.Newest != 1 || detail.Object.Versions[0].Tag != "stable" || detail.Favourites != 1 {
		t.Errorf("read from elsewhere: %+v, %v", detail, err)
	}
	_, err = ann.DeleteData(t.Context(), named("cifar10"), 7)
	refused("delete no version", "state.data_version_unknown", err)
	_, err = ann.DeleteData(t.Context(), named("cifar10"), 0)
	refused("delete", "", err)
	_, err = ann.DeleteData(t.Context(), named("cifar10"), 0)
	refused("delete again", "auth.not_found", err)
}

// A job that names data gets the newest version that there is when it is submitted, and
// its bytes; which version it was stands in the job. A name that is nearly right is told
// with the one that was meant.
func TestJobsGetTheNewestVersion(t *testing.T) {
	shelf := t.TempDir()
	for at, content := range map[string]string{"dataset/words/1": "one", "dataset/words/2": "two", "dataset/old/words": "registered"} {
		if err := os.MkdirAll(filepath.Join(shelf, at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(shelf, at, "text"), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	yes := true
	options := testOptions(t)
	a := startAgent(t, config.Settings{Dev: &yes, Client: &config.ClientBlock{Storages: []config.StorageBlock{{Name: "shelf", Path: shelf + "/{kind}"}}}}, options)
	client := savedClient(t, options)
	object := structs.DataObject{Project: "default", Kind: "dataset", Name: "words", Storage: "shelf", Access: structs.DataProject}
	commit := func(n string) {
		t.Helper()
		if _, _, err := a.server.Submit(t.Context(), structs.CommandDataBegin, "li", &structs.DataBegin{Object: object, UploadID: "u" + n, Tag: map[string]string{"1": "first"}[n]}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := a.server.Submit(t.Context(), structs.CommandDataCommit, "li", &structs.DataCommit{ID: object.Ref(), UploadID: "u" + n, Digest: "sha256:" + strings.Repeat(n, 64), Files: 1, Bytes: 3}); err != nil {
			t.Fatal(err)
		}
	}
	reads := func(name, dataset string) string {
		return `job "` + name + `" {
  dataset ` + dataset + `
  task { command = "cat /workspace/dataset/private/words/text" }
}
`
	}
	printed := func(name, dataset string, version int, asked, want string) {
		t.Helper()
		detail := runJob(t, client, reads(name, dataset), structs.JobSucceeded)
		ref := detail.Job.Datasets[0]
		if ref.Version != version || ref.Storage != "shelf" || ref.Object == nil || ref.Object.Asked != asked {
			t.Errorf("%s: %+v, %+v", name, ref, ref.Object)
		}
		if got := logsOf(t, client, allocOf(t, client, detail.Job.ID).ID, api.LogOptions{}); strings.TrimSpace(got) != want {
			t.Errorf("%s printed %q, want %q", name, got, want)
		}
	}
	commit("1")
	printed("first", `"words" {}`, 1, structs.DataTagLatest, "one")
	commit("2")
	printed("second", `"words" {}`, 2, structs.DataTagLatest, "two")
	printed("before", `"words" { version = 1 }`, 1, "", "one")
	printed("tagged", `"words" { tag = "first" }`, 1, "first", "one")
	if _, err := client.RegisterData(t.Context(), api.DataName{Name: "words"}, api.DataRegisterRequest{Storage: "shelf", Source: "old/words"}); err != nil {
		t.Fatal(err)
	}
	printed("third", `"words" {}`, 3, structs.DataTagLatest, "registered")
	for dataset, want := range map[string]string{
		`"words" { version = 9 }`: "server.data_version_unknown ", `"wrods" {}`: "agent.data_missing words", `"words" { project = "other" }`: "server.data_unknown ",
	} {
		_, err := client.SubmitJob(t.Context(), api.JobRequest{HCL: reads("no", dataset)}, "")
		var refused *structs.Error
		if !errors.As(err, &refused) || len(refused.Details) != 1 || refused.Details[0].ID+" "+refused.Details[0].Params["near"] != want {
			t.Errorf("%s: %v", dataset, err)
		}
	}
	detail, err := client.DataObject(t.Context(), api.DataName{Name: "words"})
	if err != nil || len(detail.Jobs) != 0 || detail.Newest != 3 {
		t.Errorf("afterwards: %+v, %v", detail, err)
	}
}

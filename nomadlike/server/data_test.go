package server

import (
	"fmt"
	"strings"
	"testing"

	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

func digestOf(n int) string { return "sha256:" + fmt.Sprintf("%064x", n) }

// catalogue is a state with data of two projects.
func catalogue(t *testing.T) *scripted {
	t.Helper()
	s := &scripted{t: t, store: state.New(), now: 1}
	for i, one := range []struct{ project, kind, name, owner, access string }{
		{"vision", "dataset", "cifar10", "li", "project"},
		{"vision", "dataset", "own", "li", "private"},
		{"vision", "model", "resnet", "li", "project"},
		{"speech", "dataset", "words", "mei", "cluster"},
		{"speech", "dataset", "talks", "mei", "project"},
		{"speech", "model", "bert", "mei", "private"},
	} {
		object := structs.DataObject{Project: one.project, Kind: one.kind, Name: one.name, Owner: one.owner, Access: one.access, Storage: "nas"}
		for n := range 2 {
			upload := fmt.Sprintf("u%d-%d", i, n)
			s.apply(structs.CommandDataBegin, &structs.DataBegin{Object: object, UploadID: upload, Tag: []string{"stable", ""}[n]})
			s.apply(structs.CommandDataCommit, &structs.DataCommit{ID: object.Ref(), UploadID: upload, Digest: digestOf(10*i + n), Files: n + 1, Bytes: 100})
		}
		s.apply(structs.CommandDataBegin, &structs.DataBegin{Object: object, UploadID: fmt.Sprintf("late%d", i)})
	}
	s.apply(structs.CommandDataBegin, &structs.DataBegin{
		Object:   structs.DataObject{Project: "vision", Kind: "dataset", Name: "imagenet", Owner: "li", Access: "project", Storage: "old"},
		UploadID: "r", Source: "sets/imagenet",
	})
	s.apply(structs.CommandDataPut, &structs.DataPut{Object: structs.DataObject{Project: "vision", Kind: "dataset", Name: "empty", Owner: "li", Access: "project", Storage: "nas"}})
	return s
}

// A batch whose subjobs would make more versions than their name has room for is refused.
func TestRoomForWhatABatchWrites(t *testing.T) {
	snapshot := catalogue(t).store.Snapshot()
	for count, want := range map[int]string{497: "server.keep_apart", 498: "server.keep_full"} {
		job := testJob("sweep", 1)
		job.Project, job.User, job.Batch = "vision", "li", &structs.Batch{Count: count}
		job.Output, job.OutputKeep = "run", &structs.OutputKeep{As: "model", Name: "resnet"}
		if problems := fixKeep(snapshot, job); len(problems) != 1 || problems[0].ID != want || !job.OutputKeep.Apart {
			t.Errorf("%d subjobs: %+v, %+v", count, problems, job.OutputKeep)
		}
	}
}

// Names in a job mean what there is at its submission, and that is written into it. What
// the request says of it is not believed, and what may not be used is not there.
func TestNamesOfDataInJobs(t *testing.T) {
	s := catalogue(t)
	s.apply(structs.CommandDataPut, &structs.DataPut{Object: structs.DataObject{Project: "speech", Kind: "model", Name: "bert", Owner: "zhou", Access: "private", Storage: "nas", Published: true}}) // handed over: its bytes stay where mei has them
	s.apply(structs.CommandDataMark, &structs.DataMark{ID: structs.DataID{Project: "speech", Kind: "dataset", Name: "words"}, User: "li"})
	s.apply(structs.CommandDataMark, &structs.DataMark{ID: structs.DataID{Project: "speech", Kind: "dataset", Name: "talks"}, User: "li"})
	for name, test := range map[string]struct {
		user, access string
		model        bool
		ref          structs.DataRef
		want         string // problem, or version, storage, project/owner, digest's number, asked
	}{
		"newest":                {"li", "read-only", false, structs.DataRef{Name: "cifar10"}, "2 nas vision/li 1 latest read-only"},
		"a version":             {"li", "read-only", false, structs.DataRef{Name: "cifar10", Version: 1}, "1 nas vision/li 0  read-only"},
		"a tag":                 {"li", "read-only", false, structs.DataRef{Name: "cifar10", Tag: "stable"}, "1 nas vision/li 0 stable read-only"},
		"tag and version":       {"li", "read-only", false, structs.DataRef{Name: "cifar10", Tag: "stable", Version: 1}, "server.data_tag_version"},
		"no such tag":           {"li", "read-only", false, structs.DataRef{Name: "cifar10", Tag: "best"}, "server.data_tag_unknown known=2, 1 (stable)"},
		"no such version":       {"li", "read-only", false, structs.DataRef{Name: "cifar10", Version: 9}, "server.data_version_unknown known=2, 1 (stable)"},
		"an upload":             {"li", "read-only", false, structs.DataRef{Name: "cifar10", Version: 3}, "server.data_version_unknown known=2, 1 (stable)"},
		"nothing there yet":     {"li", "read-only", false, structs.DataRef{Name: "empty"}, "server.data_empty"},
		"its storage":           {"li", "read-only", false, structs.DataRef{Name: "cifar10", Storage: "nas"}, "2 nas vision/li 1 latest read-only"},
		"another storage":       {"li", "read-only", false, structs.DataRef{Name: "cifar10", Storage: "home"}, "plain"},
		"a directory":           {"li", "read-only", false, structs.DataRef{Name: "cifar10", Source: "cifar10/7"}, "plain"},
		"no object":             {"li", "read-only", false, structs.DataRef{Name: "svhn"}, "plain"},
		"a lie":                 {"li", "read-only", false, structs.DataRef{Name: "svhn", Object: &structs.DataPick{Project: "speech", Owner: "mei"}}, "plain"},
		"another lie":           {"mei", "read-only", false, structs.DataRef{Name: "own", Version: 1, Object: &structs.DataPick{Project: "vision", Owner: "mei"}}, "server.data_unknown"},
		"private, narrow":       {"li", "none", false, structs.DataRef{Name: "own"}, "2 nas vision/li 11 latest read-only"},
		"private, wider":        {"li", "read-only", false, structs.DataRef{Name: "own"}, "server.data_wider"},
		"another's private":     {"mei", "none", false, structs.DataRef{Name: "own"}, "server.data_unknown"},
		"registered":            {"li", "read-only", false, structs.DataRef{Name: "imagenet"}, "1 old vision/li  latest of sets/imagenet"},
		"another project's":     {"li", "read-only", false, structs.DataRef{Name: "words", Project: "speech"}, "2 nas speech/mei 31 latest read-only"},
		"not shared":            {"li", "read-only", false, structs.DataRef{Name: "talks", Project: "speech"}, "server.data_unknown"},
		"nearly its name":       {"li", "read-only", false, structs.DataRef{Name: "word", Project: "speech"}, "server.data_unknown near=words"},
		"nearly a hidden name":  {"li", "read-only", false, structs.DataRef{Name: "talk", Project: "speech"}, "server.data_unknown"},
		"source and project":    {"li", "read-only", false, structs.DataRef{Name: "words", Project: "speech", Source: "a"}, "server.data_source"},
		"favourite":             {"li", "read-only", false, structs.DataRef{Name: "words", From: "favorite", Version: 1}, "1 nas speech/mei 30  read-only"},
		"favourite, not shared": {"li", "read-only", false, structs.DataRef{Name: "talks", From: "favorite", Version: 1}, "plain"},
		"nobody's favourite":    {"li", "read-only", false, structs.DataRef{Name: "cifar10", From: "favorite", Version: 1}, "plain"},
		"published":             {"li", "read-only", true, structs.DataRef{Name: "bert", From: "pretrained"}, "2 nas speech/mei 51 latest read-only"},
		"not published":         {"li", "read-only", true, structs.DataRef{Name: "resnet", From: "pretrained"}, "plain"},
		"of another kind":       {"li", "read-only", true, structs.DataRef{Name: "cifar10"}, "plain"},
	} {
		job := &structs.Job{Project: "vision", User: test.user, Access: test.access}
		refs := &job.Datasets
		if test.model {
			refs = &job.Models
		}
		*refs = []structs.DataRef{test.ref}
		problems := fixData(s.store.Snapshot(), job, nil)
		ref, got := (*refs)[0], "plain"
		if len(problems) > 0 {
			got = problems[0].ID
			for _, param := range []string{"known", "near"} {
				if value := problems[0].Params[param]; value != "" {
					got += " " + param + "=" + value
				}
			}
		} else if pick := ref.Object; pick != nil {
			digest := strings.TrimLeft(strings.TrimPrefix(pick.Digest, "sha256:"), "0")
			if n := 0; pick.Digest != "" {
				fmt.Sscanf(digest, "%x", &n)
				digest = fmt.Sprint(n)
			}
			got = fmt.Sprintf("%d %s %s/%s %s %s", ref.Version, ref.Storage, pick.Project, pick.Owner, digest, pick.Asked)
			if ref.ReadOnly {
				got += " read-only"
			}
			if pick.Source != "" {
				got += " of " + pick.Source
			}
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
		if len(problems) == 0 { // a copy of the job means the same
			before := (*refs)[0]
			fixData(s.store.Snapshot(), job, nil)
			if after := (*refs)[0]; after.Version != before.Version || after.Object != nil && after.Object.Digest != before.Object.Digest {
				t.Errorf("%s: a copy means %+v", name, after)
			}
		}
	}
}

// No request brings a volume to where another project or user has theirs.
func TestVolumesAreNobodyElses(t *testing.T) {
	job := &structs.Job{Project: "vision", User: "li", Volumes: []structs.DataRef{{Name: "scratch", Object: &structs.DataPick{Project: "speech", Owner: "mei"}}}}
	if problems := fixData(catalogue(t).store.Snapshot(), job, nil); len(problems) != 0 || job.Volumes[0].Object != nil {
		t.Errorf("%v, %+v", problems, job.Volumes[0].Object)
	}
}

// A job that says nothing of others keeps what is private to itself, and says so.
func TestPrivateDataNarrowsJobs(t *testing.T) {
	s := catalogue(t)
	job := &structs.Job{Project: "vision", User: "li", Access: structs.DefaultAccess, Datasets: []structs.DataRef{{Name: "own"}}}
	chosen := []structs.Default{{Path: "access", Value: structs.DefaultAccess}}
	if problems := fixData(s.store.Snapshot(), job, chosen); len(problems) != 0 || job.Access != structs.AccessNone || chosen[0].Value != structs.AccessNone {
		t.Errorf("%v, access %s, chosen %v", problems, job.Access, chosen)
	}
}

// Where sharing is switched off, nobody uses what others own, but for what
// administrators publish.
func TestSharingOffHoldsForData(t *testing.T) {
	s := catalogue(t)
	object := s.store.Snapshot().Data(structs.DataID{Project: "vision", Kind: "dataset", Name: "cifar10"})
	may := func(project, user string) bool { return MayUseData(s.store.Snapshot(), project, user, object) }
	if !may("vision", "mei") || may("speech", "mei") || may("vision", "") != true {
		t.Error("data of the project is not the project's")
	}
	s.apply(structs.CommandProjectPut, &structs.ProjectPut{Project: structs.Project{Name: "vision", NoSharing: true}})
	if may("vision", "mei") || !may("vision", "li") {
		t.Error("sharing is off and does not count")
	}
	published := *object
	published.Published = true
	if !MayUseData(s.store.Snapshot(), "speech", "mei", &published) {
		t.Error("what is published is not there")
	}
}

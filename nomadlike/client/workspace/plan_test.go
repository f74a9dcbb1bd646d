package workspace

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"nomadlike/internal/golden"
	"nomadlike/nomadlike/structs"
)

// storages of the tests: one tree for what is shared, one directory for each user.
func storages() []Storage {
	return []Storage{
		{Name: "nas", Path: "/nas/{kind}/{project}", Serves: []string{structs.StorageAlgorithm, structs.StorageDataset}, ReadOnly: true},
		{Name: "models", Path: "/models/{from}/{name}/v{version}", Serves: []string{structs.StorageModel}},
		{Name: "home", Path: "/home/{user}"},
		{Name: "frozen", Path: "/frozen", ReadOnly: true},
		{Name: "mirror", Path: "/{project}/{kind}", Remote: true},
		{Name: "bucket", Path: "/", Remote: true},
	}
}

func describe(places []Place, err error) string {
	var b strings.Builder
	for _, p := range places {
		fmt.Fprintf(&b, "%s\n  %s (below %s, given %s) of %s", p.TaskPath, p.Path, p.Root, p.Given, p.Storage)
		if p.ReadOnly {
			b.WriteString(" read-only")
		}
		if p.Make {
			b.WriteString(" made")
		}
		if p.Prepare {
			b.WriteString(" prepared")
		}
		if p.Remote {
			b.WriteString(" remote")
		}
		if p.Single {
			b.WriteString(" one file " + p.SHA256)
		}
		if p.Part != "" {
			b.WriteString(" its " + p.Part)
		}
		b.WriteByte('\n')
	}
	if err != nil {
		fmt.Fprintf(&b, "error: %v\n", err)
	}
	return b.String()
}

// Named data lies where its own project and owner have it, whoever uses it, and a
// registered directory has no number.
func TestPlanOfNamedData(t *testing.T) {
	disks := []Storage{{Name: "nas", Path: "/nas/{project}/{kind}/{from}/{name}/{version}"}, {Name: "home", Path: "/home/{user}/{kind}"}}
	job := &structs.Job{Name: "digits", Project: "vision", User: "li", Datasets: []structs.DataRef{
		{Name: "cifar10", Version: 2, Storage: "nas", ReadOnly: true, Object: &structs.DataPick{Project: "vision", Owner: "li"}},
		{Name: "words", Version: 1, Storage: "nas", ReadOnly: true, Prepare: true, From: structs.FromFavorite, Object: &structs.DataPick{Project: "speech", Owner: "mei", Digest: "sha256:" + strings.Repeat("ab", 32)}},
		{Name: "talks", Version: 3, Storage: "home", ReadOnly: true, Prepare: true, Object: &structs.DataPick{Project: "speech", Owner: "mei"}},
		{Name: "old", Version: 4, Storage: "home", Object: &structs.DataPick{Project: "speech", Owner: "mei", Source: "sets/old"}},
		{Name: "plain", Version: 5, Storage: "nas"},
	}}
	places, err := Plan(disks, job, 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, place := range places {
		got = append(got, place.TaskPath+" "+place.Path+" "+place.DataName)
	}
	want := []string{
		"/workspace/dataset/private/cifar10 /nas/vision/dataset/private/cifar10/2 dataset:vision/nas/private/cifar10/2",
		"/workspace/dataset/favorite/words/1 /nas/speech/dataset/private/words/1 dataset:speech/nas/private/words/1@abababababababab",
		"/workspace/dataset/private/talks /home/mei/dataset/talks/3 dataset:speech/home/private/talks/3~mei",
		"/workspace/dataset/private/old /home/mei/dataset/sets/old dataset:speech/home/private/old/4:sets/old~mei",
		"/workspace/dataset/private/plain /nas/vision/dataset/private/plain/5 vision/nas//plain/5",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
	node := &structs.Node{Data: []string{places[1].DataName, places[2].DataName}}
	if held := node.CopiesFor(job); held != 2 {
		t.Errorf("a node with copies of two is thought to have %d", held)
	}
}

func TestPlan(t *testing.T) {
	job := func(change func(*structs.Job)) *structs.Job {
		j := &structs.Job{Name: "digits", Project: "vision", User: "li"}
		change(j)
		return j
	}
	var b strings.Builder
	for _, c := range []struct {
		name string
		job  *structs.Job
		sub  int
	}{
		{"nothing", job(func(*structs.Job) {}), 0},
		{"everything", job(func(j *structs.Job) {
			j.Algorithms = []structs.DataRef{{Name: "resnet", Version: 3}}
			j.Datasets = []structs.DataRef{
				{Name: "cifar10", ReadOnly: true, Prepare: true}, {Name: "street", From: "favorite", Version: 2, Annotations: true},
			}
			j.Models = []structs.DataRef{
				{Name: "own"}, {Name: "liked", From: "favorite", Version: 7}, {Name: "base", From: "pretrained", Version: 1},
			}
			j.Volumes = []structs.DataRef{{Name: "scratch"}, {Name: "old", ReadOnly: true}}
			j.Mounts = []structs.Mount{{Target: "/mnt/user/li", Storage: "home"}, {Target: "/mnt/x", Storage: "home", Source: "a/b", ReadOnly: true}, {Target: "/y", Source: "/z"}}
			j.Output = "models/run7"
		}), 0},
		{"a sub-task of a batch", job(func(j *structs.Job) { j.Output, j.Batch = "runs", &structs.Batch{Count: 3} }), 2},
		{"storages by name", job(func(j *structs.Job) {
			j.Datasets = []structs.DataRef{{Name: "a", Storage: "home"}, {Name: "b", Storage: "frozen"}}
			j.Volumes = []structs.DataRef{{Name: "c", Storage: "frozen"}}
		}), 0},
		{"storages on servers", job(func(j *structs.Job) {
			j.Datasets = []structs.DataRef{
				{Name: "a", Storage: "mirror", Version: 2, Annotations: true},
				{Name: "b", Storage: "bucket", Source: "x/y.tar", SHA256: "00"},
				{Name: "c", Storage: "bucket", Source: "x/"},
				{Name: "d", Storage: "nas", Source: "of/li"},
			}
			j.Models = []structs.DataRef{{Name: "m", Storage: "bucket"}}
		}), 0},
		{"a volume on a server", job(func(j *structs.Job) { j.Volumes = []structs.DataRef{{Name: "a", Storage: "mirror"}} }), 0},
		{"a digest of a directory", job(func(j *structs.Job) { j.Datasets = []structs.DataRef{{Name: "a", Source: "b", SHA256: "00"}} }), 0},
		{"a storage that does not serve it", job(func(j *structs.Job) { j.Volumes = []structs.DataRef{{Name: "a", Storage: "nas"}} }), 0},
		{"an output nobody may write", job(func(j *structs.Job) { j.Output, j.OutputStorage = "a", "frozen" }), 0},
		{"a user who is no part of a path", job(func(j *structs.Job) { j.User, j.Output = "../li", "a" }), 0},
	} {
		fmt.Fprintf(&b, "== %s\n%s", c.name, describe(Plan(storages(), c.job, c.sub)))
	}
	golden.Assert(t, "testdata/plan.txt", b.String())
	if _, err := Plan(nil, job(func(j *structs.Job) { j.Output = "a" }), 0); structs.CodeOf(err) != structs.CodeUnavailable {
		t.Errorf("without storages: %v", err)
	}
}

func TestRemoteProblem(t *testing.T) {
	for template, want := range map[string]string{
		"/": "", "/a": "", "/{project}": "", "/a/{kind}/{name}": "", "": "agent.config.storage_prefix", "a": "agent.config.storage_prefix",
		"/a/": "agent.config.storage_prefix", "/a/../b": "agent.config.storage_prefix", "/{usr}": "agent.config.storage_word", "/x{name}": "agent.config.storage_name",
	} {
		if id, _ := RemoteProblem(template); id != want {
			t.Errorf("%q: %q, want %q", template, id, want)
		}
	}
}

func TestTemplateProblem(t *testing.T) {
	for template, want := range map[string]string{
		"/nas": "", "/nas/{user}": "", "/nas/a-{project}/{kind}/{name}/{version}": "", "/nas/v{version}": "",
		"": "agent.config.storage_path", "nas": "agent.config.storage_path", "/": "agent.config.storage_path", "/nas/": "agent.config.storage_path",
		"/nas/../x": "agent.config.storage_path", "/{user}": "agent.config.storage_path", "/nas/{usr}": "agent.config.storage_word",
		"/nas/}": "agent.config.storage_word", "/nas/x{name}": "agent.config.storage_name",
	} {
		if id, _ := TemplateProblem(template); id != want {
			t.Errorf("%q: %q, want %q", template, id, want)
		}
	}
}

// TestPlanStaysBelow: whatever a job is called and asks for, what it gets lies
// below what the administrator has given.
func TestPlanStaysBelow(t *testing.T) {
	words := rapid.SampledFrom([]string{"{user}", "{project}", "{kind}", "{from}", "{name}", "{version}", "a", "v{version}", "b-{user}"})
	texts := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"..", ".", "", "a/b", "../../etc", "/etc", "li"}))
	rapid.Check(t, func(t *rapid.T) {
		template := "/given/" + strings.Join(rapid.SliceOfN(words, 1, 4).Draw(t, "template"), "/")
		if id, _ := TemplateProblem(template); id != "" {
			t.Skip(id)
		}
		job := &structs.Job{
			Name: "n", User: texts.Draw(t, "user"), Project: texts.Draw(t, "project"),
			Datasets: []structs.DataRef{{Name: "set", Version: rapid.IntRange(0, 3).Draw(t, "version")}}, Output: "a/b",
		}
		places, err := Plan([]Storage{{Name: "s", Path: template}}, job, 0)
		if err != nil {
			return
		}
		for _, p := range places {
			for _, dir := range []string{p.Given, p.Root, p.Path} {
				if path.Clean(dir) != dir || dir != "/given" && !strings.HasPrefix(dir, "/given/") {
					t.Fatalf("%s: %+v", template, p)
				}
			}
			if p.Path != p.Root && !strings.HasPrefix(p.Path, p.Root+"/") || !strings.Contains(p.Path, "set") && !strings.Contains(p.Path, "a/b") {
				t.Fatalf("%s: %+v", template, p)
			}
		}
	})
}

// TestHolds: an output lies below a storage of the node, or nowhere.
func TestHolds(t *testing.T) {
	all := []Storage{
		{Name: "nas", Path: "/nas/{kind}/a-{project}/v{version}/{name}/x"},
		{Name: "home", Path: "/home/{user}"},
		{Name: "[a]", Path: "/b[a]*"},
		{Name: "sets", Path: "/sets", Serves: []string{structs.StorageDataset}},
		{Name: "far", Path: "/far", Remote: true},
	}
	for root, want := range map[string]bool{
		"/nas/output/a-vision": true, "/home/li": true, "/b[a]*": true,
		"/": false, "": false, "/nas": false, "/nas/output/vision": false, "/nas/output/a-vision/x": false, "/home": false, "/home/li/x": false,
		"/home/../etc": false, "/home/li/": false, "/ba": false, "/sets": false, "/far": false, "home/li": false,
	} {
		if ServesOutput(all, root) != want {
			t.Errorf("%q: %v", root, !want)
		}
	}
	job := &structs.Job{Name: "n", User: "li", Project: "vision", Output: "a/b"}
	for i := range all[:3] {
		places, err := Plan(all[i:i+1], job, 0)
		if err != nil || !ServesOutput(all, places[0].Root) {
			t.Errorf("%+v, %v", places, err)
		}
	}
}

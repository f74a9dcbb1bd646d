package httpapi

import (
	"fmt"
	"strings"
	"testing"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// The catalogue says of each name what most nodes have, that a tag has moved, and whose
// word it is what it is for.
func TestCatalogueOf(t *testing.T) {
	of := func(name string, images ...structs.NodeImage) holding {
		return holding{node: &structs.Node{ID: "id-" + name, Name: name, Pool: "lab"}, images: images}
	}
	image := func(id, scope string, names ...string) structs.NodeImage {
		out := structs.NodeImage{ID: id, Names: names, Bytes: int64(len(id)), Digests: []string{"other/x@sha256:" + strings.Repeat("1", 64), "lab/train@sha256:" + strings.Repeat("2", 64)}}
		if scope != "" {
			out.Scope = []string{scope}
		}
		return out
	}
	holdings := []holding{
		of("n1", image("sha256:a", "", "lab/train:1", "lab/train:latest"), image("sha256:c", "inference", "lab/serve:1")),
		of("n2", image("sha256:bb", "training", "lab/train:1")),
		of("n3", image("sha256:bb", "training", "lab/train:1"), image("sha256:d", "")),
	}
	declared := []*structs.ImageRecord{
		{Name: "lab/planned", ImageTraits: structs.ImageTraits{Devices: []string{"ascend"}}, SetBy: "ada"},
		{Name: "lab/serve:1", ImageTraits: structs.ImageTraits{Scope: []string{"training"}}, SetBy: "ada"},
	}
	record := func(name string) *structs.ImageRecord {
		for _, one := range declared {
			if one.Name == name {
				return one
			}
		}
		return nil
	}
	show := func(entries []api.ImageEntry) string {
		var lines []string
		for _, e := range entries {
			lines = append(lines, fmt.Sprintf("%s %s %d bytes, %d on %d nodes, %v %v by %q %s, digest %.9s, %d shown", e.Name, e.ID, e.Bytes, e.Variants, e.Count, e.Scope, e.Devices, e.From, e.SetBy, e.Digest, len(e.Nodes)))
		}
		return strings.Join(lines, "\n")
	}
	want := strings.Join([]string{
		`lab/planned  0 bytes, 0 on 0 nodes, [] [ascend] by "declared" ada, digest , 0 shown`,
		`lab/serve:1 sha256:c 8 bytes, 1 on 1 nodes, [training] [] by "declared" ada, digest , 0 shown`,
		`lab/train:1 sha256:bb 9 bytes, 2 on 3 nodes, [training] [] by "labels" , digest sha256:22, 0 shown`,
		`lab/train:latest sha256:a 8 bytes, 1 on 1 nodes, [] [] by "" , digest sha256:22, 0 shown`,
	}, "\n")
	if got := show(catalogueOf(holdings, declared, record, "")); got != want {
		t.Errorf("the catalogue is\n%s\nwant\n%s", got, want)
	}
	if got := show(catalogueOf(holdings, declared, record, "lab/train:1")); !strings.HasSuffix(got, "3 shown") || strings.Contains(got, "\n") {
		t.Errorf("one image is %s", got)
	}
	if got := catalogueOf(nil, nil, record, "lab/absent:1"); len(got) != 0 || got == nil {
		t.Errorf("an image that nobody knows is %+v", got)
	}
}

// One node whose image has nothing against a job is enough; what came with credentials
// is not told of.
func TestProblemsOfLabels(t *testing.T) {
	job := &structs.Job{Type: structs.JobTypeTraining, Task: structs.Task{Driver: structs.DriverDocker, Image: "lab/x:1"}}
	on := func(node, scope string, private bool) holding {
		image := structs.NodeImage{Names: []string{"lab/x:1"}, Private: private}
		image.Scope = []string{scope}
		return holding{node: &structs.Node{Name: node}, images: []structs.NodeImage{image}}
	}
	for name, c := range map[string]struct {
		holdings []holding
		want     string
	}{
		"nobody has it":      {nil, ""},
		"all refuse":         {[]holding{on("n1", "inference", false), on("n2", "development", false)}, "job.image_scope_label n2"},
		"one takes it":       {[]holding{on("n1", "inference", false), on("n2", "training", false)}, ""},
		"the first takes it": {[]holding{on("n1", "training", false), on("n2", "inference", false)}, ""},
		"it is private":      {[]holding{on("n1", "inference", true)}, ""},
	} {
		got := ""
		for _, problem := range problemsOf(c.holdings, job) {
			got += problem.ID + " " + problem.Params["node"]
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

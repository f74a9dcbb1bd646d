package structs

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStorageNeeds(t *testing.T) {
	if needs := new(Job).StorageNeeds(); needs != nil {
		t.Errorf("of a job without data: %q", needs)
	}
	job := &Job{
		Algorithms: []DataRef{{Name: "a"}}, Datasets: []DataRef{{Name: "x"}, {Name: "y"}, {Name: "z", Storage: "nas"}},
		Models: []DataRef{{Name: "m", Storage: "nas"}}, Volumes: []DataRef{{Name: "v"}},
		Mounts: []Mount{{Target: "/a", Source: "/b"}, {Target: "/c", Storage: "home"}}, Output: "o", OutputStorage: "big",
	}
	want := []string{"algorithm/", "dataset/", "dataset/nas", "model/nas", "mount/home", "output/big", "volume/"}
	if diff := cmp.Diff(want, job.StorageNeeds()); diff != "" {
		t.Error(diff)
	}
	node := &Node{Storages: []string{"dataset/nas", "mount/home", "volume/v"}}
	for need, has := range map[string]bool{
		"dataset/": true, "dataset/nas": true, "dataset/other": false, "volume/": true, "model/": false, "mount/home": true, "data/": false,
	} {
		if node.Stores(need) != has {
			t.Errorf("%s: %v", need, !has)
		}
	}
}

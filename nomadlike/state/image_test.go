package state

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// imageCommands applies commands of somebody to a store.
type imageCommands struct {
	t     *testing.T
	store *Store
}

func (c imageCommands) apply(kind structs.CommandKind, body any) *structs.Error {
	c.t.Helper()
	command, err := wire.EncodeCommand(kind, structs.UnixNano(c.store.Snapshot().Index())+1, "ada", body)
	if err != nil {
		c.t.Fatal(err)
	}
	return c.store.Apply(c.store.Snapshot().Index()+1, command).Err
}

// What is declared of images says by whom, is found for the images of jobs, lives in
// stored states, and has a bound.
func TestImageRecords(t *testing.T) {
	c := imageCommands{t, New()}
	put := func(name string, scope ...string) *structs.Error {
		return c.apply(structs.CommandImagePut, &structs.ImagePut{Image: structs.ImageRecord{Name: name, ImageTraits: structs.ImageTraits{Scope: scope}, SetBy: "eve"}})
	}
	for _, name := range []string{"lab/train", "lab/train:2"} {
		if err := put(name, "training"); err != nil {
			t.Fatal(err)
		}
	}
	for _, bad := range []string{"", "a b", "docker.io/library/x"} {
		if err := put(bad); err == nil || err.ID != "state.image_malformed" {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if err := put("lab/x", "serving"); err == nil || err.ID != "state.image_malformed" {
		t.Errorf("a scope that is none: %v", err)
	}
	for image, want := range map[string]string{
		"lab/train": "lab/train", "docker.io/lab/train:1": "lab/train", "lab/train:2": "lab/train:2", "lab/other": "", "": "", "a b": "",
		"lab/train:2@sha256:" + strings.Repeat("0", 64): "lab/train:2",
	} {
		record := c.store.Snapshot().ImageRecordFor(image)
		if got := record; got == nil && want != "" || got != nil && got.Name != want {
			t.Errorf("%q is judged by %+v, want %q", image, got, want)
		}
		if record != nil && (record.SetBy != "ada" || record.SetAt == 0 || record.ModifyIndex == 0) {
			t.Errorf("it is declared by %+v", record)
		}
	}
	var stored bytes.Buffer
	if err := c.store.Snapshot().Persist(&stored); err != nil {
		t.Fatal(err)
	}
	restored := New()
	if err := restored.Restore(&stored); err != nil {
		t.Fatal(err)
	}
	if restored.Snapshot().Hash() != c.store.Snapshot().Hash() || restored.Snapshot().ImageRecord("lab/train:2") == nil {
		t.Error("what was restored is another state")
	}
	forget := func(name string) *structs.Error {
		return c.apply(structs.CommandImagePut, &structs.ImagePut{Image: structs.ImageRecord{Name: name}, Forget: true})
	}
	if err := forget("lab/train:2"); err != nil || c.store.Snapshot().ImageRecordFor("lab/train:2").Name != "lab/train" {
		t.Errorf("forgotten: %v", err)
	}
	if err := forget("lab/train:2"); err == nil || err.ID != "state.image_unknown" {
		t.Errorf("forgotten again: %v", err)
	}
	for i := range structs.ImageRecordsMax - 1 {
		if err := put(fmt.Sprintf("lab/i%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := put("lab/over"); err == nil || err.ID != "state.too_many" {
		t.Errorf("one too many: %v", err)
	}
	if err := put("lab/train", "inference"); err != nil {
		t.Errorf("one that is there, at the bound: %v", err)
	}
}

// What is done with images stands in the events of the node, and what was made of a
// job's container in those of the job.
func TestImageTold(t *testing.T) {
	c := imageCommands{t, New()}
	if err := c.apply(structs.CommandNodeRegister, &structs.NodeRegister{Node: testNode(1)}); err != nil {
		t.Fatal(err)
	}
	if err := c.apply(structs.CommandJobSubmit, &structs.JobSubmit{Job: testJob("a", 1)}); err != nil {
		t.Fatal(err)
	}
	for _, told := range []structs.ImageTold{
		{Act: structs.ImagePull, NodeID: "node-1", Image: "lab/train:1"},
		{Act: structs.ImageSave, NodeID: "node-1", JobID: "job-a", Image: "nomadlike/default/a:1", Bytes: 42},
		{Act: structs.ImagePush, NodeID: "node-1", JobID: "job-a", Image: "nomadlike/default/a:1", To: "registry.lab/a:1"},
	} {
		if err := c.apply(structs.CommandImageTold, &told); err != nil {
			t.Errorf("%+v: %v", told, err)
		}
	}
	for _, bad := range []structs.ImageTold{
		{Act: structs.ImagePull, NodeID: "node-2", Image: "x"},
		{Act: structs.ImageSave, NodeID: "node-1", JobID: "job-b", Image: "x"},
		{Act: structs.ImagePull, NodeID: "node-1", JobID: "job-b", Image: "x"},
		{Act: "run", NodeID: "node-1", Image: "x"},
		{Act: structs.ImagePull, NodeID: "node-1", Image: strings.Repeat("x", structs.ImageNameMax+1)},
	} {
		if err := c.apply(structs.CommandImageTold, &bad); err == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
	var got []string
	for _, event := range c.store.Snapshot().meta().ring {
		if strings.Contains(event.ID, ".image_") {
			got = append(got, fmt.Sprintf("%s node=%s job=%s by=%s %s %s", event.ID, event.NodeID, event.JobID, event.By, event.Params["image"], event.Params["to"]))
		}
	}
	want := []string{
		"event.node.image_pull node=node-1 job= by=ada lab/train:1 ",
		"event.job.image_save node= job=job-a by=ada nomadlike/default/a:1 ",
		"event.job.image_push node= job=job-a by=ada nomadlike/default/a:1 registry.lab/a:1",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("told is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

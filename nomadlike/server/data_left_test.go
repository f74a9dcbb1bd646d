package server

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// TestLeftUploads: of what a sweep finds, an upload that the log goes on with is left alone,
// and what was made of one that the log has never had goes with it. A storage is looked at
// by nodes that are there and know how.
func TestLeftUploads(t *testing.T) {
	s := catalogue(t)
	s.now = 1 + structs.UnixNano(structs.DataUploadFor.Std())
	if due := dueData(s.store.Snapshot(), s.now-1); len(due) > 0 {
		t.Errorf("too early: %+v", due)
	}
	due := dueData(s.store.Snapshot(), s.now)
	if len(due) != 1 || len(due[0].body.(*structs.DataExpire).Uploads) != 6 {
		t.Fatalf("over: %+v", due)
	}
	one := *due[0].body.(*structs.DataExpire)
	one.Uploads = slices.DeleteFunc(one.Uploads, func(u structs.DataUpload) bool { return u.UploadID != "late2" })
	s.apply(structs.CommandDataExpire, &one)
	got := LeftUploads(s.store.Snapshot(), []string{"late1", "late2", "u0-0", "never"})
	if want := []LeftUpload{{"late2", true}, {"u0-0", false}, {"never", true}}; !slices.Equal(got, want) {
		t.Errorf("left: %+v", got)
	}
	node := func(name string, protocol int, storages ...string) {
		s.apply(structs.CommandNodeRegister, &structs.NodeRegister{Node: structs.Node{
			ID: name, Name: name, RPCAddr: "10.0.0.1:1", Drivers: []string{"exec"}, Capacity: structs.Capacity{CPU: 8, Memory: 1 << 40}, Storages: storages,
			Attributes: map[string]string{structs.AttrProtocol: strconv.Itoa(protocol)},
		}})
	}
	node("a", wire.ProtocolDataLeft, "dataset/nas", "output/nas", "model/nas")
	node("b", wire.ProtocolDataLeft-1, "dataset/nas", "algorithm/old")
	node("c", wire.ProtocolDataLeft, "dataset/nas")
	text := ""
	for _, one := range SweptStorages(s.store.Snapshot()) {
		text += fmt.Sprint(one.Kind, "/", one.Storage, ":")
		for _, node := range one.Nodes {
			text += node.ID
		}
		text += " "
	}
	if text != "dataset/nas:ac model/nas:a " {
		t.Error(text)
	}
}

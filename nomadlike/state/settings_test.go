package state

import (
	"bytes"
	"testing"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// What is set for the cluster says who set it, each by itself, lives in stored states,
// and can be what a decision rests on.
func TestSettings(t *testing.T) {
	store := New()
	if settings := store.Snapshot().Settings(); settings != nil || settings.Version() != 0 {
		t.Fatalf("before anything was set: %+v", settings)
	}
	by := "ada"
	put := func(settings structs.Settings) structs.Settings {
		t.Helper()
		command, err := wire.EncodeCommand(structs.CommandSettingsPut, structs.UnixNano(store.Snapshot().Index())+1, by, &structs.SettingsPut{Settings: settings})
		if err != nil {
			t.Fatal(err)
		}
		if result := store.Apply(store.Snapshot().Index()+1, command); result.Err != nil {
			t.Fatal(result.Err)
		}
		return *store.Snapshot().Settings()
	}
	first := put(structs.Settings{NoSharing: true, SharingBy: "eve", CeilingsBy: "eve"})
	if !first.NoSharing || first.SharingBy != "ada" || first.CeilingsBy != "" || first.ModifyIndex == 0 {
		t.Errorf("sharing: %+v", first)
	}
	by = "bob"
	next := first
	next.Ceilings.Nodes = 4
	second := put(next)
	if second.SharingBy != "ada" || second.SharingAt != first.SharingAt || second.CeilingsBy != "bob" || second.Ceilings.Nodes != 4 {
		t.Errorf("ceilings: %+v", second)
	}
	if again := put(second); again.ModifyIndex != second.ModifyIndex {
		t.Errorf("nothing changed, and the record is another: %+v", again)
	}
	var stored bytes.Buffer
	if err := store.Snapshot().Persist(&stored); err != nil {
		t.Fatal(err)
	}
	restored := New()
	if err := restored.Restore(&stored); err != nil {
		t.Fatal(err)
	}
	if got := restored.Snapshot().Settings(); got == nil || *got != second {
		t.Errorf("restored: %+v", got)
	}
}

package httpapi

import (
	"errors"
	"slices"
	"testing"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

func TestMaintenanceIsPlannedByOperators(t *testing.T) {
	h := newHarness(t)
	h.node("machine-1", 8)
	h.node("machine-2", 8)
	operator, user, other := h.as("operator", "", "olga"), h.as("user", "lab", "uma"), h.as("user", "shop", "otto")
	now := structs.At(h.replica.Now())
	hour := structs.Duration(time.Hour)
	in := func(d structs.Duration) structs.UnixNano { return now.Add(d.Std()) }
	id := h.start(user, hello("true"))

	why := "new firmware"
	if _, err := user.AddMaintenance(t.Context(), api.MaintenanceRequest{All: true, For: hour}); structs.CodeOf(err) != structs.CodeForbidden {
		t.Errorf("a user closes all nodes: %v", err)
	}
	made, err := operator.AddMaintenance(t.Context(), api.MaintenanceRequest{
		Nodes: []string{"machine-2", "machine-1", "machine-1"}, Start: in(structs.Duration(time.Second)), End: in(5 * hour), Reason: &why,
	})
	if err != nil {
		t.Fatal(err)
	}
	window := made.Window
	if !slices.Equal(window.Names, []string{"machine-1", "machine-2"}) || window.End != in(5*hour) || window.By != "olga" || window.Reason != why {
		t.Errorf("the window is %+v", window)
	}
	if len(window.Running) != 1 || window.Running[0].JobID != id || window.Running[0].Limit != 0 {
		t.Errorf("into it run %+v", window.Running)
	}
	// Everybody sees when nodes are closed, and nobody jobs that are not theirs.
	list, _, err := other.Maintenance(t.Context(), nil)
	if err != nil || len(list.Windows) != 1 || len(list.Windows[0].Running) != 0 || list.Windows[0].Others != 1 {
		t.Errorf("others see %+v, %v", list, err)
	}

	past, short, long := in(-2*hour), in(hour/2), "x"
	for len(long) <= structs.MaintenanceReasonMax {
		long += long
	}
	for name, c := range map[string]struct {
		request api.MaintenanceRequest
		id      string
		nearest string
	}{
		"no nodes":        {api.MaintenanceRequest{For: hour}, "agent.maintenance_no_nodes", ""},
		"nodes twice":     {api.MaintenanceRequest{All: true, Pool: "default", For: hour}, "agent.maintenance_nodes_twice", ""},
		"an unknown node": {api.MaintenanceRequest{Nodes: []string{"machin-2"}, For: hour}, "agent.maintenance_node_nearest", "machine-2"},
		"a strange node":  {api.MaintenanceRequest{Nodes: []string{"zzzzz"}, For: hour}, "agent.maintenance_node", ""},
		"an unknown pool": {api.MaintenanceRequest{Pool: "defaul", For: hour}, "agent.maintenance_pool_nearest", "default"},
		"a strange pool":  {api.MaintenanceRequest{Pool: "zzzzz", For: hour}, "agent.maintenance_pool", ""},
		"in the past":     {api.MaintenanceRequest{All: true, Start: past, For: hour}, "agent.maintenance_past", ""},
		"far away":        {api.MaintenanceRequest{All: true, Start: in(367 * 24 * hour), For: hour}, "agent.maintenance_far", ""},
		"no end":          {api.MaintenanceRequest{All: true}, "agent.maintenance_endless", ""},
		"two ends":        {api.MaintenanceRequest{All: true, End: in(hour), For: hour}, "agent.maintenance_end_twice", ""},
		"a negative span": {api.MaintenanceRequest{All: true, For: -hour}, "agent.maintenance_short", ""},
		"backward":        {api.MaintenanceRequest{All: true, Start: in(hour), End: short}, "agent.maintenance_backward", ""},
		"for ever":        {api.MaintenanceRequest{All: true, For: 91 * 24 * hour}, "agent.maintenance_long", ""},
		"a long reason":   {api.MaintenanceRequest{All: true, For: hour, Reason: &long}, "agent.maintenance_reason", ""},
	} {
		_, err := operator.AddMaintenance(t.Context(), c.request)
		var refused *structs.Error
		if !errors.As(err, &refused) || refused.Code != structs.CodeInvalid || refused.ID != c.id || refused.Params["nearest"] != c.nearest {
			t.Errorf("%s: %v, want %s", name, err, c.id)
		}
	}

	// A window moves as a whole; one that has begun keeps its start, and may be extended.
	changed, err := operator.ChangeMaintenance(t.Context(), window.ID[:4], api.MaintenanceRequest{Start: in(2 * hour)})
	if err != nil || changed.Window.Start != in(2*hour) || changed.Window.End != in(7*hour-structs.Duration(time.Second)) || changed.Window.Reason != why {
		t.Errorf("moved: %+v, %v", changed, err)
	}
	keep := true
	if _, err := operator.AddMaintenance(t.Context(), api.MaintenanceRequest{Pool: "default", For: hour, KeepRunning: &keep}); err != nil {
		t.Fatal(err)
	}
	list, _, err = operator.Maintenance(t.Context(), nil)
	if err != nil || len(list.Windows) != 2 || list.Windows[1].ID != window.ID {
		t.Fatalf("by start: %+v, %v", list, err)
	}
	first := list.Windows[0].ID
	h.submit(structs.CommandMaintenanceStep, &structs.MaintenanceStep{ID: first, Step: structs.MaintenanceBegin})
	if _, err := operator.ChangeMaintenance(t.Context(), first, api.MaintenanceRequest{Start: in(hour)}); structs.CodeOf(err) != structs.CodeInvalid {
		t.Errorf("the start of one that has begun is moved: %v", err)
	}
	if changed, err = operator.ChangeMaintenance(t.Context(), first, api.MaintenanceRequest{For: 3 * hour}); err != nil || changed.Window.End != in(3*hour) || !changed.Window.Begun {
		t.Errorf("extended: %+v, %v", changed, err)
	}
	if _, err := operator.ChangeMaintenance(t.Context(), first, api.MaintenanceRequest{End: past}); structs.CodeOf(err) != structs.CodeInvalid {
		t.Errorf("it ends before it began: %v", err)
	}
	if node, _, err := user.Node(t.Context(), "machine-1", nil); err != nil || node.Maintained() == nil || node.Schedulable() {
		t.Errorf("the node says %+v, %v", node.Maintenance, err)
	}
	if _, err := user.EndMaintenance(t.Context(), first); structs.CodeOf(err) != structs.CodeForbidden {
		t.Errorf("a user ends it: %v", err)
	}
	if _, err := operator.EndMaintenance(t.Context(), first); err != nil {
		t.Error(err)
	}
	if _, err := operator.EndMaintenance(t.Context(), "nowhere"); structs.CodeOf(err) != structs.CodeNotFound {
		t.Errorf("an unknown window: %v", err)
	}
}

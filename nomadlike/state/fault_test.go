package state

import (
	"fmt"
	"strings"
	"testing"

	"nomadlike/nomadlike/structs"
)

// TestFaultHistory registers a node again and again, as its agent does whenever
// something about its machine has changed.
func TestFaultHistory(t *testing.T) {
	store := New()
	index := uint64(0)
	register := func(faults ...structs.NodeFault) structs.ApplyResult {
		index++
		node := testNode(0)
		node.Faults = faults
		result := store.Apply(index, encode(structs.CommandNodeRegister, structs.UnixNano(index), &structs.NodeRegister{Node: node}))
		return result
	}
	lost := func(link string, unfit bool) structs.NodeFault {
		return structs.NodeFault{Name: "link/" + link, Reason: structs.NewReason("device.link_lost", "link", link, "look", index), Unfit: unfit}
	}
	settling := structs.NodeFault{Name: "link/eth0", Reason: structs.NewReason("device.link_settling", "link", "eth0")}
	register()
	register(lost("eth0", true))
	if node := store.Snapshot().Node("node-0"); node.Schedulable() {
		t.Error("a node that is not fit takes new work")
	}
	register(lost("eth0", true)) // another look
	register(lost("eth0", true), lost("eth1", false))
	register(settling, lost("eth1", false))
	register(settling)
	register()
	if node := store.Snapshot().Node("node-0"); !node.Schedulable() {
		t.Error("a node without faults takes no new work")
	}
	var text strings.Builder
	for _, e := range store.Snapshot().NodeEvents("node-0", "") {
		cause := "-"
		if e.Cause != nil {
			cause = e.Cause.ID
		}
		fmt.Fprintf(&text, "%d %s %q %s %s\n", e.Index, strings.TrimPrefix(e.ID, "event.node."), e.Severity, e.Params["fault"], cause)
	}
	want := `1 registered ""  -
2 unfit "error" link/eth0 device.link_lost
4 fault "warn" link/eth1 device.link_lost
5 fault "warn" link/eth0 device.link_settling
6 fault_over "" link/eth1 -
7 fault_over "" link/eth0 -
`
	if text.String() != want {
		t.Errorf("history is\n%swant\n%s", text.String(), want)
	}
	for name, faults := range map[string][]structs.NodeFault{
		"twice": {settling, settling}, "no reason": {{Name: "processes"}}, "no name": {{Reason: settling.Reason}},
		"too many": make([]structs.NodeFault, structs.NodeFaultsMax+1),
	} {
		for i := range faults {
			if name == "too many" {
				faults[i] = structs.NodeFault{Name: fmt.Sprint(i), Reason: settling.Reason}
			}
		}
		if result := register(faults...); result.Err == nil {
			t.Errorf("%s: the registration is taken", name)
		}
	}
}

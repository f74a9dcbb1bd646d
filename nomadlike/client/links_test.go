package client

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device/rdma"
)

// What a node says of its network cards, while one works and after its loss.
func TestLinkAttributes(t *testing.T) {
	card := func(state string) rdma.Inventory {
		return rdma.Inventory{Cards: []rdma.Card{{Name: "mlx5_0", Ports: []rdma.Port{{
			Number: 1, State: state, LinkLayer: "InfiniBand", Rate: 400e9, Nets: []string{"ib0"},
		}}}}}
	}
	var watch rdma.Watch
	now := time.Unix(0, 0)
	for _, step := range []struct {
		what     string
		seen     rdma.Inventory
		declared bool
		want     map[string]string
		able     bool
	}{
		{"works", card("ACTIVE"), false, map[string]string{attrRDMACards: "mlx5_0:1", attrRDMALayer: "InfiniBand"}, true},
		{"is lost", card("DOWN"), true, map[string]string{faultPrefix + "mlx5_0:1": "device.link_lost"}, false},
		{"has vanished", rdma.Inventory{}, true, map[string]string{faultPrefix + "mlx5_0:1": "device.link_gone"}, false},
	} {
		faults := watch.Step(step.seen, now)
		got := linkAttributes(step.seen, faults)
		delete(got, attrRDMANets) // by interfaces, of which this machine has none
		if diff := cmp.Diff(step.want, got); diff != "" || hasRDMA(step.seen, faults, step.declared) != step.able {
			t.Errorf("the card %s: (-want +got)\n%s able %v", step.what, diff, hasRDMA(step.seen, faults, step.declared))
		}
	}
	attributes := map[string]string{attrRDMACards: "mlx5_0:1"}
	if got := rdmaDefaults(&structs.Resources{RDMA: true}, attributes)["NCCL_IB_HCA"]; got != "mlx5_0:1" {
		t.Errorf("a job with RDMA gets %q", got)
	}
	if got := rdmaDefaults(&structs.Resources{}, attributes); got != nil {
		t.Errorf("a job without RDMA gets %v", got)
	}
}

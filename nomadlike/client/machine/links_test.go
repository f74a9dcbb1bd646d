package machine

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nomadlike/nomadlike/launch"
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
		{"works", card("ACTIVE"), false, map[string]string{launch.AttrRDMACards: "mlx5_0:1", launch.AttrRDMALayer: "InfiniBand"}, true},
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
	attributes := map[string]string{launch.AttrRDMACards: "mlx5_0:1"}
	want := map[string]string{"NCCL_IB_HCA": "mlx5_0:1", "NCCL_IB_TIMEOUT": "22", "NCCL_IB_RETRY_CNT": "7", "NCCL_IB_DISABLE": "0"}
	if diff := cmp.Diff(want, launch.RDMADefaults(&structs.Resources{RDMA: true}, attributes, false)); diff != "" {
		t.Errorf("a job with RDMA gets something else (-want +got):\n%s", diff)
	}
	for _, c := range []struct {
		layer    string
		seesNode bool
		want     map[string]string
	}{
		{"InfiniBand", false, map[string]string{"NCCL_IB_DISABLE": "1"}},
		{"InfiniBand", true, nil}, // it sees the cards: the environment's check would warn
		{"Ethernet", false, nil},  // RoCE is not switched off
	} {
		attributes[launch.AttrRDMALayer] = c.layer
		if diff := cmp.Diff(c.want, launch.RDMADefaults(&structs.Resources{}, attributes, c.seesNode)); diff != "" {
			t.Errorf("a job without RDMA on %s (-want +got):\n%s", c.layer, diff)
		}
	}
}

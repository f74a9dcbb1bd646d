package server

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"nomadlike/nomadlike/structs"
)

func TestCardsOfARank(t *testing.T) {
	npu := func(id string, index int, attrs ...string) structs.Device {
		d := structs.Device{ID: id, Index: index, Kind: structs.DeviceKindAscend, Attrs: map[string]string{}}
		for i := 0; i+1 < len(attrs); i += 2 {
			d.Attrs[attrs[i]] = attrs[i+1]
		}
		return d
	}
	node := &structs.Node{Devices: []structs.Device{
		npu("npu-b", 1, structs.DeviceAttrLogicID, "1", structs.DeviceAttrIP, "192.168.20.1"),
		npu("npu-a", 0, structs.DeviceAttrLogicID, "0", structs.DeviceAttrIP, "192.168.10.1"),
		npu("npu-c", 2, structs.DeviceAttrLogicID, "2"),
		npu("declared", 3),
		{ID: "gpu", Kind: "nvidia/gpu"},
	}}
	for _, c := range []struct {
		name string
		ids  []string
		want []structs.Card
	}{
		{"in the order of their numbers", []string{"npu-b", "npu-a"}, []structs.Card{
			{ID: "npu-a", Index: 0, IP: "192.168.10.1"}, {ID: "npu-b", Index: 1, IP: "192.168.20.1"},
		}},
		{"without a port of its own", []string{"npu-c"}, []structs.Card{{ID: "npu-c", Index: 2}}},
		{"without facts", []string{"npu-a", "declared"}, nil},
		{"another vendor's", []string{"gpu"}, nil},
		{"none", nil, nil},
	} {
		if diff := cmp.Diff(c.want, CardsOf(node, c.ids)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

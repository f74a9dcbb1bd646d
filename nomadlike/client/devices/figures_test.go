package devices

import (
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
)

// Parts of a card have what they have in common with it; one that is measured by
// itself has its own figures.
func TestFiguresOfParts(t *testing.T) {
	w := newDeviceWatch(map[string]device.Plugin{"nvidia": nil}, nil, nil, slog.New(slog.DiscardHandler))
	part := map[string]string{device.AttrParent: "GPU-1"}
	w.note("nvidia", device.Snapshot{Devices: []structs.Device{{ID: "GPU-1::1", Attrs: part}, {ID: "MIG-1", Attrs: part}, {ID: "GPU-2"}}})
	w.mu.stats["nvidia"] = device.Stats{Devices: []device.DeviceStats{
		{ID: "GPU-1", Gauges: map[string]float64{device.GaugeUtilization: 0.9, device.GaugeTemperature: 61, device.GaugePower: 650}, Processes: []device.Process{{PID: 7}}},
		{ID: "MIG-1", Gauges: map[string]float64{device.GaugeUtilization: 0.1}},
	}}
	got := make(map[string]map[string]float64)
	for id, one := range w.figures() {
		got[id] = one.Gauges
		if id == "GPU-1::1" && len(one.Processes) > 0 {
			t.Error("a part has the processes of the whole card")
		}
	}
	want := map[string]map[string]float64{
		"GPU-1":    {device.GaugeUtilization: 0.9, device.GaugeTemperature: 61, device.GaugePower: 650},
		"GPU-1::1": {device.GaugeUtilization: 0.9, device.GaugeTemperature: 61},
		"MIG-1":    {device.GaugeUtilization: 0.1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("figures (-want +got):\n%s", diff)
	}
}

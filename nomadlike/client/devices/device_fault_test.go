package devices

import (
	"log/slog"
	"testing"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
)

// A plugin that cannot look is a fault of the node, which takes other work; one that
// has only begun is none.
func TestBlindPluginIsAFault(t *testing.T) {
	w := newDeviceWatch(map[string]device.Plugin{"nvidia": nil, "ascend": nil}, nil, nil, slog.New(slog.DiscardHandler))
	w.note("ascend", device.Snapshot{Blind: structs.NewReason(deviceStarting, "plugin", "ascend")})
	w.note("nvidia", device.Snapshot{Blind: structs.NewReason("device.plugin_library", "plugin", "nvidia", "cause", "GLIBC_2.34")})
	faults := w.faults()
	if len(faults) != 1 || faults[0].Name != "plugin/nvidia" || faults[0].Unfit || faults[0].Reason.ID != "device.plugin_library" {
		t.Errorf("faults %+v", faults)
	}
	w.note("nvidia", device.Snapshot{Absent: structs.NewReason("device.absent")})
	if faults = w.faults(); len(faults) != 0 {
		t.Errorf("faults %+v", faults)
	}
}

package nvidia

import (
	"slices"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device/runtime"
)

// Present tells, without loading anything, whether this plugin is worth
// starting on the machine below root ("/" but in tests): nil when the driver is
// there, or a card. Otherwise the reason says what was looked for. A card
// without a driver is worth it, too: people are told why it is of no use.
func Present(root string) *structs.Reason {
	if runtime.Exists(root, "proc/driver/nvidia/version", "dev/nvidiactl") {
		return nil
	}
	// A virtual machine or a container may hide the rest.
	library := slices.ContainsFunc(libraryDirs(), func(dir string) bool { return runtime.Exists(root, dir+"/"+libraryDefault) })
	if buses := runtime.Cards(root, "0x10de", "0x0300", "0x0302", "0x0380"); buses != "" && !library {
		return structs.NewReason("device.nvidia_card_without_driver", "bus", buses)
	}
	if library {
		return nil
	}
	return structs.NewReason("device.nvidia_absent")
}

package nvidia

import (
	"os"
	"path/filepath"
	"strings"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device/pcie"
)

// Present tells, without loading anything, whether this plugin is worth
// starting on the machine below root ("/" but in tests): nil when the driver is
// there, or a card. Otherwise the reason says what was looked for. A card
// without a driver is worth it, too: people are told why it is of no use.
func Present(root string) *structs.Reason {
	for _, path := range []string{"proc/driver/nvidia/version", "dev/nvidiactl"} {
		if _, err := os.Stat(filepath.Join(root, path)); err == nil {
			return nil
		}
	}
	if buses := pcie.Vendors(root, "0x10de", "0x0300", "0x0302", "0x0380"); len(buses) > 0 {
		if hasLibrary(root) {
			return nil
		}
		return structs.NewReason("device.nvidia_card_without_driver", "bus", strings.Join(buses[:min(len(buses), 16)], ", "))
	}
	if hasLibrary(root) {
		return nil // a virtual machine or a container may hide the rest
	}
	return structs.NewReason("device.nvidia_absent")
}

func hasLibrary(root string) bool {
	for _, dir := range libraryDirs() {
		if _, err := os.Stat(filepath.Join(root, dir, libraryDefault)); err == nil {
			return true
		}
	}
	return false
}

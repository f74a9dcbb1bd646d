package ascend

import (
	"path/filepath"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device/runtime"
)

// Present tells, without loading anything, whether this plugin is worth
// starting on the machine below root ("/" but in tests): nil when the driver is
// there, or a card. Otherwise the reason says what was looked for.
func Present(root string) *structs.Reason {
	if runtime.Exists(root, append([]string{"dev/davinci_manager", "usr/local/Ascend/driver/version.info"}, libraryPaths()...)...) {
		return nil
	}
	// Huawei's cards call themselves accelerators.
	if buses := runtime.Cards(root, "0x19e5", "0x1200"); buses != "" {
		return structs.NewReason("device.ascend_card_without_driver", "bus", buses)
	}
	return structs.NewReason("device.ascend_absent")
}

// libraryPaths are where the vendor's library is looked for, below the root.
func libraryPaths() []string {
	return []string{"usr/local/dcmi/libdcmi.so", "usr/local/Ascend/driver/lib64/libdcmi.so", "usr/local/Ascend/driver/lib64/driver/libdcmi.so", "usr/lib64/libdcmi.so"}
}

// FindLibrary returns where the vendor's library lies; its bare name, for the
// dynamic loader, when it is at none of the usual places.
func FindLibrary(root string) string {
	for _, path := range libraryPaths() {
		if runtime.Exists(root, path) {
			return filepath.Join(root, path)
		}
	}
	return "libdcmi.so"
}

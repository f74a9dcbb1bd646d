package ascend

import (
	"os"
	"path/filepath"
	"strings"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device/pcie"
)

// Present tells, without loading anything, whether this plugin is worth
// starting on the machine below root ("/" but in tests): nil when the driver is
// there, or a card. Otherwise the reason says what was looked for.
func Present(root string) *structs.Reason {
	for _, path := range append([]string{"dev/davinci_manager", "usr/local/Ascend/driver/version.info"}, libraryPaths()...) {
		if _, err := os.Stat(filepath.Join(root, path)); err == nil {
			return nil
		}
	}
	// Huawei's cards call themselves accelerators.
	if buses := pcie.Vendors(root, "0x19e5", "0x1200"); len(buses) > 0 {
		return structs.NewReason("device.ascend_card_without_driver", "bus", strings.Join(buses[:min(len(buses), 16)], ", "))
	}
	return structs.NewReason("device.ascend_absent")
}

// libraryPaths are where the vendor's library is looked for, below the root.
func libraryPaths() []string {
	return []string{"usr/local/dcmi/libdcmi.so", "usr/local/Ascend/driver/lib64/libdcmi.so", "usr/local/Ascend/driver/lib64/driver/libdcmi.so", "usr/lib64/libdcmi.so"}
}

// FindLibrary gives where the vendor's library lies; its bare name, for the
// dynamic loader, when it is at none of the usual places.
func FindLibrary(root string) string {
	for _, path := range libraryPaths() {
		full := filepath.Join(root, path)
		if _, err := os.Stat(full); err == nil {
			return full
		}
	}
	return "libdcmi.so"
}

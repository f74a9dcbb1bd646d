// Package cambricon is the device plugin for Cambricon's MLU cards.
//
// Flow: package cndev reads the cards with the vendor's library, Tool with
// `cnmon info` where that cannot be loaded; faults.json says what is done about
// which fault. The rest is package card.
//
// Limits: the package itself loads nothing, so that the agent can ask Present.
// Cards are given whole: parts that the driver makes (MIM, sMLU) are not offered.
// The vendor's tools have no reset that is known here: a card that waits for one
// waits for an operator. cnmon knows no processes, so that nothing is cleaned up
// where only it can be asked.
package cambricon

import (
	_ "embed"
	"strconv"
	"strings"
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/card"
	"nomadlike/plugins/device/runtime"
)

// Name is the plugin's name.
const Name = "cambricon"

//go:embed faults.json
var builtInFaults []byte

// Vendor is what MLU cards have of their own.
func Vendor() *card.Vendor {
	return &card.Vendor{
		Name: Name, Title: "Cambricon", Noun: "MLU", Kind: device.KindCambricon, LinkKind: "mlulink", Table: builtInFaults,
		Library: "libcndev.so",
		Dirs:    []string{"usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64", "usr/lib", "usr/local/neuware/lib64"},
		Tool:    runtime.Tool{Name: "cnmon", Usual: []string{"/usr/bin/cnmon", "/usr/local/bin/cnmon", "/usr/local/neuware/bin/cnmon"}, Limit: toolLimit},
		PCI:     "0xcabc", Classes: []string{"0x12"},
		Driver:         []string{"dev/cambricon_ctl", "dev/cambricon_dev0"},
		Nodes:          []string{"/dev/cambricon_ctl", "/dev/cambricon_gdr"},
		Mounts:         []string{"/usr/bin/cnmon"},
		CardNodes:      []string{"/dev/cambricon_dev", "/dev/cambricon_ipcm"},
		LeftoverMemory: 2 << 30,
		Reserve:        reserve,
	}
}

// toolLimit bounds cnmon, which may hang with the driver.
const toolLimit = 20 * time.Second

// reserve says which cards a task sees. A process counts by the numbers of the
// machine, a container what it has, from 0.
func reserve(chosen []structs.Device, r *device.Reservation) {
	var numbers, inside []string
	for i, d := range chosen {
		number := strconv.Itoa(d.Index)
		numbers, inside = append(numbers, number), append(inside, strconv.Itoa(i))
		r.CDI = append(r.CDI, "cambricon.com/mlu=mlu-"+number)
	}
	list := strings.Join(numbers, ",")
	r.Env = map[string]string{"MLU_VISIBLE_DEVICES": list}
	r.ContainerEnv = map[string]string{
		"MLU_VISIBLE_DEVICES":       strings.Join(inside, ","),
		"CAMBRICON_VISIBLE_DEVICES": list, // an image's own wish never wins
	}
}

// Package amd is the device plugin for AMD's GPUs for computing.
//
// Flow: package amdsmi reads the cards with the vendor's library, Tool with
// rocm-smi where that cannot be loaded; the kernel itself (ReadKFD) says what
// both leave out or name in their own way: the numbers of device nodes, the
// number that ROCm knows a card by, the links between cards and the processes on
// them. faults.json says what is done about which fault. The rest is package
// card.
//
// Limits: the package itself loads nothing, so that the agent can ask Present.
// Cards are given whole: partitions of a card (CPX and the like) are not told
// apart. A reset with rocm-smi may hit all cards that XGMI joins, so that
// it is off unless the configuration says otherwise.
package amd

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/card"
	"nomadlike/plugins/device/runtime"
)

// Name is the plugin's name.
const Name = "amd"

// toolLimit bounds rocm-smi, which may hang with the driver.
const toolLimit = 2 * time.Minute

//go:embed faults.json
var builtInFaults []byte

// Vendor is what AMD's cards have of their own.
func Vendor() *card.Vendor {
	return &card.Vendor{
		Name: Name, Title: "AMD", Noun: "GPU", Kind: device.KindAMD, LinkKind: "xgmi", Table: builtInFaults,
		Library: "libamd_smi.so",
		Dirs:    []string{"opt/rocm/lib", "opt/rocm/lib64", "usr/lib/x86_64-linux-gnu", "usr/lib64"},
		Tool:    runtime.Tool{Name: "rocm-smi", Usual: []string{"/opt/rocm/bin/rocm-smi", "/usr/bin/rocm-smi", "/usr/local/bin/rocm-smi"}, Limit: toolLimit},
		PCI:     "0x1002", Classes: []string{"0x0302", "0x0380", "0x12"},
		Driver:         []string{"dev/kfd"},
		Nodes:          []string{"/dev/kfd"},
		CardNodes:      []string{"/dev/dri/renderD"},
		LeftoverMemory: 1 << 30,
		Reset:          reset,
		Reserve:        reserve,
	}
}

// reserve says which cards a task sees. ROCm counts for HIP what it shows at
// all, from 0. Its own numbers are those of the kernel's list; a card's unique id
// means the same in every container.
func reserve(chosen []structs.Device, r *device.Reservation) {
	var ids, numbers, inside []string
	for i, d := range chosen {
		ids, numbers, inside = append(ids, d.ID), append(numbers, strconv.Itoa(d.Index)), append(inside, strconv.Itoa(i))
	}
	counted := strings.Join(inside, ",")
	if slices.ContainsFunc(ids, func(id string) bool { return !isUnique(id) }) {
		r.Env = map[string]string{"ROCR_VISIBLE_DEVICES": strings.Join(numbers, ","), "HIP_VISIBLE_DEVICES": counted}
		r.ContainerEnv = map[string]string{"ROCR_VISIBLE_DEVICES": counted}
		return
	}
	r.Env = map[string]string{"ROCR_VISIBLE_DEVICES": strings.Join(ids, ","), "HIP_VISIBLE_DEVICES": counted}
}

// uniqueID is how ROCm names a card by its unique id; "": it has none.
func uniqueID(id uint64) string {
	if id == 0 {
		return ""
	}
	return fmt.Sprintf("GPU-%016x", id)
}

// isUnique reports whether ROCm knows a card by this id.
func isUnique(id string) bool {
	digits, is := strings.CutPrefix(id, "GPU-")
	_, err := strconv.ParseUint(digits, 16, 64)
	return is && len(digits) == 16 && err == nil
}

// reset resets a card, which rocm-smi counts in an order of its own.
func reset(ctx context.Context, tool *runtime.Tool, c *card.Card) error {
	text, err := tool.Run(ctx, "--showbus", "--json")
	if err != nil {
		return err
	}
	rows, _, err := ParseROCm(text)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(rows, func(r Row) bool { return r.bus() == c.Bus })
	if c.Bus == "" || at < 0 {
		return fmt.Errorf("rocm-smi does not list the card at %q", c.Bus)
	}
	_, err = tool.Run(ctx, "--gpureset", "-d", strconv.Itoa(rows[at].Number))
	return err
}

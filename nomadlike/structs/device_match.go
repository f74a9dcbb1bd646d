package structs

import (
	"cmp"
	"slices"
	"strings"
)

// Meets reports whether a device is of the kind, model and size that a request
// asks for. Health and holders are not looked at.
func (d *Device) Meets(request DeviceRequest) bool {
	return d.Kind == request.Kind && d.Memory >= request.Memory && modelMatches(d.Model, request.Model) &&
		(len(request.Models) == 0 || slices.ContainsFunc(request.Models, func(want string) bool { return modelMatches(d.Model, want) })) &&
		(len(request.IDs) == 0 || slices.Contains(request.IDs, d.ID))
}

// modelMatches reports whether want stands in model as a word of its own, in any
// letter case: "A800" is in "NVIDIA A800-SXM4-80GB" and "910B" in
// "Ascend910B3", but "A10" is not in "A100".
func modelMatches(model, want string) bool {
	if want == "" {
		return true
	}
	for at := 0; at+len(want) <= len(model); at++ {
		end := at + len(want)
		if (at == 0 || wordEdge(model[at-1], want[0])) && (end == len(model) || wordEdge(want[len(want)-1], model[end])) &&
			equalFold(model[at:end], want) {
			return true
		}
	}
	return false
}

// equalFold compares texts of one length, ASCII letter case aside.
func equalFold(a, b string) bool {
	for i := range len(a) {
		if lowerASCII(a[i]) != lowerASCII(b[i]) {
			return false
		}
	}
	return true
}

// wordEdge reports whether a word may end between two neighbouring characters:
// not within a number, and not within letters.
func wordEdge(left, right byte) bool {
	return characterClass(left) != characterClass(right) || characterClass(left) == 0
}

func characterClass(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return 1
	case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80:
		return 2
	}
	return 0
}

// CompareDevices is the order in which equal devices of a node are given out:
// those with less memory first, then by CompareNames of their ids.
func CompareDevices(a, b *Device) int {
	return cmp.Or(cmp.Compare(a.Memory, b.Memory), CompareNames(a.ID, b.ID))
}

// CompareNames orders names as people count: shorter ones first, so that
// node-2 comes before node-10, then by bytes.
func CompareNames(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

// Device finds a device of the node, nil for an unknown one.
func (n *Node) Device(id string) *Device {
	for i := range n.Devices {
		if n.Devices[i].ID == id {
			return &n.Devices[i]
		}
	}
	return nil
}

package runtime

import (
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/pcie"
	"nomadlike/plugins/device/rdma"
)

// Surroundings are what the node itself says about where its cards sit.
type Surroundings struct {
	Places map[string]pcie.Place // by PCI address
	Net    rdma.Inventory
}

// Place returns where the card with a PCI address sits; one that is not known
// sits alone.
func (s *Surroundings) Place(bus string) pcie.Place {
	if place, known := s.Places[bus]; known {
		return place
	}
	return pcie.Place{Bus: bus, NUMA: -1}
}

// Describe writes into a device where it sits, and which network card is near.
func (s *Surroundings) Describe(d *structs.Device) {
	place := s.Place(d.PCIBus)
	d.NUMANode = place.NUMA
	SetAttr(d, device.AttrPCISwitch, place.Switch())
	SetAttr(d, device.AttrPCIRoot, place.Root())
	SetAttr(d, device.AttrCPUs, place.CPUs)
	if nic, distance, found := s.Net.Nearest(place); found {
		SetAttr(d, device.AttrNIC, nic.Name)
		SetAttr(d, device.AttrNICDistance, distance.String())
	}
}

// SetAttr sets an attribute of a device that has something to say.
func SetAttr(d *structs.Device, key, value string) {
	if value == "" {
		return
	}
	if d.Attrs == nil {
		d.Attrs = make(map[string]string)
	}
	d.Attrs[key] = value
}

// NodeAttributes are those of a snapshot that have something to say.
func NodeAttributes(source, driver, library string) map[string]string {
	attributes := map[string]string{device.NodeSource: source}
	for key, value := range map[string]string{device.NodeDriver: driver, device.NodeLibrary: library} {
		if value != "" {
			attributes[key] = value
		}
	}
	return attributes
}

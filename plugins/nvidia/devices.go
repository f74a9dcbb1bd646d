package nvidia

import (
	"fmt"
	"strconv"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/runtime"
)

// Surroundings are what the node itself says about where its cards sit.
type Surroundings = runtime.Surroundings

// Devices turns facts into the devices of a snapshot, all healthy, in order.
// It is a pure function of its arguments.
func Devices(facts *Facts, around *Surroundings, s *Settings) []structs.Device {
	groups := group(facts.Cards, around)
	var devices []structs.Device
	for i := range facts.Cards {
		card := &facts.Cards[i]
		if names(s.Ignore, card) || card.UUID == "" {
			continue
		}
		whole := describe(card, facts, around, groups[i])
		switch share := s.shareOf(card); {
		case card.MIG:
			devices = append(devices, instances(card, whole)...)
		case share != nil:
			devices = append(devices, parts(card, whole, share)...)
		default:
			devices = append(devices, whole)
		}
	}
	device.Sort(devices)
	return devices
}

// describe makes the device of a whole card.
func describe(card *Card, facts *Facts, around *Surroundings, in linkGroup) structs.Device {
	d := structs.Device{
		ID: card.UUID, Index: card.Index, Kind: device.KindNVIDIA, Model: card.Name, Memory: int64(card.Memory), PCIBus: card.Bus,
		LinkGroup: in.name, Healthy: true, Driver: facts.Driver, Attrs: make(map[string]string),
	}
	around.Describe(&d)
	set := func(key, value string) { runtime.SetAttr(&d, key, value) }
	set(device.AttrCUDA, facts.CUDA)
	set(device.AttrArch, card.Arch)
	set(device.AttrSerial, card.Serial)
	set(device.AttrVBIOS, card.VBIOS)
	set(device.AttrLinkKind, in.kind)
	if card.Minor >= 0 {
		set(device.AttrMinor, strconv.Itoa(card.Minor))
	}
	if card.State.PowerLimit > 0 {
		set(device.AttrPowerLimit, strconv.Itoa(card.State.PowerLimit))
	}
	if len(card.Links) > 0 {
		set(device.AttrLinkCount, strconv.Itoa(linksUp(card)))
		set(device.AttrLinkPeers, strconv.Itoa(in.peers))
	}
	if f := card.Fabric; f != nil && f.Cluster != "" {
		set(device.AttrFabric, fmt.Sprintf("%s.%d", f.Cluster, f.Clique))
	}
	return d
}

func linksUp(card *Card) int {
	up := 0
	for _, link := range card.Links {
		if link.Up {
			up++
		}
	}
	return up
}

// part makes a device that is a part of a whole one.
func part(whole structs.Device, id, kind, sharing string, number, of int) structs.Device {
	d := device.Clone([]structs.Device{whole})[0]
	d.ID, d.Kind = id, kind
	d.Attrs[device.AttrParent] = whole.ID
	d.Attrs[device.AttrSharing] = sharing
	d.Attrs[device.AttrSlice] = strconv.Itoa(number)
	d.Attrs[device.AttrSlices] = strconv.Itoa(of)
	return d
}

// instances makes the devices of a card in MIG mode. Such a card cannot be
// used as a whole; without instances it is no device at all.
func instances(card *Card, whole structs.Device) []structs.Device {
	var devices []structs.Device
	for i, instance := range card.Instances {
		d := part(whole, instance.UUID, device.KindNVIDIAMIG, device.SharingMIG, i+1, len(card.Instances))
		d.Model, d.Memory = whole.Model+" MIG "+instance.Profile, int64(instance.Memory)
		d.Attrs[device.AttrProfile] = instance.Profile
		d.Attrs[device.AttrInstance] = fmt.Sprintf("%d/%d", instance.GPU, instance.Compute)
		devices = append(devices, d)
	}
	return devices
}

// parts makes the devices of a card that the configuration divides.
func parts(card *Card, whole structs.Device, share *Share) []structs.Device {
	var devices []structs.Device
	for number := 1; number <= share.Parts; number++ {
		d := part(whole, partID(card.UUID, number), device.KindNVIDIAShared, share.How, number, share.Parts)
		d.Memory = int64(card.Memory) / int64(share.Parts)
		devices = append(devices, d)
	}
	return devices
}

// partID names a part of a card.
func partID(uuid string, number int) string { return fmt.Sprintf("%s::%d", uuid, number) }

// nodeAttributes describe the node in a snapshot.
func nodeAttributes(facts *Facts, source string) map[string]string {
	attributes := runtime.NodeAttributes(source, facts.Driver, facts.Library)
	if facts.CUDA != "" {
		attributes[device.NodeCUDA] = facts.CUDA
	}
	divided, empty := 0, 0
	for i := range facts.Cards {
		if facts.Cards[i].MIG {
			divided++
			if len(facts.Cards[i].Instances) == 0 {
				empty++
			}
		}
	}
	if divided > 0 {
		attributes[device.NodeMIG], attributes[device.NodeMIGEmpty] = strconv.Itoa(divided), strconv.Itoa(empty)
	}
	return attributes
}

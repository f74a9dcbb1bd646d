package ascend

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/runtime"
)

// Surroundings are what the node itself says about where its chips sit.
type Surroundings = runtime.Surroundings

// Devices turns facts that Identify has completed into the devices of a
// snapshot, all healthy, in order. It is a pure function of its arguments.
func Devices(facts *Facts, around *Surroundings, s *Settings) []structs.Device {
	rings := ringsOf(facts.Chips, s.codes)
	var devices []structs.Device
	for i := range facts.Chips {
		chip := &facts.Chips[i]
		if s.ignored(chip) || chip.ID == "" {
			continue
		}
		devices = append(devices, describe(chip, facts, around, rings[i]))
	}
	device.Sort(devices)
	return devices
}

func describe(chip *Chip, facts *Facts, around *Surroundings, ring string) structs.Device {
	d := structs.Device{
		ID: chip.ID, Index: max(chip.Physical, 0), Kind: device.KindAscend, Model: chip.Name, Memory: int64(chip.Memory), PCIBus: chip.Bus,
		LinkGroup: ring, Healthy: true, Driver: facts.Driver, Attrs: make(map[string]string),
	}
	around.Describe(&d)
	set := func(key, value string) { runtime.SetAttr(&d, key, value) }
	set(device.AttrCard, strconv.Itoa(chip.Card))
	set(device.AttrChip, strconv.Itoa(chip.Key.Chip))
	set(device.AttrLogicID, strconv.Itoa(chip.Logic))
	if chip.Physical >= 0 {
		set(device.AttrMinor, strconv.Itoa(chip.Physical))
	}
	set(device.AttrBoard, chip.Board)
	set(device.AttrDeviceIP, chip.IP)
	set(device.AttrDeviceMask, chip.Mask)
	set(device.AttrDeviceGateway, chip.Gateway)
	if s := chip.Super; s != nil {
		set(device.AttrSuperDevice, strconv.FormatUint(uint64(s.Device), 10))
		set(device.AttrSuperPod, strconv.FormatUint(uint64(s.Pod), 10))
		set(device.AttrFabric, "superpod."+d.Attrs[device.AttrSuperPod])
	}
	if chip.State.Network >= 0 {
		set(device.AttrNetworkHealth, networkWord(chip.State.Network))
	}
	if ring != "" {
		set(device.AttrLinkKind, "hccs")
	}
	if n := len(chip.Linked); n > 0 {
		set(device.AttrLinkPeers, strconv.Itoa(n))
	}
	return d
}

// ringsOf names the HCCS ring of every chip, in the order of chips; "": in
// none. What the library says about links goes before what the table says
// about the model.
func ringsOf(chips []Chip, codes *Codes) []string {
	rings := make([]string, len(chips))
	at := make(map[Key]int, len(chips))
	for i := range chips {
		at[chips[i].Key] = i
	}
	parent := make([]int, len(chips))
	for i := range parent {
		parent[i] = i
	}
	find := func(i int) int {
		for parent[i] != i {
			i = parent[i]
		}
		return i
	}
	for i := range chips {
		for _, key := range chips[i].Linked {
			if k, known := at[key]; known {
				a, b := find(i), find(k)
				parent[max(a, b)] = min(a, b)
			}
		}
	}
	members := make(map[int]int)
	for i := range chips {
		members[find(i)]++
	}
	// In order of the chips' numbers, so that names do not depend on the order
	// in which the library returns them.
	order := make([]int, len(chips))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(chips[a].Physical, chips[b].Physical) })
	numbers := make(map[int]int)
	for _, i := range order {
		root := find(i)
		if members[root] < 2 {
			if size := codes.ring(chips[i].Name); size > 1 && chips[i].Physical >= 0 && len(chips[i].Linked) == 0 {
				rings[i] = fmt.Sprintf("hccs-%d", chips[i].Physical/size)
			}
			continue
		}
		if _, numbered := numbers[root]; !numbered {
			numbers[root] = len(numbers)
		}
		rings[i] = fmt.Sprintf("hccs-%d", numbers[root])
	}
	return rings
}

// Nodes are the device nodes and files of this machine that tasks need.
type Nodes struct {
	Common []string       // control nodes that are there
	Mounts []device.Mount // of the driver, for containers without the vendor's runtime
}

// ReadNodes looks for device nodes and the driver's files below root.
func ReadNodes(root string) Nodes {
	var nodes Nodes
	for _, name := range []string{"davinci_manager", "devmm_svm", "hisi_hdc"} {
		if runtime.Exists(root, "dev/"+name) {
			nodes.Common = append(nodes.Common, "/dev/"+name)
		}
	}
	for _, path := range []string{
		"/usr/local/dcmi", "/usr/local/bin/npu-smi", "/usr/local/sbin/npu-smi", "/usr/local/Ascend/driver/lib64",
		"/usr/local/Ascend/driver/tools/hccn_tool", "/usr/local/Ascend/driver/version.info", "/etc/ascend_install.info", "/etc/hccn.conf",
	} {
		if runtime.Exists(root, path) {
			nodes.Mounts = append(nodes.Mounts, device.Mount{HostPath: path, TaskPath: path, ReadOnly: true})
		}
	}
	return nodes
}

// reserve says what a task needs to see the devices, which must be of the
// newest snapshot. It is pure.
func reserve(chosen []structs.Device, nodes *Nodes) device.Reservation {
	chosen = slices.Clone(chosen)
	device.Sort(chosen)
	var logic, inside, physical []string
	r := device.Reservation{Mounts: slices.Clone(nodes.Mounts)}
	for i, d := range chosen {
		logic = append(logic, d.Attrs[device.AttrLogicID])
		inside = append(inside, strconv.Itoa(i)) // a container counts what it has, from 0
		if minor := d.Attrs[device.AttrMinor]; minor != "" {
			physical = append(physical, minor)
			path := "/dev/davinci" + minor
			r.Nodes = append(r.Nodes, device.Node{HostPath: path, TaskPath: path, Access: "rw"})
		}
	}
	for _, path := range nodes.Common {
		r.Nodes = append(r.Nodes, device.Node{HostPath: path, TaskPath: path, Access: "rw"})
	}
	r.Env = map[string]string{"ASCEND_RT_VISIBLE_DEVICES": strings.Join(logic, ",")}
	r.ContainerEnv = map[string]string{
		"ASCEND_RT_VISIBLE_DEVICES": strings.Join(inside, ","),
		"ASCEND_VISIBLE_DEVICES":    strings.Join(physical, ","), // an image's own wish never wins
	}
	r.Container = &device.Container{Runtime: "ascend", Env: map[string]string{"ASCEND_VISIBLE_DEVICES": strings.Join(physical, ",")}}
	return r
}

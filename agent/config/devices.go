package config

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"nomadlike/nomadlike/structs"
)

// Limits of what a configuration declares.
const (
	deviceTextMax = 128 // bytes of one word about a device
	deviceAttrMax = 48  // attributes and variables of one device
)

// DeviceBlock declares accelerators of one sort that no plugin finds, labelled
// with their kind: vendor/type. Blocks of one kind are numbered on.
type DeviceBlock struct {
	Kind      string
	Count     *int     // devices named by their kind and number, or
	IDs       []string // devices of these names
	Model     *string
	Memory    *string
	NUMA      *int
	LinkGroup *string
	Driver    *string
	Attrs     map[string]string
	Env       map[string]string // what each adds to a variable of its task; {id} and {index} stand for its own
}

// walkDevice goes over a block and what all of its devices have in common.
func walkDevice(v visitor, b *DeviceBlock, d *structs.Device) {
	v.label(&b.Kind)
	v.setting("count", number(&b.Count, new(int), 0).from(1, structs.DeviceCountMax).refused("").unset().apart())
	v.setting("ids", list(&b.IDs, new([]string)))
	v.setting("memory", size(&b.Memory, &d.Memory, 0).unset())
	v.setting("numa", number(&b.NUMA, &d.NUMANode, 0).from(0, structs.DeviceCountMax).refused("agent.config.device_numa"))
	v.setting("model", text(&b.Model, &d.Model, "").unset())
	v.setting("link_group", text(&b.LinkGroup, &d.LinkGroup, "").unset())
	v.setting("driver_version", text(&b.Driver, &d.Driver, "").unset())
	v.setting("attrs", table(&b.Attrs, new(map[string]string)))
	v.setting("env", table(&b.Env, new(map[string]string)))
}

// devices turns the declared devices into those of the node. Blocks of one
// kind are numbered on, so that a machine with two link groups is two blocks.
func (r *resolver) devices(blocks []DeviceBlock) []structs.Device {
	var devices []structs.Device
	next := map[string]int{} // by kind
	seen := map[string]bool{}
	for i := range blocks {
		path := structs.IndexedPath("client.device", i)
		for _, device := range r.declared(path, &blocks[i], next[blocks[i].Kind]) {
			next[device.Kind]++
			if seen[device.ID] {
				r.refuse(path, "agent.config.device_twice", "id", device.ID)
			}
			seen[device.ID] = true
			devices = append(devices, device)
		}
	}
	if len(devices) > structs.DeviceCountMax {
		r.refuse("client.device", "agent.config.device_count", "max", structs.DeviceCountMax)
		return nil
	}
	return devices
}

// declared returns the devices of one block, the first with the given index.
func (r *resolver) declared(path string, block *DeviceBlock, first int) []structs.Device {
	vendor, sort, _ := strings.Cut(block.Kind, "/")
	if structs.NameProblem(vendor) != "" || structs.NameProblem(sort) != "" {
		r.refuse(path, "agent.config.device_kind", "value", block.Kind)
		return nil
	}
	count := get(block.Count, len(block.IDs))
	if count < 1 || count > structs.DeviceCountMax || len(block.IDs) > 0 && len(block.IDs) != count {
		r.refuse(path, "agent.config.device_count", "max", structs.DeviceCountMax)
		return nil
	}
	var alike structs.Device
	r.settle(path, func(v visitor) { walkDevice(v, block, &alike) })
	r.deviceTexts(path, block)
	devices := make([]structs.Device, count)
	for i := range devices {
		device := alike
		device.ID, device.Index, device.Kind, device.Healthy = vendor+"-"+sort+"-"+strconv.Itoa(first+i), first+i, block.Kind, true
		if len(block.IDs) > 0 {
			device.ID = block.IDs[i]
		}
		device.Attrs = deviceAttrs(block, &device)
		devices[i] = device
	}
	return devices
}

// deviceTexts checks the words about a device.
func (r *resolver) deviceTexts(path string, block *DeviceBlock) {
	texts := map[string]string{
		path + ".model": get(block.Model, ""), path + ".link_group": get(block.LinkGroup, ""), path + ".driver_version": get(block.Driver, ""),
	}
	for _, id := range block.IDs {
		if !deviceID(id) {
			r.refuse(path+".ids", "agent.config.device_id", "value", strconv.Quote(id))
		}
	}
	if len(block.Attrs)+len(block.Env) > deviceAttrMax {
		r.refuse(path, "agent.config.device_attrs", "max", deviceAttrMax)
	}
	for _, name := range slices.Sorted(maps.Keys(block.Attrs)) {
		if name == "" || !structs.PlainText(name, deviceTextMax) || !structs.PlainText(block.Attrs[name], deviceTextMax) ||
			strings.HasPrefix(name, structs.DeviceEnvAttr) {
			r.refuse(path+".attrs", "agent.config.text", "value", strconv.Quote(name), "max", deviceTextMax)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(block.Env)) {
		if !envName(name) || !structs.PlainText(block.Env[name], deviceTextMax) {
			r.refuse(path+".env", "agent.config.text", "value", strconv.Quote(name), "max", deviceTextMax)
		}
	}
	for _, at := range slices.Sorted(maps.Keys(texts)) {
		if !structs.PlainText(texts[at], deviceTextMax) {
			r.refuse(at, "agent.config.text", "value", strconv.Quote(texts[at]), "max", deviceTextMax)
		}
	}
}

// deviceAttrs are the block's attributes, and what the device adds to the
// variables of a task that gets it.
func deviceAttrs(block *DeviceBlock, device *structs.Device) map[string]string {
	if len(block.Attrs)+len(block.Env) == 0 {
		return nil
	}
	attrs := make(map[string]string, len(block.Attrs)+len(block.Env))
	maps.Copy(attrs, block.Attrs)
	own := strings.NewReplacer("{id}", device.ID, "{index}", strconv.Itoa(device.Index))
	for name, template := range block.Env {
		attrs[structs.DeviceEnvAttr+name] = own.Replace(template)
	}
	return attrs
}

// deviceID reports whether a text may name a device: as vendors do.
func deviceID(id string) bool {
	return id != "" && len(id) <= deviceTextMax && !strings.HasPrefix(id, "-") && !strings.ContainsFunc(id, func(c rune) bool {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		return !letter && !strings.ContainsRune(".:_-", c)
	})
}

// envName reports whether a text may name an environment variable.
func envName(name string) bool {
	return name != "" && len(name) <= deviceTextMax && !strings.ContainsFunc(name, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_')
	})
}

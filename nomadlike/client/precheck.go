package client

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"nomadlike/internal/messages"
	"nomadlike/nomadlike/client/alloc"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
)

// diskLeast is what must be free where the node keeps its allocations, in bytes.
const diskLeast = 256 << 20

// unfit is why a node is not fit for an allocation.
type unfit struct {
	check string
	cause string
}

// precheck looks, for a job that wants it, whether the node is fit for an
// allocation right now, and tells the result in the job's events. A node that
// is not is at fault itself: the attempt comes back, elsewhere if it can.
func (c *Client) precheck(a *structs.Assignment) *alloc.PrepareFailed {
	if a.Job.Checkpoint == nil || !a.Job.Checkpoint.Precheck {
		return nil
	}
	checks, found := c.fitness(a)
	note := structs.AllocNote{AllocID: a.Alloc.ID, Attempt: a.Alloc.Attempt, Seq: c.nextNote(), At: c.now()}
	if found == nil {
		note.Told = &structs.Told{Event: structs.EventPrechecked, Params: map[string]string{"checks": strings.Join(checks, ", ")}}
		node := c.Node()
		doubtful(a, &node, note.Told)
		c.session.Note(note)
		return nil
	}
	note.Told = &structs.Told{
		Event: structs.EventPrecheckFailed, Severity: "warn",
		Params: map[string]string{"check": found.check, "cause": found.cause},
	}
	c.session.Note(note)
	return infra("client.precheck", "check", found.check, "cause", found.cause)
}

// doubtful adds what keeps nobody from a node and is worth to be known: memory that is
// less than that of its devices, for a job that uses some. Pure.
func doubtful(a *structs.Assignment, node *structs.Node, told *structs.Told) {
	devices := node.ShortOfMemory()
	if devices == 0 || len(a.Alloc.Devices) == 0 {
		return
	}
	text := func(language messages.Language) string {
		return told.Params["checks"] + ", " + messages.Textf(language, "client.memory_short",
			"memory", structs.FormatSize(node.Capacity.Memory), "devices", structs.FormatSize(devices))
	}
	english, chinese := text(messages.English), text(messages.Chinese)
	told.Params["checks"], told.Params["checks_zh"], told.Severity = english, chinese, "warn"
}

// fitness looks at the node for an allocation.
func (c *Client) fitness(a *structs.Assignment) ([]string, *unfit) {
	var disk unix.Statfs_t
	err := unix.Statfs(c.config.DataDir, &disk)
	devices, _ := c.devices.registered()
	node := c.Node()
	return fitness(a, &node, devices, int64(disk.Bavail)*disk.Bsize, err)
}

// fitness names what was looked at and was well, or the first thing that was
// not: the driver, the devices, the network cards of a gang, the disk. Pure.
func fitness(a *structs.Assignment, node *structs.Node, devices []structs.Device, free int64, diskErr error) ([]string, *unfit) {
	var checks []string
	if driver := a.Job.Task.Driver; !slices.Contains(node.Drivers, driver) {
		return nil, &unfit{"driver " + driver, "not healthy"}
	}
	checks = append(checks, "driver "+a.Job.Task.Driver)
	for _, id := range a.Alloc.Devices {
		i := slices.IndexFunc(devices, func(d structs.Device) bool { return d.ID == id })
		switch {
		case i < 0:
			return nil, &unfit{"device " + id, "not there"}
		case device.ActionOf(&devices[i]).Drains():
			return nil, &unfit{"device " + id, cmp.Or(devices[i].Attrs[device.AttrFault], string(device.ActionOf(&devices[i])))}
		}
	}
	if n := len(a.Alloc.Devices); n > 0 {
		checks = append(checks, fmt.Sprintf("devices %d", n))
	}
	if card := node.Attributes[attrInterface]; len(a.Members) > 1 && card != "" {
		if link := linkUnfit(node.Attributes, a.Alloc.Spec.RDMA); link != "" {
			return nil, &unfit{"network " + link, "not well"}
		}
		checks = append(checks, "network "+card)
	}
	switch {
	case diskErr != nil:
		return nil, &unfit{"disk", diskErr.Error()}
	case free < diskLeast:
		return nil, &unfit{"disk", fmt.Sprintf("%d MiB free", free>>20)}
	}
	return append(checks, "disk"), nil
}

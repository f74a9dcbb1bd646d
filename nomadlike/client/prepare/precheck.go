package prepare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"nomadlike/internal/messages"
	"nomadlike/nomadlike/client/alloc"
	"nomadlike/nomadlike/client/machine"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
)

// diskLeast is what must be free where the node keeps its allocations, in bytes.
const diskLeast = 256 << 20

// precheck looks, for a job that wants it, whether the node is fit for an
// allocation right now, and tells the result in the job's events. A node that
// is not is at fault itself: the attempt comes back, elsewhere if it can.
func (r *Preparer) precheck(a *structs.Assignment) *alloc.PrepareFailed {
	if a.Job.Checkpoint == nil || !a.Job.Checkpoint.Precheck {
		return nil
	}
	checks, found := r.Fitness(a)
	if found == nil {
		told := structs.Told{Event: structs.EventPrechecked, Params: map[string]string{"checks": strings.Join(checks, ", ")}}
		node := r.Node.Node()
		doubtful(a, &node, &told)
		r.Notes.Tell(a.Alloc.ID, a.Alloc.Attempt, told)
		return nil
	}
	r.Notes.Tell(a.Alloc.ID, a.Alloc.Attempt, structs.Told{
		Event: structs.EventPrecheckFailed, Severity: "warn",
		Params: map[string]string{"check": found.Check, "cause": found.Cause},
	})
	return alloc.ByNode("client.precheck", "check", found.Check, "cause", found.Cause)
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

// Fitness looks at the node for an allocation.
func (r *Preparer) Fitness(a *structs.Assignment) ([]string, *machine.Unfit) {
	var disk unix.Statfs_t
	err := unix.Statfs(r.Layout.Root, &disk)
	devices := r.Devices.Registered()
	node := r.Node.Node()
	return fitness(a, &node, devices, int64(disk.Bavail)*disk.Bsize, err)
}

// fitness names what was looked at and was well, or the first thing that was
// not: the driver, the devices, the network cards of a gang, the disk. Pure.
func fitness(a *structs.Assignment, node *structs.Node, devices []structs.Device, free int64, diskErr error) ([]string, *machine.Unfit) {
	var checks []string
	if driver := a.Job.Task.Driver; !slices.Contains(node.Drivers, driver) {
		return nil, &machine.Unfit{Check: "driver " + driver, Cause: "not healthy"}
	}
	checks = append(checks, "driver "+a.Job.Task.Driver)
	for _, id := range a.Alloc.Devices {
		i := slices.IndexFunc(devices, func(d structs.Device) bool { return d.ID == id })
		switch {
		case i < 0:
			return nil, &machine.Unfit{Check: "device " + id, Cause: "not there"}
		case device.ActionOf(&devices[i]).Drains():
			return nil, &machine.Unfit{Check: "device " + id, Cause: cmp.Or(devices[i].Attrs[device.AttrFault], string(device.ActionOf(&devices[i])))}
		}
	}
	if n := len(a.Alloc.Devices); n > 0 {
		checks = append(checks, fmt.Sprintf("devices %d", n))
	}
	if card := node.Attributes[machine.AttrInterface]; len(a.Members) > 1 && card != "" {
		if link := machine.LinkUnfit(node.Attributes, a.Alloc.Spec.RDMA); link != "" {
			return nil, &machine.Unfit{Check: "network " + link, Cause: "not well"}
		}
		checks = append(checks, "network "+card)
	}
	switch {
	case diskErr != nil:
		return nil, &machine.Unfit{Check: "disk", Cause: diskErr.Error()}
	case free < diskLeast:
		return nil, &machine.Unfit{Check: "disk", Cause: fmt.Sprintf("%d MiB free", free>>20)}
	}
	return append(checks, "disk"), nil
}

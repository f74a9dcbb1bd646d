package devices

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/alloc"
	"nomadlike/nomadlike/client/loop"
	"nomadlike/nomadlike/client/retry"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
	"nomadlike/plugins/driver"
)

// Patience with devices.
const (
	// reservePatience is how long a preparation waits for a plugin that does
	// not answer: it may be restarting.
	reservePatience = 30 * time.Second
	reapLimit       = 10 * time.Second
	healPatience    = 3 * time.Minute
	healRetry       = time.Minute
)

// taskMarks is what the processes of this node's tasks carry in their
// environment; a task's id follows.
const taskMarks = "NOMADLIKE_TASK_MARKER="

// Reserve makes the devices of an allocation ready: what dead tasks left on
// them is ended, and their plugins say what the task needs to see them and no
// others. A task that has none of a plugin's devices is told to see none.
func (d *Devices) Reserve(ctx context.Context, a *structs.Assignment) (reserved []driver.Reservation, env map[string]string, failure *alloc.PrepareFailed) {
	env = make(map[string]string)
	contained := a.Job.Task.Driver == structs.DriverDocker
	groups, declared, failure := d.group(a.Alloc.Devices)
	if failure != nil {
		return nil, nil, failure
	}
	if r := d.declaredReservation(declared); len(r.Env) > 0 {
		reserved = append(reserved, r)
		overlay(env, r.Env)
	}
	if len(a.Alloc.Devices) > 0 {
		d.Inbox.Post(func(l *loop.Loop) { d.remember(l, a.Alloc.ID, a.Alloc.Devices) })
	}
	ctx, cancel := context.WithTimeout(ctx, reservePatience)
	defer cancel()
	for _, name := range d.watch.busy() {
		ids := groups[name]
		if len(ids) > 0 {
			if failure := d.clean(ctx, name, ids); failure != nil {
				return nil, nil, failure
			}
		}
		r, err := d.askPlugin(ctx, name, ids)
		switch {
		case err != nil && len(ids) == 0:
			d.Log.Warn("a task may see devices that are not its own", logkey.AllocID, a.Alloc.ID, logkey.Plugin, name, logkey.Error, err)
		case errors.Is(err, device.ErrUnknownDevice):
			return nil, nil, alloc.ByNode("client.device_gone", "device", strings.Join(ids, ", "))
		case err != nil:
			return nil, nil, alloc.ByNode("client.device_failed", "device", strings.Join(ids, ", "), "cause", err)
		case len(ids) == 0:
			for variable, value := range r.Env {
				if strings.HasSuffix(variable, structs.DeviceVisibleSuffix) && !contained { // a container sees none of itself
					env[variable] = value
				}
			}
		default:
			made := driverReservation(&r, contained)
			reserved = append(reserved, made)
			overlay(env, made.Env)
		}
	}
	return reserved, env, nil
}

func overlay(env, over map[string]string) {
	for name, value := range over {
		env[name] = value
	}
}

// group sorts the ids of devices by plugin, and checks that each may be used
// now: the servers may not have heard yet of what has befallen one.
func (d *Devices) group(ids []string) (groups map[string][]string, declared []structs.Device, failure *alloc.PrepareFailed) {
	groups = make(map[string][]string)
	for _, id := range ids {
		found, plugin, ok := d.watch.find(id)
		if !ok {
			return nil, nil, alloc.ByNode("client.device_gone", "device", id)
		}
		if !device.ActionOf(&found).TakesWork() {
			return nil, nil, &alloc.PrepareFailed{Cause: faultOf(&found), Infra: true}
		}
		if plugin == "" {
			declared = append(declared, found)
		} else {
			groups[plugin] = append(groups[plugin], id)
		}
	}
	return groups, declared, nil
}

// declaredReservation is what declared devices add to the environment, in the
// order of their indexes. Variables that choose devices are set for tasks
// without any, too.
func (d *Devices) declaredReservation(chosen []structs.Device) driver.Reservation {
	r := driver.Reservation{Env: make(map[string]string)}
	for i := range d.Declared {
		for key := range d.Declared[i].Attrs {
			if name, ok := strings.CutPrefix(key, structs.DeviceEnvAttr); ok && strings.HasSuffix(name, structs.DeviceVisibleSuffix) {
				r.Env[name] = ""
			}
		}
	}
	chosen = slices.Clone(chosen)
	slices.SortFunc(chosen, func(a, b structs.Device) int {
		return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.ID, b.ID))
	})
	for i := range chosen {
		for key, value := range chosen[i].Attrs {
			name, ok := strings.CutPrefix(key, structs.DeviceEnvAttr)
			if !ok {
				continue
			}
			if before := r.Env[name]; before != "" {
				value = before + "," + value
			}
			r.Env[name] = value
		}
	}
	return r
}

// clean ends what dead tasks have left on devices of a plugin.
func (d *Devices) clean(ctx context.Context, name string, ids []string) *alloc.PrepareFailed {
	request := device.Reaping{IDs: ids, Mine: []device.Mark{{Env: taskMarks}}, Limit: reapLimit}
	if err := d.Inbox.Ask(ctx, func(l *loop.Loop) { request.Live = d.liveMarks(l) }); err != nil {
		return alloc.ByNode("client.prepare_cancelled")
	}
	var report device.ReapReport
	err := patiently(ctx, func() (err error) {
		report, err = d.Plugins[name].Reap(ctx, request)
		return err
	})
	if err != nil {
		return alloc.ByNode("client.device_failed", "device", strings.Join(ids, ", "), "cause", err)
	}
	for i := range report.Devices {
		if r := &report.Devices[i]; len(r.Killed) > 0 {
			d.Log.Warn("processes of ended tasks were on a device and are killed", "device", r.ID, logkey.Count, len(r.Killed))
		}
	}
	for i := range report.Devices {
		if r := &report.Devices[i]; !r.Clean {
			if r.Reason != nil {
				return &alloc.PrepareFailed{Cause: r.Reason, Infra: true}
			}
			return alloc.ByNode("client.device_failed", "device", r.ID, "cause", errUnclean)
		}
	}
	return nil
}

// liveMarks marks the tasks that may run now. Called by the loop.
func (d *Devices) liveMarks(l *loop.Loop) []device.Mark {
	var marks []device.Mark
	for _, id := range d.Live(l) {
		marks = append(marks, device.Mark{Env: taskMarks + string(id) + ":"})
	}
	return marks
}

// askPlugin asks what a task needs to see devices.
func (d *Devices) askPlugin(ctx context.Context, name string, ids []string) (r device.Reservation, err error) {
	err = patiently(ctx, func() (err error) {
		r, err = d.Plugins[name].Reserve(ctx, ids)
		return err
	})
	return r, err
}

// patiently asks a plugin again while it is unavailable.
func patiently(ctx context.Context, act func() error) error {
	pause := retry.First
	for {
		err := act()
		if err == nil || !errors.Is(err, device.ErrUnavailable) || !retry.Sleep(ctx, pause) {
			return err
		}
		pause = min(2*pause, retry.Most)
	}
}

// driverReservation is a plugin's answer in the words of drivers.
func driverReservation(r *device.Reservation, contained bool) driver.Reservation {
	made := driver.Reservation{Env: r.Environment(contained), CDI: r.CDI}
	for _, node := range r.Nodes {
		made.Nodes = append(made.Nodes, driver.Device(node))
	}
	for _, mount := range r.Mounts {
		made.Mounts = append(made.Mounts, driver.Mount{HostPath: mount.HostPath, TaskPath: mount.TaskPath, ReadOnly: mount.ReadOnly})
	}
	if e := r.Container; e != nil {
		made.Engine = &driver.EngineDevices{Driver: e.Driver, IDs: e.IDs, Capabilities: e.Capabilities, Runtime: e.Runtime, Env: e.Env}
	}
	return made
}

// faultOf says what is wrong with a device, for the people whose job is on it.
func faultOf(d *structs.Device) *structs.Reason {
	if d.Health == nil {
		return structs.NewReason("device.fault", "device", d.ID, "code", cmp.Or(d.Attrs[device.AttrFault], string(device.ActionOf(d))))
	}
	return d.Health
}

// Act does what devices ask for: work on one that drains is stopped,
// by the node's fault, and an empty one that waits for a reset gets it. Called
// by the loop, after devices or assignments have changed, and once in a while
// for what did not succeed.
func (d *Devices) Act(work context.Context, l *loop.Loop) {
	devices, _ := d.watch.registered()
	drains := make(map[string]*structs.Device)
	parents := make(map[string]string)
	for i := range devices {
		parents[devices[i].ID] = devices[i].Attrs[device.AttrParent]
		if device.ActionOf(&devices[i]).Drains() {
			drains[devices[i].ID] = &devices[i]
		}
	}
	if len(drains) == 0 {
		return
	}
	used := map[string]bool{}
	for _, s := range l.States() {
		a := l.Assignment(s.AllocID)
		if s.Phase == alloc.PhaseEnded || a == nil {
			continue
		}
		var sick *structs.Device
		for _, id := range a.Alloc.Devices {
			used[id], used[parents[id]] = true, true // parts share their card
			if drain := drains[id]; drain != nil && sick == nil {
				sick = drain
			}
		}
		if sick != nil {
			l.Evict(s.AllocID, faultOf(sick), loop.EvictionOrder(a.Job))
		}
	}
	for id, drain := range drains {
		if device.ActionOf(drain) == device.ActReset && !used[id] && (parents[id] == "" || !used[parents[id]]) && d.healing[id].Before(d.Now()) {
			d.heal(work, id)
		}
	}
}

// heal has a device reset that nobody uses, not again before healRetry.
func (d *Devices) heal(work context.Context, id string) {
	_, plugin, ok := d.watch.find(id)
	healer, can := d.Plugins[plugin].(device.Healer)
	if !ok || !can {
		return
	}
	d.healing[id] = d.Now().Add(healRetry)
	d.Work.Go(func() {
		ctx, cancel := context.WithTimeout(work, healPatience)
		defer cancel()
		switch err := healer.Heal(ctx, []string{id}); {
		case err == nil:
			d.Log.Info("device was reset and is well", "device", id, logkey.Plugin, plugin)
		case work.Err() == nil:
			d.Log.Warn("device cannot be healed", "device", id, logkey.Plugin, plugin, logkey.Error, err)
		}
	})
}

// Reap ends what an ended allocation has left on its devices. What it cannot
// end is found again before the next use.
func (d *Devices) Reap(work context.Context, ids []string) {
	groups := make(map[string][]string)
	for _, id := range ids {
		if _, plugin, ok := d.watch.find(id); ok && plugin != "" {
			groups[plugin] = append(groups[plugin], id)
		}
	}
	for name, ids := range groups {
		request := device.Reaping{IDs: ids, Mine: []device.Mark{{Env: taskMarks}}, Limit: reapLimit}
		if d.Inbox.Ask(work, func(l *loop.Loop) { request.Live = d.liveMarks(l) }) != nil {
			return
		}
		if _, err := d.Plugins[name].Reap(work, request); err != nil && work.Err() == nil {
			d.Log.Warn("devices were not looked after", logkey.Plugin, name, logkey.Error, err)
		}
	}
}

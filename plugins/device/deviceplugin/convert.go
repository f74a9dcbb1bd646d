package deviceplugin

import (
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/proto"
)

func snapshotToProto(s *device.Snapshot) *proto.FingerprintResponse {
	p := &proto.FingerprintResponse{
		AtNs: nanoseconds(s.At), Absent: reasonToProto(s.Absent), Blind: reasonToProto(s.Blind), Attributes: s.Attributes,
		Devices: make([]*proto.Device, len(s.Devices)),
	}
	for i := range s.Devices {
		d := &s.Devices[i]
		p.Devices[i] = &proto.Device{
			Id: d.ID, Index: int64(d.Index), Kind: d.Kind, Model: d.Model, Memory: d.Memory, PciBus: d.PCIBus, NumaNode: int64(d.NUMANode),
			LinkGroup: d.LinkGroup, Healthy: d.Healthy, Health: reasonToProto(d.Health), Driver: d.Driver, Attrs: d.Attrs,
		}
	}
	for i := range s.Events {
		e := &s.Events[i]
		p.Events = append(p.Events, &proto.Event{
			AtNs: nanoseconds(e.At), DeviceId: e.DeviceID, Code: e.Code, Action: string(e.Action), Reason: reasonToProto(e.Reason), Pid: int64(e.PID),
		})
	}
	return p
}

func snapshotFromProto(p *proto.FingerprintResponse) device.Snapshot {
	s := device.Snapshot{
		At: instant(p.GetAtNs()), Absent: reasonFromProto(p.GetAbsent()), Blind: reasonFromProto(p.GetBlind()), Attributes: p.GetAttributes(),
	}
	for _, d := range p.GetDevices() {
		s.Devices = append(s.Devices, structs.Device{
			ID: d.GetId(), Index: int(d.GetIndex()), Kind: d.GetKind(), Model: d.GetModel(), Memory: d.GetMemory(), PCIBus: d.GetPciBus(),
			NUMANode: int(d.GetNumaNode()), LinkGroup: d.GetLinkGroup(), Healthy: d.GetHealthy(), Health: reasonFromProto(d.GetHealth()),
			Driver: d.GetDriver(), Attrs: d.GetAttrs(),
		})
	}
	for _, e := range p.GetEvents() {
		s.Events = append(s.Events, device.Event{
			At: instant(e.GetAtNs()), DeviceID: e.GetDeviceId(), Code: e.GetCode(), Action: device.Action(e.GetAction()),
			Reason: reasonFromProto(e.GetReason()), PID: int(e.GetPid()),
		})
	}
	return s
}

func reasonToProto(r *structs.Reason) *proto.Reason {
	if r == nil {
		return nil
	}
	return &proto.Reason{Id: r.ID, Params: r.Params}
}

func reasonFromProto(p *proto.Reason) *structs.Reason {
	if p == nil {
		return nil
	}
	return &structs.Reason{ID: p.GetId(), Params: p.GetParams()}
}

func reservationToProto(r *device.Reservation) *proto.ReserveResponse {
	p := &proto.ReserveResponse{Env: r.Env, ContainerEnv: r.ContainerEnv, Cdi: r.CDI}
	for _, n := range r.Nodes {
		p.Nodes = append(p.Nodes, &proto.Node{HostPath: n.HostPath, TaskPath: n.TaskPath, Access: n.Access})
	}
	for _, m := range r.Mounts {
		p.Mounts = append(p.Mounts, &proto.Mount{HostPath: m.HostPath, TaskPath: m.TaskPath, ReadOnly: m.ReadOnly})
	}
	if c := r.Container; c != nil {
		p.Container = &proto.Container{Driver: c.Driver, Ids: c.IDs, Capabilities: c.Capabilities, Runtime: c.Runtime, Env: c.Env}
	}
	return p
}

func reservationFromProto(p *proto.ReserveResponse) device.Reservation {
	r := device.Reservation{Env: p.GetEnv(), ContainerEnv: p.GetContainerEnv(), CDI: p.GetCdi()}
	for _, n := range p.GetNodes() {
		r.Nodes = append(r.Nodes, device.Node{HostPath: n.GetHostPath(), TaskPath: n.GetTaskPath(), Access: n.GetAccess()})
	}
	for _, m := range p.GetMounts() {
		r.Mounts = append(r.Mounts, device.Mount{HostPath: m.GetHostPath(), TaskPath: m.GetTaskPath(), ReadOnly: m.GetReadOnly()})
	}
	if c := p.GetContainer(); c != nil {
		r.Container = &device.Container{Driver: c.GetDriver(), IDs: c.GetIds(), Capabilities: c.GetCapabilities(), Runtime: c.GetRuntime(), Env: c.GetEnv()}
	}
	return r
}

func statsToProto(s *device.Stats) *proto.StatsResponse {
	p := &proto.StatsResponse{AtNs: nanoseconds(s.At)}
	for i := range s.Devices {
		d := &s.Devices[i]
		p.Devices = append(p.Devices, &proto.DeviceStats{Id: d.ID, Gauges: d.Gauges, Processes: processesToProto(d.Processes)})
	}
	return p
}

func statsFromProto(p *proto.StatsResponse) device.Stats {
	s := device.Stats{At: instant(p.GetAtNs())}
	for _, d := range p.GetDevices() {
		s.Devices = append(s.Devices, device.DeviceStats{ID: d.GetId(), Gauges: d.GetGauges(), Processes: processesFromProto(d.GetProcesses())})
	}
	return s
}

func processesToProto(processes []device.Process) []*proto.Process {
	var p []*proto.Process
	for _, each := range processes {
		p = append(p, &proto.Process{Pid: int64(each.PID), Name: each.Name, Memory: each.Memory})
	}
	return p
}

func processesFromProto(p []*proto.Process) []device.Process {
	var processes []device.Process
	for _, each := range p {
		processes = append(processes, device.Process{PID: int(each.GetPid()), Name: each.GetName(), Memory: each.GetMemory()})
	}
	return processes
}

func reapingToProto(r *device.Reaping) *proto.ReapRequest {
	return &proto.ReapRequest{Ids: r.IDs, Mine: marksToProto(r.Mine), Live: marksToProto(r.Live), LimitNs: r.Limit.Nanoseconds()}
}

func reapingFromProto(p *proto.ReapRequest) device.Reaping {
	return device.Reaping{IDs: p.GetIds(), Mine: marksFromProto(p.GetMine()), Live: marksFromProto(p.GetLive()), Limit: time.Duration(p.GetLimitNs())}
}

func marksToProto(marks []device.Mark) []*proto.Mark {
	var p []*proto.Mark
	for _, m := range marks {
		p = append(p, &proto.Mark{Cgroup: m.Cgroup, Env: m.Env, Pid: int64(m.PID)})
	}
	return p
}

func marksFromProto(p []*proto.Mark) []device.Mark {
	var marks []device.Mark
	for _, m := range p {
		marks = append(marks, device.Mark{Cgroup: m.GetCgroup(), Env: m.GetEnv(), PID: int(m.GetPid())})
	}
	return marks
}

func reportToProto(r *device.ReapReport) *proto.ReapResponse {
	p := &proto.ReapResponse{}
	for i := range r.Devices {
		d := &r.Devices[i]
		p.Devices = append(p.Devices, &proto.Reaped{
			Id: d.ID, Killed: processesToProto(d.Killed), Stuck: processesToProto(d.Unkillable), Foreign: processesToProto(d.Foreign),
			Live: processesToProto(d.Live), MemoryUsed: d.MemoryUsed, Clean: d.Clean, Reason: reasonToProto(d.Reason),
		})
	}
	return p
}

func reportFromProto(p *proto.ReapResponse) device.ReapReport {
	r := device.ReapReport{}
	for _, d := range p.GetDevices() {
		r.Devices = append(r.Devices, device.Reaped{
			ID: d.GetId(), Killed: processesFromProto(d.GetKilled()), Unkillable: processesFromProto(d.GetStuck()), Foreign: processesFromProto(d.GetForeign()),
			Live: processesFromProto(d.GetLive()), MemoryUsed: d.GetMemoryUsed(), Clean: d.GetClean(), Reason: reasonFromProto(d.GetReason()),
		})
	}
	return r
}

// nanoseconds is Unix time; 0 stands for the zero time.
func nanoseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func instant(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

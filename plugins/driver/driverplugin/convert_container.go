package driverplugin

import (
	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/proto"
)

func devicesToProto(devices []driver.Device) (p []*proto.Device) {
	for _, d := range devices {
		p = append(p, &proto.Device{HostPath: d.HostPath, TaskPath: d.TaskPath, Access: d.Access})
	}
	return p
}

func devicesFromProto(p []*proto.Device) (devices []driver.Device) {
	for _, d := range p {
		devices = append(devices, driver.Device{HostPath: d.GetHostPath(), TaskPath: d.GetTaskPath(), Access: d.GetAccess()})
	}
	return devices
}

func mountsToProto(mounts []driver.Mount) (p []*proto.Mount) {
	for _, m := range mounts {
		p = append(p, &proto.Mount{HostPath: m.HostPath, TaskPath: m.TaskPath, ReadOnly: m.ReadOnly, Within: m.Within})
	}
	return p
}

func mountsFromProto(p []*proto.Mount) (mounts []driver.Mount) {
	for _, m := range p {
		mounts = append(mounts, driver.Mount{HostPath: m.GetHostPath(), TaskPath: m.GetTaskPath(), ReadOnly: m.GetReadOnly(), Within: m.GetWithin()})
	}
	return mounts
}

func ulimitsToProto(limits []driver.Ulimit) (p []*proto.Ulimit) {
	for _, u := range limits {
		p = append(p, &proto.Ulimit{Name: u.Name, Soft: u.Soft, Hard: u.Hard})
	}
	return p
}

func ulimitsFromProto(p []*proto.Ulimit) (limits []driver.Ulimit) {
	for _, u := range p {
		limits = append(limits, driver.Ulimit{Name: u.GetName(), Soft: u.GetSoft(), Hard: u.GetHard()})
	}
	return limits
}

func containerToProto(c *driver.Container) *proto.Container {
	if c == nil {
		return nil
	}
	return &proto.Container{
		Image: c.Image, Pull: c.Pull, ImageEntrypoint: c.ImageEntrypoint, Network: c.Network,
		ReadOnlyRoot: c.ReadOnlyRoot, Rdma: c.RDMA, Options: c.Options,
	}
}

func containerFromProto(p *proto.Container) *driver.Container {
	if p == nil {
		return nil
	}
	return &driver.Container{
		Image: p.GetImage(), Pull: p.GetPull(), ImageEntrypoint: p.GetImageEntrypoint(), Network: p.GetNetwork(),
		ReadOnlyRoot: p.GetReadOnlyRoot(), RDMA: p.GetRdma(), Options: p.GetOptions(),
	}
}

func reservationToProto(r *driver.Reservation) *proto.Reservation {
	p := &proto.Reservation{Env: r.Env, Nodes: devicesToProto(r.Nodes), Mounts: mountsToProto(r.Mounts), Cdi: r.CDI}
	if e := r.Engine; e != nil {
		p.Engine = &proto.EngineDevices{Driver: e.Driver, Ids: e.IDs, Capabilities: e.Capabilities, Runtime: e.Runtime, Env: e.Env}
	}
	return p
}

func reservationFromProto(p *proto.Reservation) driver.Reservation {
	r := driver.Reservation{Env: p.GetEnv(), Nodes: devicesFromProto(p.GetNodes()), Mounts: mountsFromProto(p.GetMounts()), CDI: p.GetCdi()}
	if e := p.GetEngine(); e != nil {
		r.Engine = &driver.EngineDevices{Driver: e.GetDriver(), IDs: e.GetIds(), Capabilities: e.GetCapabilities(), Runtime: e.GetRuntime(), Env: e.GetEnv()}
	}
	return r
}

package driverplugin

import (
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/proto"
)

func specToProto(s *driver.TaskSpec) *proto.TaskSpec {
	p := &proto.TaskSpec{
		Id: string(s.ID), AllocId: s.AllocID, JobName: s.JobName, Attempt: s.Attempt, Rank: int64(s.Rank),
		Command: s.Command, Env: s.Env, Dir: s.Dir, TaskDir: s.TaskDir, User: s.User, Hold: s.Hold,
		Hostname: s.Hostname, Hosts: s.Hosts, PathFirst: s.PathFirst, PathLast: s.PathLast, EnvBase: s.EnvBase, EnvNamed: s.EnvNamed,
		Resources: &proto.Resources{Cpu: s.Resources.CPU, Memory: s.Resources.Memory, Shm: s.Resources.Shm, Pids: s.Resources.PIDs},
		LogDir:    s.LogDir, LogMaxFiles: int64(s.LogRotation.MaxFiles), LogMaxBytes: s.LogRotation.MaxBytes,
		KillGraceNs: s.KillGrace.Nanoseconds(),
	}
	p.Devices, p.Mounts, p.Container = devicesToProto(s.Devices), mountsToProto(s.Mounts), containerToProto(s.Container)
	p.Ulimits, p.Mask = ulimitsToProto(s.Ulimits), maskToProto(s.Mask)
	for i := range s.Reservations {
		p.Reservations = append(p.Reservations, reservationToProto(&s.Reservations[i]))
	}
	return p
}

func specFromProto(p *proto.TaskSpec) driver.TaskSpec {
	s := driver.TaskSpec{
		ID: driver.TaskID(p.GetId()), AllocID: p.GetAllocId(), JobName: p.GetJobName(), Attempt: p.GetAttempt(), Rank: int(p.GetRank()),
		Command: p.GetCommand(), Env: p.GetEnv(), Dir: p.GetDir(), TaskDir: p.GetTaskDir(), User: p.GetUser(), Hold: p.GetHold(),
		Hostname: p.GetHostname(), Hosts: p.GetHosts(), PathFirst: p.GetPathFirst(), PathLast: p.GetPathLast(),
		EnvBase: p.GetEnvBase(), EnvNamed: p.GetEnvNamed(),
		Resources: driver.Resources{CPU: p.GetResources().GetCpu(), Memory: p.GetResources().GetMemory(), Shm: p.GetResources().GetShm(), PIDs: p.GetResources().GetPids()},
		LogDir:    p.GetLogDir(), LogRotation: driver.LogRotation{MaxFiles: int(p.GetLogMaxFiles()), MaxBytes: p.GetLogMaxBytes()},
		KillGrace: time.Duration(p.GetKillGraceNs()),
	}
	s.Devices, s.Mounts, s.Container = devicesFromProto(p.GetDevices()), mountsFromProto(p.GetMounts()), containerFromProto(p.GetContainer())
	s.Ulimits, s.Mask = ulimitsFromProto(p.GetUlimits()), maskFromProto(p.GetMask())
	for _, r := range p.GetReservations() {
		s.Reservations = append(s.Reservations, reservationFromProto(r))
	}
	return s
}

func maskToProto(list []structs.Mask) []*proto.Masked {
	var p []*proto.Masked
	for _, one := range list {
		p = append(p, &proto.Masked{Name: one.Name, Version: one.Version, Text: one.Text})
	}
	return p
}

func maskFromProto(p []*proto.Masked) []structs.Mask {
	var list []structs.Mask
	for _, one := range p {
		list = append(list, structs.Mask{Name: one.GetName(), Version: one.GetVersion(), Text: one.GetText()})
	}
	return list
}

func handleToProto(h driver.Handle) *proto.Handle {
	return &proto.Handle{
		Version: int64(h.Version), Driver: h.Driver, TaskId: string(h.TaskID),
		StartedAtNs: nanoseconds(h.StartedAt), State: h.State,
	}
}

func handleFromProto(p *proto.Handle) driver.Handle {
	return driver.Handle{
		Version: int(p.GetVersion()), Driver: p.GetDriver(), TaskID: driver.TaskID(p.GetTaskId()),
		StartedAt: instant(p.GetStartedAtNs()), State: p.GetState(),
	}
}

func resultToProto(r driver.ExitResult) *proto.ExitResult {
	return &proto.ExitResult{
		Code: int64(r.Code), Signal: r.Signal, OomKilled: r.OOMKilled, Err: userErrorToProto(r.Err),
		StartedAtNs: nanoseconds(r.StartedAt), FinishedAtNs: nanoseconds(r.FinishedAt),
	}
}

func resultFromProto(p *proto.ExitResult) driver.ExitResult {
	return driver.ExitResult{
		Code: int(p.GetCode()), Signal: p.GetSignal(), OOMKilled: p.GetOomKilled(), Err: userErrorFromProto(p.GetErr()),
		StartedAt: instant(p.GetStartedAtNs()), FinishedAt: instant(p.GetFinishedAtNs()),
	}
}

func userErrorToProto(e *structs.Error) *proto.UserError {
	if e == nil {
		return nil
	}
	return &proto.UserError{Code: string(e.Code), Id: e.ID, Params: e.Params}
}

func userErrorFromProto(p *proto.UserError) *structs.Error {
	if p == nil {
		return nil
	}
	return &structs.Error{Code: structs.ErrorCode(p.GetCode()), ID: p.GetId(), Params: p.GetParams()}
}

func sizeToProto(s driver.WindowSize) *proto.WindowSize {
	return &proto.WindowSize{Rows: uint32(s.Rows), Cols: uint32(s.Cols)}
}

// sizeFromProto cuts sizes that no terminal has.
func sizeFromProto(p *proto.WindowSize) driver.WindowSize {
	const largest = 1<<16 - 1
	return driver.WindowSize{Rows: uint16(min(p.GetRows(), largest)), Cols: uint16(min(p.GetCols(), largest))}
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

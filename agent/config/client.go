package config

import (
	"strconv"

	"nomadlike/nomadlike/client/data/remote"
	clientmachine "nomadlike/nomadlike/client/machine"
	"nomadlike/nomadlike/client/prepare"
	"nomadlike/nomadlike/client/room"
	"nomadlike/nomadlike/client/workspace"
	"nomadlike/nomadlike/launch"
	"nomadlike/nomadlike/structs"
)

// ClientBlock is the block of a client.
type ClientBlock struct {
	Enabled         *bool
	Servers         []string
	Pool            *string
	Interface       *string
	PortMin         *int
	PortMax         *int
	Meta            map[string]string
	Topology        []string
	RDMA            *bool
	NCCLDebug       *string
	EnvFile         *string
	GuardRendezvous *bool
	Reserved        *ReservedBlock
	Devices         []DeviceBlock
	Docker          *DockerBlock
	Exec            *ExecBlock
	Storages        []StorageBlock
	Data            *DataBlock
	Disk            *DiskBlock
	Task            *TaskBlock
}

// ReservedBlock is what a client keeps for its machine's own needs.
type ReservedBlock struct {
	CPU    *float64
	Memory *string
}

// Client is the part of a client.
type Client struct {
	Enabled         bool
	Servers         []string // host:port of servers' ports
	Pool            string
	Interface       string // whose address ranks use among themselves; "": that of Advertise
	PortMin         int
	PortMax         int
	ReservedCPU     float64 // cores
	ReservedMemory  int64   // bytes
	Meta            map[string]string
	Topology        []string // where the machine stands, outermost first: room, rack, switch
	RDMA            bool
	EnvFile         string           // of variables that tasks have; "": none
	NCCLDebug       string           // in the prefix of mode horovod; "": INFO
	GuardRendezvous bool             // the ports at which gangs meet are kept, where the agent can
	Devices         []structs.Device // declared, not found by a plugin
	Docker          Docker
	Exec            Exec
	Storages        []workspace.Storage
	Remotes         map[string]remote.Server // of the storages on servers, by their names
	Data            Data
	Disk            clientmachine.DiskBounds
	Room            room.Bounds
}

// Bounds of a client, with the ports given to jobs.
const (
	DefaultPortMin = 20000
	DefaultPortMax = 29999

	portMin     = 1024 // lower ones are the machine's
	coresMax    = 4096
	topologyMax = 8 // levels
)

func walkClient(v visitor, b *ClientBlock, all *Config) {
	c := &all.Client
	v.setting("enabled", toggle(&b.Enabled, &c.Enabled, false).onFlag("client", "cli.flag.client"))
	v.rule(func(*resolver) { c.Enabled = get(b.Enabled, all.Dev) })
	v.setting("servers", list(&b.Servers, &c.Servers))
	v.rule(func(r *resolver) {
		for i, address := range c.Servers {
			c.Servers[i] = r.hostPort("client.servers", address, DefaultHTTPPort)
		}
	})
	one(v, "docker", &b.Docker, func(v visitor, b *DockerBlock) { walkDocker(v, b, &c.Docker) })
	one(v, "exec", &b.Exec, func(v visitor, b *ExecBlock) { walkExec(v, b, &c.Exec) })
	v.setting("port_min", number(&b.PortMin, &c.PortMin, DefaultPortMin).from(portMin, portMax).refused(""))
	v.setting("port_max", number(&b.PortMax, &c.PortMax, DefaultPortMax).from(portMin, portMax).refused(""))
	v.rule(func(r *resolver) {
		if c.PortMin < portMin || c.PortMax > portMax || c.PortMin > c.PortMax {
			r.refuse("client.port_min", "agent.config.port_range", "min", c.PortMin, "max", c.PortMax)
		}
	})
	v.setting("pool", text(&b.Pool, &c.Pool, "").unset().onFlag("pool", "cli.flag.pool"))
	v.rule(func(r *resolver) { r.name("client.pool", c.Pool) })
	v.setting("interface", text(&b.Interface, &c.Interface, "").unset())
	v.setting("meta", table(&b.Meta, &c.Meta))
	one(v, "reserved", &b.Reserved, func(v visitor, b *ReservedBlock) {
		v.setting("cpu", decimal(&b.CPU, &c.ReservedCPU, 0).from(0, coresMax).refused("agent.config.reserved_cpu").in("cores"))
		v.setting("memory", size(&b.Memory, &c.ReservedMemory, 0).orBlank())
	})
	v.setting("rdma", toggle(&b.RDMA, &c.RDMA, false))
	v.setting("env_file", text(&b.EnvFile, &c.EnvFile, "").unset())
	v.rule(func(r *resolver) {
		if c.EnvFile == "" {
			return
		}
		if _, err := prepare.ReadEnvFile(c.EnvFile, nil); err != nil {
			r.refuse("client.env_file", "agent.config.env_file", "path", c.EnvFile, "cause", err)
		}
	})
	v.setting("guard_rendezvous", toggle(&b.GuardRendezvous, &c.GuardRendezvous, true))
	v.setting("nccl_debug", word(&b.NCCLDebug, &c.NCCLDebug, "", "", launch.NCCLDebugOff, "VERSION", "WARN", "INFO", "ABORT", "TRACE").
		refused("agent.config.nccl_debug").knownAs("INFO"))
	v.setting("topology", list(&b.Topology, &c.Topology))
	v.rule(func(r *resolver) { r.topology(c.Topology) })
	every(v, "device", "kind", &b.Devices, func(v visitor, b *DeviceBlock) { walkDevice(v, b, new(structs.Device)) }, nil)
	v.rule(func(r *resolver) { c.Devices = r.devices(b.Devices) })
	every(v, "storage", "name", &b.Storages, walkStorage, nil)
	v.rule(func(r *resolver) { c.Storages, c.Remotes = r.storages(b.Storages), r.remotes })
	one(v, "data", &b.Data, func(v visitor, b *DataBlock) { walkData(v, b, &c.Data) })
	one(v, "disk", &b.Disk, func(v visitor, b *DiskBlock) { walkDisk(v, b, &c.Disk) })
	one(v, "task", &b.Task, func(v visitor, b *TaskBlock) { walkTask(v, b, &c.Room) })
}

// topology checks where the machine stands.
func (r *resolver) topology(levels []string) {
	if len(levels) > topologyMax {
		r.refuse("client.topology", "agent.config.topology", "max", topologyMax)
	}
	for _, level := range levels {
		if level == "" || !structs.PlainText(level, deviceTextMax) {
			r.refuse("client.topology", "agent.config.text", "value", strconv.Quote(level), "max", deviceTextMax)
		}
	}
}

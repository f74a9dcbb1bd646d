package config

import (
	"maps"
	"slices"

	"github.com/zclconf/go-cty/cty"
)

// Settings is one layer of configuration: a file, or the flags of the
// command line. What a layer leaves nil it leaves to the layers below.
type Settings struct {
	Name      *string       `hcl:"name,optional"`
	DataDir   *string       `hcl:"data_dir,optional"`
	Bind      *string       `hcl:"bind,optional"`
	Advertise *string       `hcl:"advertise,optional"`
	JoinToken *string       `hcl:"join_token,optional"`
	JoinFile  *string       `hcl:"join_token_file,optional"`
	PluginDir *string       `hcl:"plugin_dir,optional"`
	Scale     *float64      `hcl:"scale,optional"` // stretches the timings of failure detection, for busy machines
	Ports     *PortsBlock   `hcl:"ports,block"`
	Server    *ServerBlock  `hcl:"server,block"`
	Client    *ClientBlock  `hcl:"client,block"`
	Log       *LogBlock     `hcl:"log,block"`
	Limits    *LimitsBlock  `hcl:"limits,block"`
	HTTP      *HTTPBlock    `hcl:"http,block"`
	Plugins   []PluginBlock `hcl:"plugin,block"`
	Dev       *bool         // flags only
	Found     *bool         // flags only: it is said once
	_         struct{}      // keyed fields only: the list grows
}

// Ports are the ports that an agent listens on.
type PortsBlock struct {
	HTTP   *int `hcl:"http,optional"`   // TLS: API, RPC and Raft
	Gossip *int `hcl:"gossip,optional"` // TCP and UDP
}

// Server is the block of a server.
type ServerBlock struct {
	Enabled         *bool    `hcl:"enabled,optional"`
	BootstrapExpect *int     `hcl:"bootstrap_expect,optional"`
	Join            []string `hcl:"join,optional"`
	ForgetNodes     *string  `hcl:"forget_nodes,optional"`  // how long a node is down before it is forgotten; "0s": never
	LapseGrace      *string  `hcl:"renew_grace,optional"`   // how long after its end a node's certificate is renewed
	KeepJobs        *int     `hcl:"keep_jobs,optional"`     // ended jobs that are kept; 0: any number
	JobsSizeMax     *string  `hcl:"jobs_size_max,optional"` // specifications of all live jobs together; "0B": any
	KeepJobsFor     *string  `hcl:"keep_jobs_for,optional"` // how long; "0s": for ever

	Backup *BackupBlock `hcl:"backup,block"`
}

// Client is the block of a client.
type ClientBlock struct {
	Enabled         *bool             `hcl:"enabled,optional"`
	Servers         []string          `hcl:"servers,optional"`
	Pool            *string           `hcl:"pool,optional"`
	Interface       *string           `hcl:"interface,optional"`
	PortMin         *int              `hcl:"port_min,optional"`
	PortMax         *int              `hcl:"port_max,optional"`
	Meta            map[string]string `hcl:"meta,optional"`
	Topology        []string          `hcl:"topology,optional"` // where the machine stands, outermost first
	RDMA            *bool             `hcl:"rdma,optional"`
	NCCLDebug       *string           `hcl:"nccl_debug,optional"` // of the prefix of mode horovod
	EnvFile         *string           `hcl:"env_file,optional"`
	GuardRendezvous *bool             `hcl:"guard_rendezvous,optional"` // true unless told
	Reserved        *ReservedBlock    `hcl:"reserved,block"`
	Devices         []DeviceBlock     `hcl:"device,block"`
	Docker          *DockerBlock      `hcl:"docker,block"`
	Exec            *ExecBlock        `hcl:"exec,block"`
	Storages        []StorageBlock    `hcl:"storage,block"`
	Data            *DataBlock        `hcl:"data,block"`
	Disk            *DiskBlock        `hcl:"disk,block"`
	Task            *TaskBlock        `hcl:"task,block"`
}

// DeviceBlock declares accelerators of one sort that no plugin finds, labelled
// with their kind: vendor/type. Blocks of one kind are numbered on.
type DeviceBlock struct {
	Kind      string            `hcl:"kind,label"`
	Count     *int              `hcl:"count,optional"` // devices named by their kind and number, or
	IDs       []string          `hcl:"ids,optional"`   // devices of these names
	Model     *string           `hcl:"model,optional"`
	Memory    *string           `hcl:"memory,optional"` // of each, such as "80GiB"
	NUMA      *int              `hcl:"numa,optional"`
	LinkGroup *string           `hcl:"link_group,optional"`
	Driver    *string           `hcl:"driver_version,optional"`
	Attrs     map[string]string `hcl:"attrs,optional"`
	Env       map[string]string `hcl:"env,optional"` // what each adds to a variable of its task; {id} and {index} stand for its own
}

// Reserved is what a client keeps for its machine's own needs.
type ReservedBlock struct {
	CPU    *float64 `hcl:"cpu,optional"`    // cores
	Memory *string  `hcl:"memory,optional"` // such as "2GiB"
}

// Log is the block of the agent's own log.
type LogBlock struct {
	Level  *string `hcl:"level,optional"`  // debug | info | warn | error
	Format *string `hcl:"format,optional"` // auto | text | json
}

// Limits bounds what callers of the API may use.
type LimitsBlock struct {
	ConnectionsPeer *int     `hcl:"connections_peer,optional"`  // open from one address
	Streams         *int     `hcl:"streams,optional"`           // open of one token: events, logs, exec, blocking queries
	RequestsPerSec  *float64 `hcl:"requests_per_sec,optional"`  // of one token
	TokenFailures   *int     `hcl:"token_failures,optional"`    // a minute from one address
	JobsPerSecond   *float64 `hcl:"submissions_per_s,optional"` // of one token
}

// Plugin is the block of one plugin, labelled with its name, which is also the
// name of its program in plugin_dir. The device plugins that host.Builtins names
// are carried by the agent and need no block.
type PluginBlock struct {
	Name   string            `hcl:"name,label"`
	Type   *string           `hcl:"type,optional"` // driver (default) | device
	Args   []string          `hcl:"args,optional"`
	Env    map[string]string `hcl:"env,optional"`    // complete: it gets nothing of the agent's own
	SHA256 *string           `hcl:"sha256,optional"` // of the program, in hexadecimal
	// Enabled starts a built-in device plugin, or not, whatever the machine
	// seems to have.
	Enabled *bool     `hcl:"enabled,optional"`
	Config  cty.Value `hcl:"config,optional"` // of a device plugin, in its own words
}

// HTTP is the block of the HTTP API.
type HTTPBlock struct {
	Hosts []string `hcl:"hosts,optional"` // names under which browsers may reach the agent
}

// Over puts the values of top over those of s and returns the result; lists
// and maps are replaced as a whole.
func (s Settings) Over(top Settings) Settings {
	s.Name = or(top.Name, s.Name)
	s.DataDir = or(top.DataDir, s.DataDir)
	s.Bind = or(top.Bind, s.Bind)
	s.Advertise = or(top.Advertise, s.Advertise)
	s.JoinToken = or(top.JoinToken, s.JoinToken)
	s.JoinFile = or(top.JoinFile, s.JoinFile)
	s.PluginDir = or(top.PluginDir, s.PluginDir)
	s.Scale = or(top.Scale, s.Scale)
	s.Dev = or(top.Dev, s.Dev)
	s.Found = or(top.Found, s.Found)
	s.Ports = both(s.Ports, top.Ports, func(a, b PortsBlock) PortsBlock {
		return PortsBlock{HTTP: or(b.HTTP, a.HTTP), Gossip: or(b.Gossip, a.Gossip)}
	})
	s.Server = both(s.Server, top.Server, func(a, b ServerBlock) ServerBlock {
		return ServerBlock{
			Enabled: or(b.Enabled, a.Enabled), BootstrapExpect: or(b.BootstrapExpect, a.BootstrapExpect),
			Join: orList(b.Join, a.Join), LapseGrace: or(b.LapseGrace, a.LapseGrace), KeepJobs: or(b.KeepJobs, a.KeepJobs), KeepJobsFor: or(b.KeepJobsFor, a.KeepJobsFor), JobsSizeMax: or(b.JobsSizeMax, a.JobsSizeMax), ForgetNodes: or(b.ForgetNodes, a.ForgetNodes),
			Backup: both(a.Backup, b.Backup, BackupBlock.over),
		}
	})
	s.Client = both(s.Client, top.Client, ClientBlock.over)
	s.Log = both(s.Log, top.Log, func(a, b LogBlock) LogBlock {
		return LogBlock{Level: or(b.Level, a.Level), Format: or(b.Format, a.Format)}
	})
	s.Limits = both(s.Limits, top.Limits, func(a, b LimitsBlock) LimitsBlock {
		return LimitsBlock{
			ConnectionsPeer: or(b.ConnectionsPeer, a.ConnectionsPeer), Streams: or(b.Streams, a.Streams), RequestsPerSec: or(b.RequestsPerSec, a.RequestsPerSec),
			TokenFailures: or(b.TokenFailures, a.TokenFailures), JobsPerSecond: or(b.JobsPerSecond, a.JobsPerSecond),
		}
	})
	s.Plugins = overPlugins(s.Plugins, top.Plugins)
	s.HTTP = both(s.HTTP, top.HTTP, func(a, b HTTPBlock) HTTPBlock { return HTTPBlock{Hosts: orList(b.Hosts, a.Hosts)} })
	return s
}

// overPlugins puts each plugin of top in the place of the one of its name.
func overPlugins(below, top []PluginBlock) []PluginBlock {
	merged := slices.Clone(below)
	for _, plugin := range top {
		at := slices.IndexFunc(merged, func(p PluginBlock) bool { return p.Name == plugin.Name })
		if at < 0 {
			merged = append(merged, plugin)
		} else {
			merged[at] = plugin
		}
	}
	return merged
}

func (c ClientBlock) over(top ClientBlock) ClientBlock {
	c.Enabled = or(top.Enabled, c.Enabled)
	c.Servers = orList(top.Servers, c.Servers)
	c.Pool = or(top.Pool, c.Pool)
	c.Interface = or(top.Interface, c.Interface)
	c.PortMin = or(top.PortMin, c.PortMin)
	c.PortMax = or(top.PortMax, c.PortMax)
	if top.Meta != nil {
		c.Meta = maps.Clone(top.Meta)
	}
	c.Topology = orList(top.Topology, c.Topology)
	c.RDMA = or(top.RDMA, c.RDMA)
	c.NCCLDebug = or(top.NCCLDebug, c.NCCLDebug)
	c.EnvFile = or(top.EnvFile, c.EnvFile)
	c.GuardRendezvous = or(top.GuardRendezvous, c.GuardRendezvous)
	if top.Devices != nil {
		c.Devices = top.Devices
	}
	c.Reserved = both(c.Reserved, top.Reserved, func(a, b ReservedBlock) ReservedBlock {
		return ReservedBlock{CPU: or(b.CPU, a.CPU), Memory: or(b.Memory, a.Memory)}
	})
	c.Docker = both(c.Docker, top.Docker, DockerBlock.over)
	c.Exec = both(c.Exec, top.Exec, ExecBlock.over)
	c.Data = both(c.Data, top.Data, DataBlock.over)
	c.Disk = both(c.Disk, top.Disk, DiskBlock.over)
	c.Task = both(c.Task, top.Task, TaskBlock.over)
	if top.Storages != nil {
		c.Storages = top.Storages
	}
	return c
}

// or gives top when it is set, else below.
func or[T any](top, below *T) *T {
	if top != nil {
		return top
	}
	return below
}

func orList(top, below []string) []string {
	if top != nil {
		return slices.Clone(top)
	}
	return below
}

// both merges two blocks of which either may be missing.
func both[T any](below, top *T, merge func(below, top T) T) *T {
	var zero T
	switch {
	case top == nil:
		return below
	case below == nil:
		below = &zero
	}
	merged := merge(*below, *top)
	return &merged
}

// get is the value of a setting, or what it is by default.
func get[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

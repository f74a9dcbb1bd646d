package client

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"nomadlike/internal/clock"
	"nomadlike/nomadlike/client/code"
	"nomadlike/nomadlike/client/data"
	"nomadlike/nomadlike/client/data/remote"
	"nomadlike/nomadlike/client/fingerprint"
	"nomadlike/nomadlike/client/firewall"
	"nomadlike/nomadlike/client/machine"
	"nomadlike/nomadlike/client/room"
	"nomadlike/nomadlike/client/run"
	"nomadlike/nomadlike/client/secrets"
	"nomadlike/nomadlike/client/service"
	"nomadlike/nomadlike/client/session"
	"nomadlike/nomadlike/client/staging"
	"nomadlike/nomadlike/client/store"
	"nomadlike/nomadlike/client/workspace"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
	"nomadlike/plugins/driver"
)

// Config is what a node needs. DataDir, RPCAddr, Drivers, OpenSession and
// Logger are required.
type Config struct {
	// DataDir belongs to the node alone. Tasks that run as other users must
	// be able to pass through it and through the directories above it.
	DataDir string
	// NodeID is the id in the node's certificate; "" takes the stored one, or
	// makes one.
	NodeID  string
	RPCAddr string // host:port of this agent
	Version string
	Wishes  fingerprint.Wishes // name, address, pool, reserves, ports, attributes
	// Own says that the machine is its user's own: processes that nothing
	// isolates run on it without a pool that allows them.
	Own bool
	// NCCLDebug is what NCCL logs in mode horovod; "": INFO.
	NCCLDebug string
	// EnvFile is a file of variables that every task has but those in containers,
	// unless its job sets them; "": none.
	EnvFile string
	Drivers map[string]driver.Driver
	Devices []structs.Device // declared by the configuration
	// Storages are the places for data that the administrator has named; the
	// first that serves a kind is taken when a job names none.
	Storages []workspace.Storage
	// Remotes are the servers of the storages that are Remote, by their names.
	Remotes map[string]remote.Server
	// Fast is where copies of datasets are kept; its Dir is by default below
	// DataDir.
	Fast data.Config
	// DevicePlugins find devices and prepare them for tasks, by name. They are
	// closed by their owner, after Run.
	DevicePlugins map[string]device.Plugin

	// Servers returns the servers known otherwise, host:port; it may change.
	Servers     func() []string
	OpenSession session.Opener
	OpenExec    service.ExecOpener // nil: ranks reach no ranks of other nodes
	AskSecrets  secrets.Ask        // nil: tasks that need secrets do not start
	AskCode     code.Ask           // nil: tasks of jobs with code of their own do not start
	// Staging says how copies of named data come from other nodes, and go to them.
	Staging Staging
	// SecretsDir is a directory in memory for secrets that are files, made when
	// missing. "" means one of the node in /run for root, and in ShmDir for others.
	SecretsDir string

	// Accounts binds users and projects of the cluster to users of this node, and
	// UIDMin to UIDMax are the ids of the projects that are bound to none; 0 means
	// the defaults. Both count for agents with root alone.
	Accounts       structs.Accounts
	UIDMin, UIDMax int

	// Binary is the path of the program that has the hidden command mpi-rsh.
	Binary string
	// SharedDir has the same path on every node and may be written by the
	// agent only, see launch.NodeFacts; made when missing. "" means
	// SharedDirDefault for root, and doing without for others.
	SharedDir string
	// Quotas opens the quotas of the file system of a directory; nil: tasks are
	// measured alone.
	Quotas func(dir string) (room.Quotas, error)
	// Filter is the packet filter in which the node keeps the ports of gangs; nil: it
	// keeps none. It takes CAP_NET_ADMIN.
	Filter func(nodeID string) firewall.Filter
	Keep   run.Retention
	Disk   machine.DiskBounds
	Room   room.Bounds // of each allocation
	Logger *slog.Logger

	// Doors for tests; zero values mean the real ones.
	Machine  *fingerprint.Machine
	ShmDir   string // the node's shared memory; "" means /dev/shm, or none with a Machine
	SysRoot  string // below which sysfs is looked at for network cards; "" means "/", or nothing with a Machine
	Now      func() time.Time
	Load     func() fingerprint.Load
	Boottime func() time.Duration
	Chance   func() float64
	BootID   string
	Fsync    func(fsync func() error) error // of the local store

	PatrolEvery time.Duration // between looks of the patrol at a task; 0: a minute
	RoomEvery   time.Duration // between measurements of an allocation's directory; 0: 5 s
	LinksEvery  time.Duration // between looks at the network cards; 0: 5 s
}

// Staging is how a node takes part in the exchange of copies. Without Servers or Nodes, or
// with Off, it takes no part.
type Staging struct {
	Servers staging.Servers
	Nodes   staging.Nodes
	Off     bool
	Rate    int64 // bytes per second at most, each way; 0: half of what the node's link can do
}

// SharedDirDefault is where the same paths of all nodes are made by default.
const SharedDirDefault = "/run/nomadlike"

func (c Config) withDefaults() (Config, error) {
	switch {
	case !filepath.IsAbs(c.DataDir):
		return c, errors.New("configure client: data directory is not absolute")
	case c.OpenSession == nil:
		return c, errors.New("configure client: no way to open a session")
	case c.Logger == nil:
		return c, errors.New("configure client: no logger")
	}
	c.DataDir = filepath.Clean(c.DataDir)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Load == nil {
		c.Load = fingerprint.ReadLoad
	}
	if c.Boottime == nil {
		c.Boottime = clock.Boottime
	}
	if c.Chance == nil {
		c.Chance = rand.Float64
	}
	if c.BootID == "" {
		c.BootID = store.ReadBootID()
	}
	if c.SysRoot == "" && c.Machine == nil {
		c.SysRoot = "/"
	}
	if c.ShmDir == "" && c.Machine == nil {
		c.ShmDir = "/dev/shm"
	}
	if c.SecretsDir == "" && c.NodeID != "" {
		places := []string{c.ShmDir}
		if os.Geteuid() == 0 && c.Machine == nil {
			places = []string{"/run", c.ShmDir}
		}
		c.SecretsDir = secrets.Dir(c.NodeID, places...)
	}
	if c.SharedDir == "" && c.Machine == nil && os.Geteuid() == 0 {
		c.SharedDir = SharedDirDefault
	}
	if c.Fast.Dir == "" {
		c.Fast.Dir = filepath.Join(c.DataDir, "data")
	}
	c.Fast.BootID, c.Fast.Now = c.BootID, c.Now
	return c, nil
}

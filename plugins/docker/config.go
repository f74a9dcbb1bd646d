package docker

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"nomadlike/plugins/driver"
)

// Name is what job files call this driver.
const Name = "docker"

// Defaults of a Config.
const (
	EndpointDefault       = "unix:///var/run/docker.sock"
	PrivateNetworkDefault = "nomadlike"
	PIDsDefault           = 32 << 10
	ShmDefault            = 64 << 20
	OpenFilesDefault      = 1 << 20
)

// Config says how the driver works on a node. The zero value of everything
// but StateDir and Node is safe: nothing that reaches beyond the container is
// allowed.
type Config struct {
	// StateDir holds records and sockets of all tasks, mode 0700; it must
	// survive restarts of the agent and belong to it alone.
	StateDir string
	// Endpoint is the engine's socket, "unix:///path"; "" means EndpointDefault.
	Endpoint string
	// Cluster and Node identify this agent's containers among others of the
	// same engine. Node must not be empty.
	Cluster, Node string

	// Network is what a job that does not choose gets: one of the Network
	// words of package driver, "" means private. What is not in Policy can
	// not be the default either.
	Network string
	// PrivateNetwork names the engine's network for "private"; it is made as
	// a bridge when it does not exist. "" means PrivateNetworkDefault. An
	// administrator's macvlan or ipvlan network may stand here.
	PrivateNetwork string
	// MountRoots are the directories of this node below which jobs may mount
	// files, links resolved. Without any, jobs mount nothing.
	MountRoots []string

	// Mounts are put into every container, for instance the agent's program
	// that MPI starts ranks with. They are the node's own, so MountRoots do
	// not bind them; a job cannot mount over them.
	Mounts []driver.Mount

	// User is what tasks run as that name none, "uid" or "uid:gid"; "" means
	// the image's own user.
	User string
	// Capabilities are kept by containers, without "CAP_"; all others are
	// dropped.
	Capabilities []string
	// ReadOnlyRoot makes the images' files read-only for every task.
	ReadOnlyRoot bool
	// PIDsMax bounds processes and threads of a task that says nothing; 0
	// means PIDsDefault.
	PIDsMax int64
	// ShmBytes is the size of /dev/shm for a task that says nothing; 0 means
	// ShmDefault.
	ShmBytes int64
	// Ulimits are the limits of every task's processes, those of the job
	// over them. Open files default to OpenFilesDefault, or to what the
	// engine may give.
	Ulimits []driver.Ulimit

	// Registries lists credentials and AuthFile a file of them in the form
	// of docker login (config.json); the list wins. Both are read anew for
	// every pull.
	Registries []Registry
	AuthFile   string

	Policy Policy
	GC     GC

	// Program replaces the program that runs in and beside containers; ""
	// means the embedded one.
	Program string
	// ProbeEvery is how often the engine is asked how it is; 0 means
	// ProbeDefault.
	ProbeEvery time.Duration
	Logger     *slog.Logger // nil: no logs
}

// ProbeDefault is how often the engine is asked.
const ProbeDefault = 2 * time.Second

// Policy is what jobs may ask for on this node beyond the container itself.
type Policy struct {
	// HostNetwork lets tasks use the node's own network, as gangs over
	// several nodes do.
	HostNetwork bool
	// Options names the engine's settings that jobs may use: see OptionNames.
	Options []string
	// RegistriesOnly, when not empty, lists the registries from which images
	// may be pulled, as "docker.io" or "registry.lab:5000".
	RegistriesOnly []string
	// SafeRuntimeOnly refuses tasks while the engine's runtime has known
	// holes; otherwise the fingerprint only says so.
	SafeRuntimeOnly bool
}

// Registry is how to log in to a registry. The password is in a file, so that
// it stands in no configuration and no process list.
type Registry struct {
	Host         string // "registry.lab:5000"; "docker.io" for the public one
	Username     string
	PasswordFile string
}

// GC says when images are removed. Only images that this driver has pulled
// are; those of people and of other programs stay.
type GC struct {
	Disabled bool
	// HighPercent of the engine's disk in use begins a collection, which
	// goes on down to LowPercent; 0 means 85 and 75.
	HighPercent, LowPercent int
	// KeepAfterUse is how long an image stays after its last use whatever
	// the disk says; 0 means 1 h.
	KeepAfterUse time.Duration
	// UnusedMax is after how long without use an image goes whatever the
	// disk says; 0 means never.
	UnusedMax time.Duration
	// Pinned names images that stay.
	Pinned []string
	// Every is how often is looked; 0 means 5 min.
	Every time.Duration
}

// withDefaults checks a configuration and fills what it leaves open.
func (c Config) withDefaults() (Config, error) {
	if !filepath.IsAbs(c.StateDir) || filepath.Clean(c.StateDir) != c.StateDir {
		return c, fmt.Errorf("state directory %q is not a clean absolute path", c.StateDir)
	}
	if c.Node == "" {
		return c, errors.New("no node is named")
	}
	if c.Endpoint == "" {
		c.Endpoint = EndpointDefault
	}
	if path, ok := strings.CutPrefix(c.Endpoint, "unix://"); !ok || !filepath.IsAbs(path) {
		return c, fmt.Errorf("endpoint %q: want unix:///path of an engine on this machine", c.Endpoint)
	}
	if c.Network == "" {
		c.Network = driver.NetworkPrivate
	}
	if !slices.Contains([]string{driver.NetworkHost, driver.NetworkPrivate, driver.NetworkNone}, c.Network) {
		return c, fmt.Errorf("network %q: want host, private or none", c.Network)
	}
	if c.PrivateNetwork == "" {
		c.PrivateNetwork = PrivateNetworkDefault
	}
	if slices.Contains([]string{"host", "none", "default"}, c.PrivateNetwork) || strings.Contains(c.PrivateNetwork, ":") {
		return c, fmt.Errorf("private network %q: want the name of a network of its own", c.PrivateNetwork)
	}
	for _, root := range c.MountRoots {
		if !filepath.IsAbs(root) || filepath.Clean(root) != root {
			return c, fmt.Errorf("mount root %q is not a clean absolute path", root)
		}
	}
	for _, option := range c.Policy.Options {
		if !slices.Contains(OptionNames(), option) {
			return c, fmt.Errorf("policy: there is no option %q; there are %s", option, strings.Join(OptionNames(), ", "))
		}
	}
	c.PIDsMax = orDefault(c.PIDsMax, PIDsDefault)
	c.ShmBytes = orDefault(c.ShmBytes, ShmDefault)
	c.ProbeEvery = orDefault(c.ProbeEvery, ProbeDefault)
	c.GC.HighPercent = orDefault(c.GC.HighPercent, 85)
	c.GC.LowPercent = orDefault(c.GC.LowPercent, 75)
	c.GC.KeepAfterUse = orDefault(c.GC.KeepAfterUse, time.Hour)
	c.GC.Every = orDefault(c.GC.Every, 5*time.Minute)
	if c.GC.LowPercent > c.GC.HighPercent || c.GC.HighPercent > 100 {
		return c, fmt.Errorf("image collection: want low (%d) up to high (%d) up to 100 percent", c.GC.LowPercent, c.GC.HighPercent)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

func orDefault[T int | int64 | time.Duration](value, otherwise T) T {
	if value == 0 {
		return otherwise
	}
	return value
}

package driver

import (
	"path/filepath"
	"slices"
	"strings"
)

// Limits of a Container and of reservations.
const (
	ImageBytesMax   = 512
	OptionsMax      = 64
	OptionBytesMax  = 4 << 10 // of one value
	DevicesMax      = 1024    // device nodes of a task, all reservations together
	MountsMax       = 1024
	ReservationsMax = 128
	CDINamesMax     = 256
)

// When an image is pulled.
const (
	PullMissing = "missing" // when the node has none of that name; the default
	PullAlways  = "always"  // before every start, so that the newest runs
	PullNever   = "never"   // the node must have it
)

// The networks of a container.
const (
	NetworkHost    = "host"    // the node's own: what gangs over several nodes need
	NetworkPrivate = "private" // a bridge of the driver; rank names resolve among its tasks
	NetworkNone    = "none"    // loopback only
)

// Container is what a driver of containers reads besides the rest of a
// TaskSpec; other drivers ignore it. The task's directory appears under its
// own path in the container, writable.
type Container struct {
	Image string `json:"image"`
	Pull  string `json:"pull,omitempty"` // one of the Pull words; "" means PullMissing

	// ImageEntrypoint puts the image's entrypoint before the command. Without
	// it the command replaces entrypoint and command of the image.
	ImageEntrypoint bool `json:"image_entrypoint,omitempty"`

	Network string `json:"network,omitempty"` // one of the Network words; "" means the driver's default

	ReadOnlyRoot bool `json:"read_only_root,omitempty"` // the image's files cannot be changed

	// RDMA allows the task to pin memory without a limit, which RDMA needs;
	// the device nodes come as devices.
	RDMA bool `json:"rdma,omitempty"`

	// Options are settings of the container engine by name, such as
	// "cap_add" or "privileged". Each is refused unless the node's
	// configuration allows it.
	Options map[string]string `json:"options,omitempty"`
}

// Reservation is what a device plugin says that a task needs to see its
// devices and no others. A driver takes the part that it can use. What is in
// here comes from the node, not from the job.
type Reservation struct {
	// Env wins over the image's and the job's own variables of these names.
	Env    map[string]string `json:"env,omitempty"`
	Nodes  []Device          `json:"nodes,omitempty"`
	Mounts []Mount           `json:"mounts,omitempty"` // libraries and tools, for a container without the vendor's runtime
	CDI    []string          `json:"cdi,omitempty"`    // names such as "nvidia.com/gpu=GPU-…"
	// Engine is how the container engine's own support is asked; nil: there
	// is none for these devices.
	Engine *EngineDevices `json:"engine,omitempty"`
}

// EngineDevices asks a container engine that knows a vendor.
type EngineDevices struct {
	Driver       string            `json:"driver,omitempty"`       // of a device request; "": it has none
	IDs          []string          `json:"ids,omitempty"`          // for the device request
	Capabilities []string          `json:"capabilities,omitempty"` // for the device request
	Runtime      string            `json:"runtime,omitempty"`      // name of the OCI runtime; "": there is none
	Env          map[string]string `json:"env,omitempty"`          // for that runtime, besides Reservation.Env
}

func (c *Container) validate() error {
	if c == nil {
		return nil
	}
	switch {
	case c.Image == "" || len(c.Image) > ImageBytesMax || strings.ContainsFunc(c.Image, func(r rune) bool { return r <= ' ' || r > '~' }):
		return badSpec("container.image", "want the name of an image of at most %d characters, got %q", ImageBytesMax, c.Image)
	case !slices.Contains([]string{"", PullMissing, PullAlways, PullNever}, c.Pull):
		return badSpec("container.pull", "want always, missing or never, got %q", c.Pull)
	case !slices.Contains([]string{"", NetworkHost, NetworkPrivate, NetworkNone}, c.Network):
		return badSpec("container.network", "want host, private or none, got %q", c.Network)
	case len(c.Options) > OptionsMax:
		return badSpec("container.options", "has %d entries, at most %d are allowed", len(c.Options), OptionsMax)
	}
	for name, value := range c.Options {
		if len(name)+len(value) > OptionBytesMax || strings.ContainsRune(name+value, 0) {
			return badSpec("container.options", "%.40q is too long or has a NUL byte", name)
		}
	}
	return nil
}

// checkDevices checks device nodes and mounts, those of the job and those of
// the reservations.
func (s *TaskSpec) checkDevices() error {
	if len(s.Reservations) > ReservationsMax {
		return badSpec("reservations", "has %d entries, at most %d are allowed", len(s.Reservations), ReservationsMax)
	}
	nodes, mounts, names := slices.Clone(s.Devices), slices.Clone(s.Mounts), 0
	for i := range s.Reservations {
		nodes = append(nodes, s.Reservations[i].Nodes...)
		mounts = append(mounts, s.Reservations[i].Mounts...)
		names += len(s.Reservations[i].CDI)
	}
	switch {
	case len(nodes) > DevicesMax:
		return badSpec("devices", "has %d entries, at most %d are allowed", len(nodes), DevicesMax)
	case len(mounts) > MountsMax:
		return badSpec("mounts", "has %d entries, at most %d are allowed", len(mounts), MountsMax)
	case names > CDINamesMax:
		return badSpec("reservations", "has %d CDI names, at most %d are allowed", names, CDINamesMax)
	}
	for _, node := range nodes {
		if !filepath.IsAbs(node.HostPath) || node.TaskPath != "" && !cleanAbsolute(node.TaskPath) ||
			strings.Trim(node.Access, "rwm") != "" || strings.ContainsRune(node.HostPath, 0) {
			return badSpec("devices", "%q: want absolute paths and an access of r, w and m", node.HostPath)
		}
	}
	for _, mount := range mounts {
		if !filepath.IsAbs(mount.HostPath) || strings.ContainsRune(mount.HostPath, 0) || !cleanAbsolute(mount.TaskPath) {
			return badSpec("mounts", "%q at %q: want an absolute path and a clean absolute one", mount.HostPath, mount.TaskPath)
		}
	}
	return nil
}

package docker

import "nomadlike/plugins/driver"

// container is what the engine is asked to make. It has no field for what no
// task may ever have, such as the host's process namespace.
type container struct {
	Name       string
	Image      string // by id, so that nobody renames another one in between
	Entrypoint []string
	Env        []string // for the engine's own hooks; the task's comes by the init
	User       string
	Hostname   string
	Labels     map[string]string
	// StopSeconds is what a docker stop, or the engine's own end, waits for
	// the task.
	StopSeconds int

	Network string   // "host", "none", or the name of a network
	Aliases []string // under which others on that network find the task

	Mounts       []mount
	ReadOnlyRoot bool

	NanoCPUs int64
	Memory   int64
	PIDs     int64
	Shm      int64
	Ulimits  []driver.Ulimit

	CapAdd   []string
	Security []string

	Devices  []driver.Device
	Requests []deviceRequest
	Runtime  string

	// What only options set.
	Privileged   bool
	IPC          string
	UTS          string
	UserNS       string
	CgroupParent string
	ExtraHosts   []string
	Sysctls      map[string]string
	VolumesFrom  []string
}

type mount struct {
	Source, Target string
	ReadOnly       bool
}

// deviceRequest asks the engine for devices that it knows by itself.
type deviceRequest struct {
	Driver       string
	IDs          []string
	Capabilities []string
}

// Labels of our containers.
const (
	labelCluster = "nomadlike.cluster"
	labelNode    = "nomadlike.node"
	labelTask    = "nomadlike.task"
	labelAlloc   = "nomadlike.alloc"
	labelJob     = "nomadlike.job"
	labelAttempt = "nomadlike.attempt"
	labelRank    = "nomadlike.rank"
	labelImage   = "nomadlike.image"
)

// labelNames lists them all.
func labelNames() []string {
	return []string{labelCluster, labelNode, labelTask, labelAlloc, labelJob, labelAttempt, labelRank, labelImage}
}

// image is what the engine knows of one.
type image struct {
	ID         string
	Tags       []string
	Digests    []string // "name@sha256:…"
	Bytes      int64
	Env        []string
	Entrypoint []string
	Cmd        []string
	User       string
	WorkingDir string
	Labels     map[string]string
}

// containerState is what the engine knows of a container.
type containerState struct {
	ID      string
	Labels  map[string]string
	Running bool
	Paused  bool
	// Created is a container that never ran.
	Created    bool
	PID        int
	ExitCode   int
	OOMKilled  bool
	Error      string
	StartedNS  int64
	FinishedNS int64
}

// engineInfo is what the engine says of itself.
type engineInfo struct {
	Version       string
	APIVersion    string
	Kernel        string
	CgroupVersion string
	CgroupDriver  string
	Storage       string
	RootDir       string
	Containerd    string
	Runc          string
	Runtimes      []string
	Security      []string
	CDIDirs       []string
	LiveRestore   bool
	Arch          string
}

package driver

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver/taskside"
)

// Limits of a TaskSpec. The kernel's own limit for arguments and environment
// together is about 2 MiB; these keep every message far below it.
const (
	TaskIDLengthMax  = 80 // with ".sock" it fits into the address of a socket
	ArgumentsMax     = 4096
	ArgumentBytesMax = 512 << 10 // of the command together
	EnvMax           = 4096
	EnvBytesMax      = 1 << 20 // of the environment together
	HostsMax         = 8192
	HostsBytesMax    = 1 << 20 // of the lines together
	HostnameMax      = 63
	KillGraceMax     = 24 * time.Hour
)

// TaskSpec is all that a driver needs to know to run a task. launch and
// client/alloc fill it; a driver adds nothing of the agent's own environment.
type TaskSpec struct {
	ID      TaskID `json:"id"`
	AllocID string `json:"alloc_id"`
	JobName string `json:"job_name"`
	Attempt uint64 `json:"attempt"`
	Rank    int    `json:"rank"`

	Command []string `json:"command,omitempty"` // argv; no shell is put around it
	Env     []string `json:"env,omitempty"`     // complete, as NAME=value; the driver adds only a missing PATH and its own task marker
	// EnvBase is what a person's shell has, below Env and, in a container, below
	// the image's own variables. EnvNamed are those of Env whose values name other
	// variables, by the rule of structs.ExpandEnv. Both are empty for a driver
	// without images: all is in Env then.
	EnvBase  []string `json:"env_base,omitempty"`
	EnvNamed []string `json:"env_named,omitempty"`
	// PathFirst and PathLast are directories for programs before and behind
	// those of PATH, wherever PATH comes from.
	PathFirst []string `json:"path_first,omitempty"`
	PathLast  []string `json:"path_last,omitempty"`
	Dir       string   `json:"dir,omitempty"`  // working directory; TaskDir when empty
	TaskDir   string   `json:"task_dir"`       // absolute; made by the client, owned by the task
	User      string   `json:"user,omitempty"` // name, number or "uid:gid" that the node need not know; the agent's own when empty

	// Hold makes a task without a command: it lasts until it is stopped, and
	// commands are put into it by Exec. MPI workers are such tasks.
	Hold bool `json:"hold,omitempty"`

	Hostname string   `json:"hostname,omitempty"` // UTS name; the node's own when empty
	Hosts    []string `json:"hosts,omitempty"`    // lines of a private /etc/hosts; the node's own when empty

	Resources Resources `json:"resources"`
	Ulimits   []Ulimit  `json:"ulimits,omitempty"` // the node's own for those that are not named
	Devices   []Device  `json:"devices,omitempty"`
	Mounts    []Mount   `json:"mounts,omitempty"`
	// Reservations are what device plugins ask for; they win over Env.
	Reservations []Reservation `json:"reservations,omitempty"`
	Container    *Container    `json:"container,omitempty"` // for drivers of containers

	LogDir      string        `json:"log_dir"` // absolute, not inside TaskDir; made with mode 0700 when missing
	LogRotation LogRotation   `json:"log_rotation"`
	KillGrace   time.Duration `json:"kill_grace"` // grace when the task is stopped by the node's own shutdown

	// Mask are texts that the driver does not let into logs: see tasklog.Masker. They
	// are in no record. A driver masks when it says so in its fingerprint, by
	// structs.AttrMasks; others are given none, nor tasks with secrets.
	Mask []structs.Mask `json:"-"`
	// ImageCredentials sign in to the registry of the container's image, instead of
	// what the node has for it: USER:PASSWORD, or what docker login writes. They are in
	// no record and go to the drivers of this program alone.
	ImageCredentials []byte `json:"-"`
	// Secrets are the secrets that the task is given; their values are in Env of a
	// spec that is started, and in no record of one.
	Secrets []structs.SecretUse `json:"secrets,omitempty"`
}

// Resources bounds a task. A driver that cannot enforce a bound ignores it
// and says so in its fingerprint attributes.
type Resources struct {
	CPU    float64 `json:"cpu"`    // cores
	Memory int64   `json:"memory"` // bytes
	Shm    int64   `json:"shm"`    // bytes of /dev/shm
	PIDs   int64   `json:"pids"`   // processes and threads at a time; 0 means the driver's default
}

// Device is a device node of this machine that the task may open.
type Device struct {
	HostPath string `json:"host_path"`
	TaskPath string `json:"task_path"`
	Access   string `json:"access"` // a subset of "rwm"
}

// Mount puts a file or directory of this machine into the task.
type Mount struct {
	HostPath string `json:"host_path"`
	TaskPath string `json:"task_path"`
	ReadOnly bool   `json:"read_only"`
	// Within is a directory of this machine that the administrator has given
	// for what lies below it: HostPath is that directory or a path below it, and
	// the driver follows no link that leads out of it. "" marks a path that the
	// job has named, which the driver's own rules judge.
	Within string `json:"within,omitempty"`
}

// LogRotation bounds what stdout and stderr keep, each for itself. Zero
// values mean the defaults.
type LogRotation struct {
	MaxFiles int   `json:"max_files"` // 2 or more
	MaxBytes int64 `json:"max_bytes"` // of each file, 4 KiB or more
}

// Defaults and least values of LogRotation.
const (
	LogFilesDefault     = 10
	LogFilesMin         = 2
	LogFileBytesDefault = 10 << 20
	LogFileBytesMin     = 4 << 10
)

// WithDefaults replaces zero values by the defaults and too small ones by the
// least allowed ones.
func (r LogRotation) WithDefaults() LogRotation {
	if r.MaxFiles == 0 {
		r.MaxFiles = LogFilesDefault
	}
	if r.MaxBytes == 0 {
		r.MaxBytes = LogFileBytesDefault
	}
	r.MaxFiles = max(r.MaxFiles, LogFilesMin)
	r.MaxBytes = max(r.MaxBytes, LogFileBytesMin)
	return r
}

// ExecSpec is a command to be run inside a task.
type ExecSpec struct {
	Command []string   `json:"command"`
	Env     []string   `json:"env,omitempty"` // put over the task's environment, name by name
	Dir     string     `json:"dir,omitempty"` // the task's working directory when empty
	TTY     bool       `json:"tty,omitempty"`
	Size    WindowSize `json:"size,omitzero"` // first size of the terminal
	// Survive lets the command live on when its caller goes away, as long as
	// the task lives; remote shells of MPI daemons ask for it.
	Survive bool `json:"survive,omitempty"`
	// Side runs one of the programs that the driver brings along, in place of one of
	// the task's: Command has its words, see package taskside. Drivers that bring
	// none refuse with ErrNoSide.
	Side bool `json:"side,omitempty"`
}

// ErrNoSide says that a driver brings no programs into its tasks.
var ErrNoSide = errors.New("the driver brings no programs into its tasks")

// ValidTaskID reports whether id may name a task. It becomes a directory name,
// so only ASCII letters, digits, '.', '_' and '-' are legal, and no dot first.
func ValidTaskID(id TaskID) bool {
	if id == "" || len(id) > TaskIDLengthMax || id[0] == '.' || id[0] == '-' {
		return false
	}
	for i := 0; i < len(id); i++ {
		c := id[i]
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alnum && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

// Validate checks what a driver must be able to rely on. The error is a
// *structs.Error with the id "driver.bad_spec" naming the field.
func (s *TaskSpec) Validate() error {
	switch {
	case !ValidTaskID(s.ID):
		return badSpec("id", "want 1 to %d of letters, digits, '.', '_', '-'", TaskIDLengthMax)
	case s.Hold && len(s.Command) > 0:
		return badSpec("command", "a held task has none")
	case !cleanAbsolute(s.TaskDir):
		return badSpec("task_dir", "want a clean absolute path, got %q", s.TaskDir)
	case !cleanAbsolute(s.LogDir):
		return badSpec("log_dir", "want a clean absolute path, got %q", s.LogDir)
	case s.LogDir == s.TaskDir || strings.HasPrefix(s.LogDir, s.TaskDir+"/"):
		return badSpec("log_dir", "must not lie inside the task's own directory")
	case s.Dir != "" && !filepath.IsAbs(s.Dir):
		return badSpec("dir", "want an absolute path, got %q", s.Dir)
	case strings.IndexByte(s.Dir, 0) >= 0:
		return badSpec("dir", "contains a NUL byte")
	case !validHostname(s.Hostname):
		return badSpec("hostname", "want at most %d letters, digits, '-', '.', got %q", HostnameMax, s.Hostname)
	case s.KillGrace < 0 || s.KillGrace > KillGraceMax:
		return badSpec("kill_grace", "want 0 to %s, got %s", KillGraceMax, s.KillGrace)
	case s.Resources.CPU < 0 || math.IsNaN(s.Resources.CPU) || math.IsInf(s.Resources.CPU, 0):
		return badSpec("resources.cpu", "want a number of cores, got %v", s.Resources.CPU)
	case s.Resources.Memory < 0 || s.Resources.Shm < 0 || s.Resources.PIDs < 0:
		return badSpec("resources", "want sizes of 0 or more bytes, and 0 or more processes")
	case s.LogRotation.MaxFiles < 0 || s.LogRotation.MaxBytes < 0:
		return badSpec("log_rotation", "want 0 or more")
	}
	if !s.Hold {
		if err := checkCommand(s.Command); err != nil {
			return err
		}
	}
	if err := checkEnv(s.Env); err != nil {
		return err
	}
	for _, dir := range slices.Concat(s.PathFirst, s.PathLast) {
		if !cleanAbsolute(dir) || strings.Contains(dir, ":") {
			return badSpec("path", "want clean absolute paths without a colon, got %q", dir)
		}
	}
	if err := s.checkDevices(); err != nil {
		return err
	}
	if err := s.Container.validate(); err != nil {
		return err
	}
	if err := checkUlimits(s.Ulimits); err != nil {
		return err
	}
	return checkHosts(s.Hosts)
}

// Validate checks what a driver must be able to rely on, as TaskSpec.Validate.
func (s *ExecSpec) Validate() error {
	if err := checkCommand(s.Command); err != nil {
		return err
	}
	if s.Side && (s.TTY || !taskside.Known(s.Command)) {
		return badSpec("command", "%q is no program that a driver brings", s.Command)
	}
	if s.Dir != "" && (!filepath.IsAbs(s.Dir) || strings.IndexByte(s.Dir, 0) >= 0) {
		return badSpec("dir", "want an absolute path, got %q", s.Dir)
	}
	return checkEnv(s.Env)
}

func checkCommand(command []string) error {
	if len(command) == 0 || command[0] == "" {
		return badSpec("command", "is empty")
	}
	if len(command) > ArgumentsMax {
		return badSpec("command", "has %d words, at most %d are allowed", len(command), ArgumentsMax)
	}
	bytes := 0
	for i, word := range command {
		if strings.IndexByte(word, 0) >= 0 {
			return badSpec("command", "word %d contains a NUL byte", i)
		}
		bytes += len(word) + 1
	}
	if bytes > ArgumentBytesMax {
		return badSpec("command", "has %d bytes, at most %d are allowed", bytes, ArgumentBytesMax)
	}
	return nil
}

func checkEnv(env []string) error {
	if len(env) > EnvMax {
		return badSpec("env", "has %d entries, at most %d are allowed", len(env), EnvMax)
	}
	bytes := 0
	for i, entry := range env {
		if strings.IndexByte(entry, '=') < 1 || strings.IndexByte(entry, 0) >= 0 {
			return badSpec("env", "entry %d is not of the form NAME=value", i)
		}
		bytes += len(entry) + 1
	}
	if bytes > EnvBytesMax {
		return badSpec("env", "has %d bytes, at most %d are allowed", bytes, EnvBytesMax)
	}
	return nil
}

func checkHosts(hosts []string) error {
	if len(hosts) > HostsMax {
		return badSpec("hosts", "has %d lines, at most %d are allowed", len(hosts), HostsMax)
	}
	bytes := 0
	for i, line := range hosts {
		if strings.ContainsAny(line, "\n\x00") {
			return badSpec("hosts", "entry %d is more than one line", i)
		}
		bytes += len(line) + 1
	}
	if bytes > HostsBytesMax {
		return badSpec("hosts", "has %d bytes, at most %d are allowed", bytes, HostsBytesMax)
	}
	return nil
}

func cleanAbsolute(path string) bool {
	return filepath.IsAbs(path) && filepath.Clean(path) == path && path != "/" && strings.IndexByte(path, 0) < 0
}

func validHostname(name string) bool {
	if len(name) > HostnameMax {
		return false
	}
	for i := 0; i < len(name); i++ {
		c := name[i]
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alnum && (i == 0 || c != '-' && c != '.') {
			return false
		}
	}
	return true
}

func badSpec(field, format string, args ...any) error {
	return structs.NewError(structs.CodeInvalid, "driver.bad_spec",
		"field", field, "problem", fmt.Sprintf(format, args...))
}

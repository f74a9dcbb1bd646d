package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"nomadlike/plugins/driver/tasklog"
	"nomadlike/plugins/driver/taskproc"
	"nomadlike/plugins/driver/taskside"
)

// MarkerEnv is the environment variable that marks every process of a task.
// Its value is "<task id>:<random>".
const MarkerEnv = "NOMADLIKE_TASK_MARKER"

// Protocol is the version of start requests. Driver and supervisor are built
// together, so another one means a stale embedded program. Requests to tasks
// that run are only ever added to: an agent talks to supervisors of its
// predecessor.
//
//	1  2026-11-21  first
//	2  2026-11-21  cgroups are made by the driver, of version 1 too
//	3  2026-11-21  isolation
//	4  2026-11-21  limits of processes
const Protocol = 4

// SpecBytesMax bounds an encoded start request.
const SpecBytesMax = 8 << 20

// Spec is what the driver asks a supervisor to run. Names and sizes were
// checked by the driver; Validate repeats only what protects this process.
type Spec struct {
	TaskID     string      `json:"task_id"`
	Marker     string      `json:"marker"`
	Command    []string    `json:"command,omitempty"`
	Env        []string    `json:"env,omitempty"` // complete, marker and PATH included
	Dir        string      `json:"dir"`
	Credential *Credential `json:"credential,omitempty"` // nil: the supervisor's own
	Hold       bool        `json:"hold,omitempty"`
	Hostname   string      `json:"hostname,omitempty"`
	Hosts      string      `json:"hosts,omitempty"`  // text of a private /etc/hosts
	Passwd     string      `json:"passwd,omitempty"` // text of /etc/passwd in an isolated task
	LogDir     string      `json:"log_dir"`
	LogFiles   int         `json:"log_files"`
	LogBytes   int64       `json:"log_bytes"`         // of each file
	GraceMS    int64       `json:"grace_ms"`          // when the supervisor itself is asked to end
	Cgroup     string      `json:"cgroup,omitempty"`  // directory of version 2, made by the driver
	Cgroups    []Cgroup    `json:"cgroups,omitempty"` // of version 1
	Isolation  *Isolation  `json:"isolation,omitempty"`
	Limits     []Limit     `json:"limits,omitempty"`
	Lease      string      `json:"lease,omitempty"` // file of the node's lease, for a task that ends with it
	// Mask are texts that the logs do not hold.
	Mask []tasklog.Masked `json:"mask,omitempty"`
}

// Credential is a resolved user.
type Credential struct {
	UID    uint32   `json:"uid"`
	GID    uint32   `json:"gid"`
	Groups []uint32 `json:"groups,omitempty"`
}

// Validate checks what this process relies on.
func (s *Spec) Validate() error {
	switch {
	case s.TaskID == "" || strings.ContainsAny(s.TaskID, "/\x00"):
		return errors.New("spec: bad task id")
	case s.Hold == (len(s.Command) > 0):
		return errors.New("spec: want either a command or hold")
	case len(s.Command) > 0 && s.Command[0] == "":
		return errors.New("spec: empty command")
	case !filepath.IsAbs(s.Dir) || !filepath.IsAbs(s.LogDir):
		return errors.New("spec: directories must be absolute")
	case s.Lease != "" && !filepath.IsAbs(s.Lease):
		return errors.New("spec: lease must be absolute")
	case s.Cgroup != "" && !filepath.IsAbs(s.Cgroup):
		return errors.New("spec: cgroup must be absolute")
	case s.LogFiles < 2 || s.LogBytes < 1:
		return errors.New("spec: want two or more log files of one or more bytes")
	case s.GraceMS < 0 || len(s.Hostname) > 64:
		return errors.New("spec: grace or host name out of range")
	}
	for _, cgroup := range s.Cgroups {
		if !filepath.IsAbs(cgroup.Dir) || cgroup.Controller == "" {
			return errors.New("spec: cgroups must be absolute")
		}
	}
	if err := s.Isolation.validate(); err != nil {
		return err
	}
	if err := validLimits(s.Limits); err != nil {
		return err
	}
	return noNUL(s.Command, s.Env)
}

func noNUL(lists ...[]string) error {
	for _, list := range lists {
		for _, word := range list {
			if strings.IndexByte(word, 0) >= 0 {
				return errors.New("spec: NUL byte in command or environment")
			}
		}
	}
	return nil
}

// ExecSpec is a command to be run inside the task. Its standard streams come
// as descriptors with the request: three of them, or the terminal alone.
type ExecSpec struct {
	Command []string `json:"command"`
	Env     []string `json:"env,omitempty"` // put over the task's, name by name
	Dir     string   `json:"dir,omitempty"`
	TTY     bool     `json:"tty,omitempty"`
	Survive bool     `json:"survive,omitempty"`
	Side    bool     `json:"side,omitempty"` // this program in the role of package taskside that Command names
}

// Request is one message to a supervisor.
type Request struct {
	Op       string    `json:"op"`
	Protocol int       `json:"protocol,omitempty"` // start
	Spec     *Spec     `json:"spec,omitempty"`     // start
	Signal   int       `json:"signal,omitempty"`   // stop, signal
	GraceMS  int64     `json:"grace_ms,omitempty"`
	BusyMS   int64     `json:"busy_ms,omitempty"` // throttle
	IdleMS   int64     `json:"idle_ms,omitempty"` // throttle; 0 ends it
	Exec     *ExecSpec `json:"exec,omitempty"`
}

// The requests. OpStart is accepted once, on descriptor 3; after its answer
// that connection waits. OpSignal on the connection of an exec goes to the
// executed command. A closed connection ends its exec, unless it survives.
const (
	OpStart    = "start"
	OpWait     = "wait"
	OpStop     = "stop"
	OpSignal   = "signal"
	OpPause    = "pause"
	OpContinue = "continue"
	OpStats    = "stats"
	OpExec     = "exec"
	OpThrottle = "throttle"
	// OpProbe comes instead of OpStart, with a spec whose isolation is tried
	// out; the supervisor ends after its answer.
	OpProbe = "probe"
)

// Reply is one message from a supervisor: exactly one field is set, or none
// for a plain "done". OpExec is answered twice: Started, then Exit.
type Reply struct {
	Failure *taskproc.Failure `json:"failure,omitempty"`
	Started *State            `json:"started,omitempty"`
	Exit    *Exit             `json:"exit,omitempty"`
	Stats   *Stats            `json:"stats,omitempty"`
	Probe   *Probe            `json:"probe,omitempty"`
}

// Stats is a measurement of the whole tree.
type Stats struct {
	CPUTicks  uint64 `json:"cpu_ticks"` // proctree.TicksPerSecond to the second
	RSSBytes  int64  `json:"rss_bytes"`
	Processes int    `json:"processes"`
	Threads   int    `json:"threads"`
}

// DecodeRequest reads a request and checks what belongs to its kind.
func DecodeRequest(data []byte) (*Request, error) {
	var request Request
	if err := json.Unmarshal(data, &request); err != nil {
		return nil, fmt.Errorf("decode request: %w", err)
	}
	switch request.Op {
	case OpStart, OpProbe:
		if request.Spec == nil {
			return nil, errors.New("decode request: start without spec")
		}
		if request.Protocol != Protocol {
			return nil, fmt.Errorf("decode request: protocol %d, want %d: the supervisor is of another build than the agent", request.Protocol, Protocol)
		}
		return &request, request.Spec.Validate()
	case OpStop, OpSignal:
		if request.Signal < 1 || request.Signal > 64 || request.GraceMS < 0 || request.GraceMS > 1<<40 {
			return nil, errors.New("decode request: signal or grace out of range")
		}
	case OpExec:
		if request.Exec == nil || len(request.Exec.Command) == 0 || request.Exec.Command[0] == "" {
			return nil, errors.New("decode request: exec without command")
		}
		if request.Exec.Side && !taskside.Known(request.Exec.Command) {
			return nil, errors.New("decode request: exec of an unknown role")
		}
		return &request, noNUL(request.Exec.Command, request.Exec.Env, []string{request.Exec.Dir})
	case OpThrottle:
		if request.BusyMS < 0 || request.BusyMS > throttleMostMS || request.IdleMS < 0 || request.IdleMS > throttleMostMS {
			return nil, errors.New("decode request: throttle out of range")
		}
	case OpWait, OpPause, OpContinue, OpStats:
	default:
		return nil, fmt.Errorf("decode request: unknown op %q", request.Op)
	}
	return &request, nil
}

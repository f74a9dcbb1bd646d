package structs

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of what a node says of its allocations besides their statuses.
const (
	CheckpointPathMax = 4096 // bytes
	CheckpointsKept   = 8    // of a subjob, oldest dropped first
	NoteParamsMax     = 16   // parameters of a told event
	NoteParamMax      = 1024 // bytes of one
	AvoidMax          = 64   // nodes that a subjob avoids
	SeenMax           = 24   // facts that ranks are compared by
	SeenValueMax      = 256  // bytes of one, and of its name
)

// SavedCheckpoint is a checkpoint that a training registered: where it lies, in
// the words of the tasks, and how far the training was.
type SavedCheckpoint struct {
	Path    string   `json:"path"`
	Step    int64    `json:"step,omitempty"` // 0: not told
	JobID   string   `json:"job_id"`         // whose attempt saved it
	Attempt uint64   `json:"attempt"`
	Rank    int      `json:"rank"`
	SavedAt UnixNano `json:"saved_at"` // by the clock of its node
}

// CheckpointPathProblem is the message id of what is wrong with the path of a
// checkpoint, "" for a good one: it goes into the environment of later
// attempts and onto terminals.
func CheckpointPathProblem(path string) string {
	switch {
	case path == "":
		return "client.checkpoint_path_empty"
	case len(path) > CheckpointPathMax:
		return "client.checkpoint_path_long"
	case !utf8.ValidString(path) || strings.ContainsFunc(path, unicode.IsControl):
		return "client.checkpoint_path_bad"
	}
	return ""
}

// AllocNote is what a node says of an allocation besides its status. A note
// of an old attempt, of a foreign node or with a Seq that is not higher than
// that of the last note of the allocation changes nothing. Exactly one of
// Checkpoint, Told, Progress, Slow, Hold and Evicted is set.
type AllocNote struct {
	AllocID string   `json:"alloc_id"`
	Attempt uint64   `json:"attempt"`
	Seq     uint64   `json:"seq"` // rises from note to note of an allocation
	At      UnixNano `json:"at"`  // by the node's clock

	Checkpoint *SavedCheckpoint `json:"checkpoint,omitempty"` // Path, Step and SavedAt are set
	Told       *Told            `json:"told,omitempty"`
	Progress   *Progress        `json:"pace,omitempty"` // the rank has gone silent, or is heard again
	Slow       *Slowness        `json:"slow,omitempty"` // the performance watch found something
	Hold       *HoldNote        `json:"hold,omitempty"` // the node has let go of what a debug hold held
	Idle       *IdleNote        `json:"idle,omitempty" since:"16"`
	Evicted    *Reason          `json:"evicted,omitempty"` // what it runs on has to be left: the node has told its rank to save its work
}

// HoldNote reports that a debug hold has ended on its node, or that its devices
// are not in use any more.
type HoldNote struct {
	Over  bool    `json:"over,omitempty"`  // otherwise only its devices were let go
	Cause *Reason `json:"cause,omitempty"` // why it ended early; nil: its time was over, or somebody ended it
}

// IdleNote reports that none of a rank's devices has had anything to do for a while,
// or that one of them has again.
type IdleNote struct {
	Since UnixNano `json:"since"` // by the node's clock; 0: one is at work
}

// ToldEvent reports whether a node may make an event with the id known.
func ToldEvent(id string) bool {
	switch id {
	case EventPrechecked, EventPrecheckFailed, EventHookDone, EventHookFailed, EventDataPrepared, EventDataFailed, EventImageComing, EventImagePulled,
		EventCodeComing, EventCodeReady, EventEnvironment, EventEnvironmentFound, EventPatrolFailed, EventPatrolWell, EventDeviceFault, EventDeviceFaultShared:
		return true
	}
	return false
}

// The events that nodes tell of their allocations.
const (
	EventPrechecked     = "event.alloc.prechecked"
	EventPrecheckFailed = "event.alloc.precheck_failed"
	EventHookDone       = "event.alloc.hook_done"
	EventHookFailed     = "event.alloc.hook_failed"
	EventDataPrepared   = "event.alloc.data_prepared"
	EventDataFailed     = "event.alloc.data_failed"
	EventImageComing    = "event.alloc.image_coming"
	EventImagePulled    = "event.alloc.image_pulled"
	EventCodeComing     = "event.alloc.code_coming"
	EventCodeReady      = "event.alloc.code_ready"

	EventEnvironment        = "event.alloc.environment"
	EventEnvironmentFound   = "event.alloc.environment_found"
	EventEnvironmentDiffers = "event.alloc.environment_differs" // made by the servers
	EventPatrolFailed       = "event.alloc.patrol_failed"
	EventPatrolWell         = "event.alloc.patrol_well"
	// Brought about by the task, or by one of those that share the card. Only where all
	// servers know them: wire.ProtocolTaskFaults.
	EventDeviceFault       = "event.alloc.device_fault"
	EventDeviceFaultShared = "event.alloc.device_fault_shared"
)

// Told is an event that a node makes known about one of its allocations.
type Told struct {
	Event    string            `json:"event"` // message id, one of ToldEvents
	Params   map[string]string `json:"params,omitempty"`
	Severity string            `json:"severity,omitempty"` // "" | warn | error
	// Seen are facts of an environment that all ranks of a gang should have in
	// common; at most SeenMax.
	Seen map[string]string `json:"seen,omitempty"`
}

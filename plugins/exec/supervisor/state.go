package supervisor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Names in the state directory: a record and, while its task lives, a control
// socket per task.
const (
	RecordSuffix = ".json"
	SocketSuffix = ".sock"
)

// RecordVersion is written into state and exit records; greater ones come
// from a later nomadlike and are refused.
const RecordVersion = 1

// recordBytesMax bounds a record.
const recordBytesMax = 64 << 10

// ErrBadRecord is returned for a record that is damaged or too new.
var ErrBadRecord = errors.New("bad record")

// Identity is a process id that was not reused.
type Identity struct {
	PID        int    `json:"pid"`
	StartTicks uint64 `json:"start_ticks"`
}

// State is what the supervisor is and runs, recorded before it answers the
// start request.
type State struct {
	Version    int      `json:"version"`
	TaskID     string   `json:"task_id"`
	Marker     string   `json:"marker"`
	BootID     string   `json:"boot_id"`
	Supervisor Identity `json:"supervisor"`
	Command    Identity `json:"command,omitzero"` // also its process group and session; zero for a held task
	Init       Identity `json:"init,omitzero"`    // first process of the task's process namespace
	StartedNS  int64    `json:"started_ns"`       // Unix time
	Cgroup     string   `json:"cgroup,omitempty"`
	Notes      []string `json:"notes,omitempty"` // what could not be done, for the agent's log
}

// Exit is how a task, or a command inside it, has ended.
type Exit struct {
	Version    int    `json:"version"`
	TaskID     string `json:"task_id,omitempty"`
	Code       int    `json:"code"`             // 128 plus Signal for a killed one
	Signal     int    `json:"signal,omitempty"` // that killed it
	Lost       bool   `json:"lost,omitempty"`   // nobody saw the exit
	OOMKills   int    `json:"oom_kills,omitempty"`
	Killed     int    `json:"killed,omitempty"` // processes that a lost supervisor had left
	Unkillable []int  `json:"unkillable,omitempty"`
	StartedNS  int64  `json:"started_ns"`
	FinishedNS int64  `json:"finished_ns"`
}

// Record is what is known of a task without asking its supervisor.
type Record struct {
	State *State // nil when it was never completely written
	Exit  *Exit  // nil while the task has not ended
}

// ReadRecord reads the record of a task. The error satisfies
// errors.Is(os.ErrNotExist) when there is none.
func ReadRecord(dir, taskID string) (Record, error) {
	data, err := readBounded(filepath.Join(dir, taskID+RecordSuffix))
	if err != nil {
		return Record{}, err
	}
	return DecodeRecord(data)
}

// DecodeRecord reads the text of a record: a line with the state, and one
// with the exit once the task has ended. A line that was not written to its
// end, because the machine or the writer died, is as good as none.
func DecodeRecord(data []byte) (Record, error) {
	var record Record
	for len(data) > 0 {
		line, rest, whole := bytes.Cut(data, []byte("\n"))
		data = rest
		if !whole || len(line) == 0 {
			continue
		}
		var entry struct {
			State *State `json:"state"`
			Exit  *Exit  `json:"exit"`
		}
		if json.Unmarshal(line, &entry) != nil {
			continue
		}
		if entry.State != nil {
			if err := entry.State.check(); err != nil {
				return Record{}, err
			}
			record.State = entry.State
		}
		if entry.Exit != nil {
			if entry.Exit.Version < 1 || entry.Exit.Version > RecordVersion {
				return Record{}, fmt.Errorf("read exit: %w: version %d", ErrBadRecord, entry.Exit.Version)
			}
			record.Exit = entry.Exit
		}
	}
	return record, nil
}

// DecodeState reads a state on its own, as handles carry it.
func DecodeState(data []byte) (*State, error) {
	var state State
	if err := json.Unmarshal(data, &state); err != nil {
		return nil, fmt.Errorf("read state: %w: %w", ErrBadRecord, err)
	}
	return &state, state.check()
}

// check refuses ids that must never be signalled.
func (s *State) check() error {
	if s.Version < 1 || s.Version > RecordVersion || s.Supervisor.PID < 2 || s.Command.PID == 1 || s.Command.PID < 0 {
		return fmt.Errorf("read state: %w", ErrBadRecord)
	}
	return nil
}

// recordFile is the record of a running task, open for writing.
type recordFile struct{ file *os.File }

// createRecord makes the record of a new task, with space for all that will
// be written: a full disk cannot keep the exit from being recorded. Until
// release it is held against agents; whoever has made it owns the names of
// the task, that of the socket too.
func createRecord(dir, taskID string) (*recordFile, error) {
	file, err := os.OpenFile(filepath.Join(dir, taskID+RecordSuffix), os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make record: %w", err)
	}
	info, err := lock(file)
	if err == nil && info.Size > 0 {
		err = ErrLocked
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("make record: %w", err) // an agent was quicker: it is not ours
	}
	r := &recordFile{file: file}
	const keepSize, reserve = 1, 4 << 10 // FALLOC_FL_KEEP_SIZE
	if err := syscall.Fallocate(int(file.Fd()), keepSize, 0, reserve); err != nil && err != syscall.EOPNOTSUPP {
		r.remove()
		return nil, fmt.Errorf("make record: %w", err)
	}
	return r, nil
}

// release says that the task is what its record tells from now on.
func (r *recordFile) release() { unlock(r.file) }

// remove undoes createRecord, as long as the record is held.
func (r *recordFile) remove() {
	_ = os.Remove(r.file.Name()) // an empty record that stays is taken for a lost task
	r.file.Close()
}

// writeState does not sync: after a crash of the machine a state says nothing
// any more, because its boot is over.
func (r *recordFile) writeState(state *State) error {
	return r.append(map[string]any{"state": state})
}

// writeExit makes the exit durable.
func (r *recordFile) writeExit(exit *Exit) error {
	if err := r.append(map[string]any{"exit": exit}); err != nil {
		return err
	}
	if err := r.file.Sync(); err != nil {
		return fmt.Errorf("sync record: %w", err)
	}
	return nil
}

// append writes a line of its own, also after one that was cut short.
func (r *recordFile) append(entry any) error {
	line, err := json.Marshal(entry)
	if err != nil {
		return fmt.Errorf("encode record: %w", err)
	}
	if _, err := r.file.Write(append(append([]byte("\n"), line...), '\n')); err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	return nil
}

func (r *recordFile) close() { r.file.Close() }

func readBounded(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read record: %w", err)
	}
	defer file.Close()
	data := make([]byte, recordBytesMax+1)
	n := 0
	for n < len(data) {
		more, err := file.Read(data[n:])
		n += more
		if more == 0 || err != nil {
			break
		}
	}
	if n > recordBytesMax {
		return nil, fmt.Errorf("read record %s: %w: over %d bytes", path, ErrBadRecord, recordBytesMax)
	}
	return data[:n], nil
}

package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Files of a state directory.
const (
	StateFile   = "state.json"
	ExitFile    = "exit.json"
	SocketName  = "control.sock"
	HostsFile   = "hosts"
	NameFile    = "hostname"
	LogFileName = "supervisor.log"
)

// RecordVersion is written into state and exit records; greater ones come
// from a later nomadlike and are refused.
const RecordVersion = 1

// recordBytesMax bounds a state or exit record.
const recordBytesMax = 64 << 10

// ErrBadRecord is returned for a record that is damaged or too new.
var ErrBadRecord = errors.New("bad record")

// Identity is a process id that was not reused.
type Identity struct {
	PID        int    `json:"pid"`
	StartTicks uint64 `json:"start_ticks"`
}

// State is what the supervisor is and runs, written before it answers the
// start request.
type State struct {
	Version    int      `json:"version"`
	TaskID     string   `json:"task_id"`
	Marker     string   `json:"marker"`
	BootID     string   `json:"boot_id"`
	Supervisor Identity `json:"supervisor"`
	Command    Identity `json:"command,omitzero"` // also its process group and session; zero for a held task
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
	Killed     int    `json:"killed,omitempty"` // processes that a lost supervisor had left
	Unkillable []int  `json:"unkillable,omitempty"`
	StartedNS  int64  `json:"started_ns"`
	FinishedNS int64  `json:"finished_ns"`
}

// ReadState reads state.json of a state directory. The error satisfies
// errors.Is(os.ErrNotExist) when it was never written.
func ReadState(dir string) (*State, error) {
	data, err := readRecord(filepath.Join(dir, StateFile))
	if err != nil {
		return nil, err
	}
	return DecodeState(data)
}

// DecodeState reads the text of state.json.
func DecodeState(data []byte) (*State, error) {
	var state State
	if err := json.Unmarshal(data, &state); err != nil {
		return nil, fmt.Errorf("decode state: %w: %w", ErrBadRecord, err)
	}
	if state.Version < 1 || state.Version > RecordVersion || state.Supervisor.PID < 2 || state.Command.PID == 1 || state.Command.PID < 0 {
		return nil, fmt.Errorf("decode state: %w", ErrBadRecord)
	}
	return &state, nil
}

// ReadExit reads exit.json of a state directory. The error satisfies
// errors.Is(os.ErrNotExist) while the task has not ended.
func ReadExit(dir string) (*Exit, error) {
	data, err := readRecord(filepath.Join(dir, ExitFile))
	if err != nil {
		return nil, err
	}
	return DecodeExit(data)
}

// DecodeExit reads the text of exit.json.
func DecodeExit(data []byte) (*Exit, error) {
	var exit Exit
	if err := json.Unmarshal(data, &exit); err != nil {
		return nil, fmt.Errorf("decode exit: %w: %w", ErrBadRecord, err)
	}
	if exit.Version < 1 || exit.Version > RecordVersion {
		return nil, fmt.Errorf("decode exit: %w", ErrBadRecord)
	}
	return &exit, nil
}

// WriteExit makes an exit record durable: synced, renamed into place, and the
// rename synced. A reader sees a whole record or none.
func WriteExit(dir string, exit *Exit) error {
	return writeRecord(dir, ExitFile, exit, true)
}

// writeState writes without syncing: after a crash of the machine a state
// says nothing any more, because its boot is over.
func writeState(dir string, state *State) error {
	return writeRecord(dir, StateFile, state, false)
}

func readRecord(path string) ([]byte, error) {
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

func writeRecord(dir, name string, record any, durable bool) error {
	data, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	temporary := filepath.Join(dir, name+".new")
	file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	_, err = file.Write(append(data, '\n'))
	if err == nil && durable {
		err = file.Sync()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(temporary, filepath.Join(dir, name))
	}
	if err == nil && durable {
		err = syncDir(dir)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

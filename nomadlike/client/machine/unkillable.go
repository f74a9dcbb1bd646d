package machine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/internal/proctree"
	"nomadlike/nomadlike/client/retry"
	"nomadlike/nomadlike/client/store"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// Bounds of what is remembered of processes that would not die.
const (
	unkillableEvery   = 2 * time.Second // looks whether they are gone
	unkillableMax     = 1024
	unkillableNamed   = 8 // in a reason
	unkillableFile    = "stuck.json"
	errUnkilled       = "driver.unkillable"
	unkillableFaultID = "client.processes_stuck"
)

// unkillableProcess is a process of an ended task that hangs in the kernel, so that no
// signal ends it: it may hold memory, cards and files that others would be given.
type unkillableProcess struct {
	PID     int    `json:"pid"`
	Start   uint64 `json:"start"` // in ticks since boot: another process of this number has another
	AllocID string `json:"alloc_id"`
}

// unkillableRecord is what a restarted agent reads.
type unkillableRecord struct {
	BootID    string              `json:"boot_id"`
	Processes []unkillableProcess `json:"processes"`
}

// unkillableList remembers the processes that would not die until they are gone.
type unkillableList struct {
	path   string
	bootID string

	mu struct {
		sync.Mutex
		all []unkillableProcess
	}
}

// openUnkillable reads what an earlier process of the agent has left in this boot.
func openUnkillable(dir, bootID string) (*unkillableList, error) {
	l := &unkillableList{path: filepath.Join(dir, unkillableFile), bootID: bootID}
	data, err := os.ReadFile(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	var record unkillableRecord
	if err == nil {
		err = json.Unmarshal(data, &record)
	}
	if err != nil {
		return l, fmt.Errorf("read processes that would not die: %w", err)
	}
	if record.BootID == bootID {
		l.mu.all = record.Processes[:min(len(record.Processes), unkillableMax)]
	}
	return l, nil
}

// add remembers processes.
func (l *unkillableList) add(found []unkillableProcess) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range found {
		if len(l.mu.all) < unkillableMax && !slices.Contains(l.mu.all, p) {
			l.mu.all = append(l.mu.all, p)
		}
	}
	return l.saveLocked()
}

// Look forgets the processes that are gone, and returns the rest.
func (l *unkillableList) look(alive func(unkillableProcess) bool) ([]unkillableProcess, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := len(l.mu.all)
	l.mu.all = slices.DeleteFunc(l.mu.all, func(p unkillableProcess) bool { return !alive(p) })
	var err error
	if len(l.mu.all) != before {
		err = l.saveLocked()
	}
	return slices.Clone(l.mu.all), err
}

func (l *unkillableList) saveLocked() error {
	data, err := json.Marshal(unkillableRecord{l.bootID, l.mu.all})
	if err == nil {
		err = store.WriteFile(l.path, data, 0o600, false)
	}
	if err != nil {
		return fmt.Errorf("keep processes that would not die: %w", err)
	}
	return nil
}

// Unkillable watches the processes that would not die, and keeps new work away
// while there are any. Any goroutine may use it.
type Unkillable struct {
	list *unkillableList
	node *Registration
	log  *slog.Logger
}

// OpenUnkillable reads what an earlier process of the agent has left in this boot
// below dir. What cannot be read is logged.
func OpenUnkillable(dir, bootID string, node *Registration, log *slog.Logger) *Unkillable {
	list, err := openUnkillable(dir, bootID)
	if err != nil {
		log.Error("processes that would not die may be left", logkey.Error, err)
	}
	return &Unkillable{list, node, log}
}

// Note makes the node take no new work when processes of a task are left over. It
// is called before the task's end is told, so that nothing is placed on what they
// hold.
func (u *Unkillable) Note(allocID string, result *driver.ExitResult) {
	if result.Err == nil || result.Err.ID != errUnkilled {
		return
	}
	found := hanging(allocID, fmt.Sprint(result.Err.Params["pids"]))
	for _, p := range found {
		u.log.Error("process of an ended task cannot be killed: no new work comes here until it is gone", logkey.AllocID, allocID, logkey.PID, p.PID)
	}
	if err := u.list.add(found); err != nil {
		u.log.Error("a restarted agent will not know of processes that would not die", logkey.Error, err)
	}
	u.Look()
}

// hanging finds the processes of a list that hang in the kernel now. A driver of
// containers returns the numbers that they have there.
func hanging(allocID, pids string) []unkillableProcess {
	all, err := proctree.All()
	if err != nil {
		return nil
	}
	wanted := strings.Fields(pids)
	var found []unkillableProcess
	for _, p := range all {
		if hangs(&p) && slices.ContainsFunc(numbersOf(p.PID), func(n string) bool { return slices.Contains(wanted, n) }) {
			found = append(found, unkillableProcess{PID: p.PID, Start: p.StartTicks, AllocID: allocID})
		}
	}
	return found
}

// hangs reports whether a thread of a process is in an uninterruptible wait.
func hangs(p *proctree.Process) bool {
	if p.State == 'D' || p.Threads <= 1 {
		return p.State == 'D'
	}
	threads, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(p.PID), "task/*/stat"))
	if err != nil {
		return false
	}
	for _, path := range threads {
		if line, err := os.ReadFile(path); err == nil {
			if thread, err := proctree.Parse(line); err == nil && thread.State == 'D' {
				return true
			}
		}
	}
	return false
}

func (p unkillableProcess) remains() bool { return proctree.Alive(p.PID, p.Start) }

// numbersOf returns the numbers of a process in all of its namespaces.
func numbersOf(pid int) []string {
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		return nil // it is gone
	}
	for line := range strings.Lines(string(status)) {
		if numbers, ok := strings.CutPrefix(line, "NSpid:"); ok {
			return strings.Fields(numbers)
		}
	}
	return []string{strconv.Itoa(pid)}
}

// Watch looks until ctx is cancelled whether processes that would not die are gone.
func (u *Unkillable) Watch(ctx context.Context) {
	for retry.Sleep(ctx, unkillableEvery) {
		u.Look()
	}
}

// Look registers the processes that are left.
func (u *Unkillable) Look() {
	left, err := u.list.look(unkillableProcess.remains)
	if err != nil {
		u.log.Error("a restarted agent will not know of processes that would not die", logkey.Error, err)
	}
	u.node.SetFaults(faultsOfProcesses, unkillableFaults(left))
}

// unkillableFaults says what processes that would not die mean for the node. Pure.
func unkillableFaults(left []unkillableProcess) []structs.NodeFault {
	if len(left) == 0 {
		return nil
	}
	var pids, allocs []string
	for _, p := range left {
		if id := p.AllocID; !slices.Contains(allocs, id) && len(allocs) < unkillableNamed {
			allocs = append(allocs, id)
		}
		if len(pids) < unkillableNamed {
			pids = append(pids, strconv.Itoa(p.PID))
		}
	}
	return []structs.NodeFault{{Name: "processes", Unfit: true, Reason: structs.NewReason(unkillableFaultID,
		"count", len(left), "pids", strings.Join(pids, " "), "allocs", strings.Join(allocs, " "))}}
}

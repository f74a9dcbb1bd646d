// Package proctree reads the kernel's table of processes: who a process is,
// what has descended from it, and which processes carry a task's marker.
//
// Flow: a task's supervisor uses it to pause, measure and kill everything
// that its task has forked; the exec driver uses it to tell a live supervisor
// from a reused process id, and to find what a dead one left behind.
//
// Limits: standard library only; Linux with /proc. A list of processes is
// old as soon as it is made: callers that must reach all of them list and act until
// a list comes back empty.
package proctree

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// TicksPerSecond is the unit of the times below: USER_HZ, 100 on every
// architecture that Go runs Linux on.
const TicksPerSecond = 100

// statBytesMax bounds /proc/<pid>/stat: 52 numbers and a short name.
const statBytesMax = 4096

// environBytesMax bounds how much of a process's environment is searched.
const environBytesMax = 4 << 20

// How long a process may take from one program to the next until it counts as
// one without an environment.
const (
	executingPatience = time.Second
	executingPause    = time.Millisecond
	// emptyLooks is how often a process is found with an empty environment until
	// that is believed: while the kernel counts the entries of a new program they
	// begin and end at one place, too.
	emptyLooks = 3
)

// ErrMalformed is returned for a stat line that the kernel would not write.
var ErrMalformed = errors.New("malformed process status")

// Process is one line of the kernel's table.
type Process struct {
	PID        int
	Name       string // at most 15 bytes; the process may set it
	State      byte   // as ps shows it: R, S, D, T, Z, …
	Parent     int
	Group      int
	Session    int
	StartTicks uint64 // since boot: with PID, the identity of a process
	UserTicks  uint64
	SysTicks   uint64
	// ChildUserTicks and ChildSysTicks belong to children that ended and
	// were waited for.
	ChildUserTicks uint64
	ChildSysTicks  uint64
	Threads        int
	ResidentPages  int64
}

// Dead reports whether the process has ended and only waits to be collected. One
// whose first thread has ended lives on in its others.
func (p Process) Dead() bool {
	return (p.State == 'Z' || p.State == 'X' || p.State == 'x') && p.Threads <= 1
}

// Read returns the present status of a process. The error satisfies
// errors.Is(os.ErrNotExist) when there is none with this id.
func Read(pid int) (Process, error) {
	fd, err := syscall.Open("/proc/"+strconv.Itoa(pid)+"/stat", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return Process{}, fmt.Errorf("read process %d: %w", pid, err)
	}
	defer syscall.Close(fd)
	var line [statBytesMax]byte
	n, err := syscall.Read(fd, line[:])
	if err != nil {
		if err == syscall.ESRCH {
			err = os.ErrNotExist
		}
		return Process{}, fmt.Errorf("read process %d: %w", pid, err)
	}
	return Parse(line[:n])
}

// Parse reads a line of /proc/<pid>/stat. The name stands in parentheses and
// may itself hold parentheses, spaces and newlines, so its end is the last
// closing one.
func Parse(line []byte) (Process, error) {
	open, end := bytes.IndexByte(line, '('), bytes.LastIndexByte(line, ')')
	if open < 2 || end < open {
		return Process{}, ErrMalformed
	}
	fields := strings.Fields(string(line[end+1:]))
	if len(fields) < 22 || len(fields[0]) != 1 {
		return Process{}, ErrMalformed
	}
	p := Process{Name: string(line[open+1 : end]), State: fields[0][0]}
	ok := true
	number := func(text string) int64 {
		value, err := strconv.ParseInt(text, 10, 64)
		ok = ok && err == nil
		return value
	}
	natural := func(text string) uint64 {
		value, err := strconv.ParseUint(text, 10, 64)
		ok = ok && err == nil
		return value
	}
	p.PID = int(number(strings.TrimSpace(string(line[:open]))))
	p.Parent, p.Group, p.Session = int(number(fields[1])), int(number(fields[2])), int(number(fields[3]))
	p.UserTicks, p.SysTicks = natural(fields[11]), natural(fields[12])
	// The kernel counts these two as signed numbers.
	p.ChildUserTicks, p.ChildSysTicks = uint64(max(number(fields[13]), 0)), uint64(max(number(fields[14]), 0))
	p.Threads = int(number(fields[17]))
	p.StartTicks = natural(fields[19])
	p.ResidentPages = number(fields[21])
	if !ok || p.PID < 1 {
		return Process{}, ErrMalformed
	}
	return p, nil
}

// Alive reports whether the process that had this id and start still runs.
func Alive(pid int, startTicks uint64) bool {
	p, err := Read(pid)
	return err == nil && p.StartTicks == startTicks && !p.Dead()
}

// All lists every process, in no particular order.
func All() ([]Process, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var all []Process
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, err := Read(pid); err == nil {
			all = append(all, p)
		}
	}
	return all, nil
}

// Descendants lists what has descended from a process and still exists, dead
// ones included, parents before their children.
func Descendants(root int) ([]Process, error) {
	all, err := All()
	if err != nil {
		return nil, err
	}
	children := make(map[int][]Process)
	for _, p := range all {
		children[p.Parent] = append(children[p.Parent], p)
	}
	found := children[root]
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i].PID]...)
		if len(found) > len(all) {
			break // ids were reused while the table was read; the next list is right
		}
	}
	return found, nil
}

// belowThreadsMax bounds how many threads Below asks for their children; beyond,
// the whole table is cheaper.
const belowThreadsMax = 256

// Below is Descendants at the price of what has descended and not of everything
// that the machine runs: a node with many tasks that all measure themselves would
// be busy with nothing else. The kernel lists the children of each thread, and may
// leave some out while others end, so Below is for measuring and for a first look;
// callers that must reach all processes ask Descendants. Where the kernel has no such
// lists (CONFIG_PROC_CHILDREN) it is Descendants.
func Below(root int) ([]Process, error) {
	found, threads, err := children(nil, root, 0)
	for i := 0; i < len(found) && err == nil; i++ {
		if !found[i].Dead() {
			found, threads, err = children(found, found[i].PID, threads)
		}
	}
	if err != nil {
		return Descendants(root)
	}
	return found, nil
}

// errNoChildren says that the table has to be read instead.
var errNoChildren = errors.New("children are not listed")

// children adds the children of a process. threads counts those that were asked.
// A process that has ended meanwhile has none.
func children(found []Process, pid, threads int) ([]Process, int, error) {
	dir := "/proc/" + strconv.Itoa(pid) + "/task"
	tasks, err := names(dir)
	if err != nil {
		return found, threads, nil
	}
	if threads += len(tasks); threads > belowThreadsMax {
		return found, threads, errNoChildren
	}
	for i, task := range tasks {
		text, err := os.ReadFile(dir + "/" + task + "/children")
		switch {
		case err == nil:
		case i == 0 && errors.Is(err, os.ErrNotExist) && !listsChildren():
			return found, threads, errNoChildren
		default:
			continue // the thread has ended
		}
		for word := range strings.FieldsSeq(string(text)) {
			child, err := strconv.Atoi(word)
			if err != nil {
				continue
			}
			if p, err := Read(child); err == nil && p.Parent == pid {
				found = append(found, p)
			}
		}
	}
	return found, threads, nil
}

// listsChildren reports whether the kernel lists children at all.
func listsChildren() bool {
	pid := strconv.Itoa(os.Getpid()) // whose first thread is there as long as it is
	_, err := os.Stat("/proc/" + pid + "/task/" + pid + "/children")
	return err == nil
}

func names(path string) ([]string, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return dir.Readdirnames(-1)
}

// HasEnv reports whether the environment that a process was started with has an
// entry that begins with prefix. A process that may not be looked at, or that
// has written over its environment, has none. One that is just executing
// another program has none for a moment: it is looked at again.
func HasEnv(pid int, prefix string) bool {
	data := environ(pid)
	for len(data) > 0 {
		entry, rest, _ := bytes.Cut(data, []byte{0})
		if bytes.HasPrefix(entry, []byte(prefix)) {
			return true
		}
		data = rest
	}
	return false
}

// Env returns an entry of the environment that a process was started with.
func Env(pid int, name string) (value string, ok bool) {
	data := environ(pid)
	for len(data) > 0 {
		entry, rest, _ := bytes.Cut(data, []byte{0})
		if value, ok := bytes.CutPrefix(entry, []byte(name+"=")); ok {
			return string(value), true
		}
		data = rest
	}
	return "", false
}

// environ reads the environment of a process, nil for none.
func environ(pid int) []byte {
	path := "/proc/" + strconv.Itoa(pid) + "/environ"
	empty := 0
	for deadline := time.Now().Add(executingPatience); ; time.Sleep(executingPause) {
		data, err := readBounded(path, environBytesMax)
		if err != nil || len(data) > 0 || time.Now().After(deadline) {
			return data
		}
		switch stageOf(pid) {
		case stageNone:
			return nil
		case stageEmpty:
			if empty++; empty == emptyLooks {
				return nil
			}
		}
	}
}

// stage is what a process that showed no environment is about.
type stage int

const (
	stageNone      stage = iota // gone, a zombie or a thread of the kernel: it has none
	stageEmpty                  // its environment is empty, or is just being counted
	stageExecuting              // it has the new program's memory and no environment in there yet, or had one that was not found
)

func stageOf(pid int) stage {
	const kernelThread, flagsField, environStartField, environEndField = 0x00200000, 6, 47, 48
	line, err := readBounded("/proc/"+strconv.Itoa(pid)+"/stat", statBytesMax)
	if err != nil {
		return stageNone
	}
	fields := strings.Fields(string(line[bytes.LastIndexByte(line, ')')+1:]))
	if len(fields) <= environEndField || strings.ContainsAny(fields[0], "ZXx") {
		return stageNone
	}
	flags, err := strconv.ParseUint(fields[flagsField], 10, 64)
	begin, end := fields[environStartField], fields[environEndField]
	switch {
	case err != nil || flags&kernelThread != 0:
		return stageNone
	case begin == end && end != "0":
		return stageEmpty
	}
	return stageExecuting
}

// BootID tells one boot of this machine from another; process ids mean
// nothing across them.
func BootID() (string, error) {
	data, err := readBounded("/proc/sys/kernel/random/boot_id", 128)
	if err != nil {
		return "", fmt.Errorf("read boot id: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

func readBounded(path string, limit int) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var data []byte
	block := make([]byte, 4096)
	for len(data) < limit {
		n, err := file.Read(block)
		data = append(data, block[:n]...)
		if n == 0 || err != nil {
			break
		}
	}
	return data, nil
}

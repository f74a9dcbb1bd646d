package supervisor

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"unsafe"

	"nomadlike/internal/mounts"
	"nomadlike/plugins/driver/taskproc"
)

const (
	prSetSeccomp     = 22
	prCapbsetDrop    = 24
	prSetNoNewPrivs  = 38
	prCapAmbient     = 47
	prCapAmbientNone = 4 // PR_CAP_AMBIENT_CLEAR_ALL

	capabilitiesMost = 64
)

func ignoreSignals() { signal.Ignore() }

// lockDown takes from this thread's future children what could undo their
// isolation: all capabilities, new privileges, writing anywhere but to their
// own places, and system calls that no task needs. The thread itself keeps its
// capabilities, to make children of other users.
func lockDown(i *Isolation, writable []string) error {
	if err := dropCapabilities(); err != nil {
		return err
	}
	if err := prctl(prSetNoNewPrivs, 1, 0); err != nil {
		return fmt.Errorf("give up new privileges: %w", err)
	}
	if i.Private || i.Root != "" {
		if err := restrictPaths(writable); err != nil {
			return err
		}
	} else if err := restrictSockets(); err != nil {
		return err
	}
	if err := filterCalls(i.CloneOpen); err != nil {
		return fmt.Errorf("filter system calls: %w", err)
	}
	return nil
}

// dropCapabilities empties the sets that programs get theirs from.
func dropCapabilities() error {
	if err := prctl(prCapAmbient, prCapAmbientNone, 0); err != nil {
		return fmt.Errorf("drop ambient capabilities: %w", err)
	}
	header := struct {
		version uint32
		pid     int32
	}{version: 0x20080522}
	var data [2]struct{ effective, permitted, inheritable uint32 }
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CAPGET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&data)), 0); errno != 0 {
		return fmt.Errorf("read capabilities: %w", errno)
	}
	data[0].inheritable, data[1].inheritable = 0, 0
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&data)), 0); errno != 0 {
		return fmt.Errorf("drop inheritable capabilities: %w", errno)
	}
	for number := range capabilitiesMost {
		if err := prctl(prCapbsetDrop, uintptr(number), 0); err == syscall.EINVAL {
			break // the kernel has no more
		} else if err != nil {
			return fmt.Errorf("drop capability %d: %w", number, err)
		}
	}
	return nil
}

// Rights of Landlock, by the version that brought them.
const (
	lockExecute = 1 << iota
	lockWriteFile
	lockReadFile
	lockReadDir
	lockRemoveDir
	lockRemoveFile
	lockMakeChar
	lockMakeDir
	lockMakeReg
	lockMakeSock
	lockMakeFifo
	lockMakeBlock
	lockMakeSym
	lockRefer    // 2
	lockTruncate // 3

	lockWrite = lockWriteFile | lockRemoveDir | lockRemoveFile | lockMakeChar | lockMakeDir | lockMakeReg |
		lockMakeSock | lockMakeFifo | lockMakeBlock | lockMakeSym
	lockDevices = lockMakeChar | lockMakeBlock

	scopeAbstractSockets = 1 // 6
)

// landlockVersion returns the version of the kernel's Landlock, 0 for none.
func landlockVersion() int {
	const versionFlag = 1
	version, _, errno := syscall.RawSyscall(sysLandlockCreate, 0, 0, versionFlag)
	if errno != 0 {
		return 0
	}
	return int(version)
}

// landlockRules is what a ruleset is made of.
type landlockRules struct{ paths, net, scopes uint64 }

// restrictSockets keeps the task from abstract sockets of others: they are in
// the network namespace, which tasks share with the node, and have no owner.
func restrictSockets() error {
	if landlockVersion() < 6 {
		return nil
	}
	return restrict(landlockRules{scopes: scopeAbstractSockets}, nil)
}

// restrictPaths also keeps the task from writing anywhere but to its own
// places. That repeats what its mounts say, for the case that they fail.
func restrictPaths(writable []string) error {
	rules := landlockRules{paths: lockWrite}
	switch version := landlockVersion(); {
	case version < 1:
		return nil
	case version >= 6:
		rules.scopes = scopeAbstractSockets
		fallthrough
	case version >= 3:
		rules.paths |= lockTruncate
		fallthrough
	case version >= 2:
		rules.paths |= lockRefer
	}
	return restrict(rules, append([]string{"/proc"}, writable...))
}

func restrict(rules landlockRules, writable []string) error {
	size := unsafe.Sizeof(rules)
	switch version := landlockVersion(); {
	case version < 4:
		size = unsafe.Sizeof(rules.paths)
	case version < 6:
		size = unsafe.Sizeof(rules.paths) + unsafe.Sizeof(rules.net)
	}
	fd, _, errno := syscall.RawSyscall(sysLandlockCreate, uintptr(unsafe.Pointer(&rules)), size, 0)
	if errno != 0 {
		return fmt.Errorf("make Landlock rules: %w", errno)
	}
	ruleset := int(fd)
	defer syscall.Close(ruleset)
	for _, path := range writable {
		if err := allowBelow(ruleset, path, rules.paths&^lockDevices); err != nil {
			return fmt.Errorf("allow writing to %s: %w", path, err)
		}
	}
	if _, _, errno := syscall.RawSyscall(sysLandlockSelf, uintptr(ruleset), 0, 0); errno != 0 {
		return fmt.Errorf("apply Landlock rules: %w", errno)
	}
	return nil
}

// allowBelow allows a task what it needs to write below a path.
func allowBelow(ruleset int, path string, rights uint64) error {
	dir, err := syscall.Open(path, oPath|syscall.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(dir)
	var stat syscall.Stat_t
	if err := syscall.Fstat(dir, &stat); err != nil {
		return err
	}
	if stat.Mode&syscall.S_IFMT != syscall.S_IFDIR {
		rights &= lockWriteFile | lockTruncate
	}
	var rule [12]byte // packed: eight bytes of rights and four of descriptor
	*(*uint64)(unsafe.Pointer(&rule)) = rights
	*(*int32)(unsafe.Pointer(&rule[8])) = int32(dir)
	const beneath = 1
	if _, _, errno := syscall.RawSyscall6(sysLandlockAddRule, uintptr(ruleset), beneath, uintptr(unsafe.Pointer(&rule)), 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// Probe is what this process can do on its node.
type Probe struct {
	Landlock int `json:"landlock"` // its version, 0 for none
	// Classical reports that the kernel lacks the calls by which views are made at
	// best: they are made by older ones, the same and slower.
	Classical bool `json:"classical,omitempty"`
}

// probe tries out an isolation, in a thread that ends with it.
func probe(spec *Spec) (*Probe, *taskproc.Failure) {
	if spec == nil || spec.Isolation == nil {
		return nil, failed(os.ErrInvalid)
	}
	r := taskproc.NewReaper()
	s := newSpawner(newTree(r))
	if failure := s.isolate(spec); failure != nil {
		return nil, failure
	}
	return &Probe{Landlock: landlockVersion(), Classical: mounts.Classical()}, nil
}

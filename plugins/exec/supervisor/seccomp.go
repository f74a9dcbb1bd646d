package supervisor

import (
	"syscall"
	"unsafe"
)

// The filter refuses what changes the node, opens ways out of the namespaces
// or has a long record of defects, and lets the rest through: what programs
// need is theirs to choose. Numbers above the newest known one are refused as
// unknown to the kernel, which every program is prepared for.

// filterInstruction is one of classic BPF.
type filterInstruction struct {
	code   uint16
	jt, jf uint8
	k      uint32
}

const (
	bpfLoad     = 0x20 // a word of the call's data
	bpfEqual    = 0x15
	bpfGreater  = 0x35 // or equal
	bpfAnySet   = 0x45
	bpfReturn   = 0x06
	dataNumber  = 0
	dataArch    = 4
	dataArg0    = 16
	dataArg1    = 24
	retAllow    = 0x7fff0000
	retErrno    = 0x00050000
	unknownCall = 470 // the first that kernel 6.17 does not have
	cloneSpaces = syscall.CLONE_NEWNS | 0x02000000 | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC |
		syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET // the second: cgroup

	sysClone3 = 435
	tioCSTI   = 0x5412
	tioLinux  = 0x541c
)

// refusedCalls are those that no task may make, here those with the same
// number everywhere; commonRefused adds the others and archRefused those of
// this architecture alone.
func refusedCalls() []int {
	refused := []int{
		428, 429, 430, 431, 432, 433, 442, // the new ways of mounting
		425, 426, 427, // io_uring
		467, // open_tree_attr
	}
	refused = append(refused, commonRefused()...)
	return append(refused, archRefused()...)
}

func commonRefused() []int {
	return []int{
		syscall.SYS_MOUNT, syscall.SYS_UMOUNT2, syscall.SYS_PIVOT_ROOT, syscall.SYS_CHROOT, syscall.SYS_SWAPON, syscall.SYS_SWAPOFF,
		syscall.SYS_REBOOT, syscall.SYS_SETHOSTNAME, syscall.SYS_SETDOMAINNAME, syscall.SYS_INIT_MODULE, syscall.SYS_DELETE_MODULE,
		syscall.SYS_QUOTACTL, syscall.SYS_ACCT, syscall.SYS_SETTIMEOFDAY, syscall.SYS_CLOCK_SETTIME,
		syscall.SYS_SYSLOG, syscall.SYS_ADD_KEY, syscall.SYS_REQUEST_KEY, syscall.SYS_KEYCTL, syscall.SYS_UNSHARE,
		syscall.SYS_KEXEC_LOAD, syscall.SYS_VHANGUP, syscall.SYS_NFSSERVCTL, syscall.SYS_LOOKUP_DCOOKIE, syscall.SYS_PERF_EVENT_OPEN,
	}
}

// filterProgram builds the filter. With cloneOpen clone3 is let through, whose
// flags a filter cannot see. Pure.
func filterProgram(arch uint32, refused []int, cloneOpen bool) []filterInstruction {
	deny := filterInstruction{bpfReturn, 0, 0, retErrno | uint32(syscall.EPERM)}
	unknown := filterInstruction{bpfReturn, 0, 0, retErrno | uint32(syscall.ENOSYS)}
	allow := filterInstruction{bpfReturn, 0, 0, retAllow}
	program := []filterInstruction{
		{bpfLoad, 0, 0, dataArch},
		{bpfEqual, 1, 0, arch}, // a program of another architecture has other numbers
		unknown,
		{bpfLoad, 0, 0, dataNumber},
		{bpfGreater, 0, 1, unknownCall},
		unknown,
	}
	for _, number := range refused {
		program = append(program, filterInstruction{bpfEqual, 0, 1, uint32(number)}, deny)
	}
	if !cloneOpen {
		program = append(program, filterInstruction{bpfEqual, 0, 1, sysClone3}, unknown) // libraries fall back to clone
	}
	return append(program,
		filterInstruction{bpfEqual, 0, 3, uint32(syscall.SYS_CLONE)},
		filterInstruction{bpfLoad, 0, 0, dataArg0},
		filterInstruction{bpfAnySet, 0, 6, cloneSpaces}, // else to allow
		deny,
		filterInstruction{bpfEqual, 0, 4, uint32(syscall.SYS_IOCTL)}, // else to allow
		filterInstruction{bpfLoad, 0, 0, dataArg1},
		filterInstruction{bpfEqual, 1, 0, tioCSTI}, // typing for the user of a terminal
		filterInstruction{bpfEqual, 0, 1, tioLinux},
		deny,
		allow,
	)
}

// filterCalls applies the filter to this thread.
func filterCalls(cloneOpen bool) error {
	program := filterProgram(archNumber, refusedCalls(), cloneOpen)
	filter := struct {
		length uint16
		_      [6]byte
		first  *filterInstruction
	}{length: uint16(len(program)), first: &program[0]}
	const modeFilter = 2
	return prctl(prSetSeccomp, modeFilter, uintptr(unsafe.Pointer(&filter)))
}

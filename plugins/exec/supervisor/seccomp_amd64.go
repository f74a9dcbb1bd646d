package supervisor

import "syscall"

const archNumber = 0xc000003e // AUDIT_ARCH_X86_64

// archRefused are calls with numbers of this architecture. The last ones are
// of the ABI with 32 bit pointers, whose numbers have a bit of their own and
// are above the newest.
func archRefused() []int {
	const (
		openByHandle, setNS, finitModule, kexecFileLoad, bpf, userfaultfd = 304, 308, 313, 320, 321, 323
	)
	return []int{
		syscall.SYS_IOPL, syscall.SYS_IOPERM, syscall.SYS_CREATE_MODULE, syscall.SYS_GET_KERNEL_SYMS, syscall.SYS_QUERY_MODULE,
		syscall.SYS_USELIB, syscall.SYS_USTAT, syscall.SYS__SYSCTL, syscall.SYS_SYSFS,
		openByHandle, setNS, finitModule, kexecFileLoad, bpf, userfaultfd,
	}
}

// Package oldkernel has a test program run as on Linux 4.18: for tests alone.
//
// Flow: TestMain calls Play first; a program that was started with Env set to "now"
// keeps the calls that came later from itself and all that it starts.
//
// Limits: needs root; everything else of the kernel stays as it is.
package oldkernel

import (
	"os"
	"runtime"
	"syscall"
	"unsafe"
)

// Env is "now" for a program that is to run as on an old kernel, and set to something else in one that does.
const Env = "NOMADLIKE_TEST_OLD_KERNEL"

// Played reports whether this program runs as on an old kernel.
func Played() bool { return os.Getenv(Env) != "" }

// Play runs this program anew without the calls that Linux 4.18 does not have, if it
// was asked to: they answer as there, that there is no such call.
func Play() {
	if os.Getenv(Env) != "now" {
		return
	}
	const (
		load, atLeast, ret = 0x20, 0x35, 0x06 // classic BPF
		first, beyond      = 424, 500         // pidfd_send_signal, the first after 4.18 with one number everywhere
		allow              = 0x7fff0000
		noCall             = 0x00050000 | uint32(syscall.ENOSYS)
	)
	type instruction struct {
		code   uint16
		jt, jf uint8
		k      uint32
	}
	filter := []instruction{
		{load, 0, 0, 0},
		{atLeast, 0, 2, first},
		{atLeast, 1, 0, beyond},
		{ret, 0, 0, noCall},
		{ret, 0, 0, allow},
	}
	program := struct {
		length uint16
		filter *instruction
	}{uint16(len(filter)), &filter[0]}
	runtime.LockOSThread()
	const prSetSeccomp, modeFilter = 22, 2
	if _, _, errno := syscall.Syscall6(syscall.SYS_PRCTL, prSetSeccomp, modeFilter, uintptr(unsafe.Pointer(&program)), 0, 0, 0); errno != 0 {
		panic(errno)
	}
	if err := os.Setenv(Env, "done"); err != nil {
		panic(err)
	}
	panic(syscall.Exec("/proc/self/exe", os.Args, os.Environ()))
}

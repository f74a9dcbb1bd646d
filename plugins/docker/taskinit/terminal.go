package taskinit

import (
	"os"
	"strconv"
	"syscall"
	"unsafe"
)

// Requests of a terminal, from the kernel's headers.
const (
	terminalUnlock = 0x40045431 // TIOCSPTLCK
	terminalNumber = 0x80045430 // TIOCGPTN
	terminalSize   = 0x5414     // TIOCSWINSZ
)

// openTerminal makes a pseudo terminal in the container: the master's
// descriptor and that of the command's end. The size is there before the
// command is, so that it is no change of size to it.
func openTerminal(rows, cols uint16) (master, slave int, err error) {
	master, err = syscall.Open("/dev/ptmx", syscall.O_RDWR|syscall.O_NOCTTY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return 0, 0, &os.PathError{Op: "open", Path: "/dev/ptmx", Err: err}
	}
	var number, unlock int32
	if errno := control(master, terminalUnlock, &unlock); errno != 0 {
		syscall.Close(master)
		return 0, 0, os.NewSyscallError("unlock terminal", errno)
	}
	if errno := control(master, terminalNumber, &number); errno != 0 {
		syscall.Close(master)
		return 0, 0, os.NewSyscallError("name terminal", errno)
	}
	if rows > 0 && cols > 0 {
		size := [4]uint16{rows, cols} // and pixels, unknown
		if errno := control(master, terminalSize, (*int32)(unsafe.Pointer(&size))); errno != 0 {
			syscall.Close(master)
			return 0, 0, os.NewSyscallError("resize terminal", errno)
		}
	}
	name := "/dev/pts/" + strconv.Itoa(int(number))
	slave, err = syscall.Open(name, syscall.O_RDWR|syscall.O_NOCTTY|syscall.O_CLOEXEC, 0)
	if err != nil {
		syscall.Close(master)
		return 0, 0, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return master, slave, nil
}

func control(fd int, request uintptr, value *int32) syscall.Errno {
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), request, uintptr(unsafe.Pointer(value)))
	return errno
}

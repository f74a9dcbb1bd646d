package exec

import (
	"fmt"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"nomadlike/internal/proctree"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/exec/supervisor"
)

// openTerminal makes a pseudo terminal and returns the descriptors of our end and
// of the command's. An isolated task has terminals of its
// own, which it finds under their names.
func (t *task) openTerminal() (master, terminal int, err error) {
	fd, err := t.openMaster()
	if err != nil {
		return -1, -1, fmt.Errorf("open terminal: %w", err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		syscall.Close(fd)
		return -1, -1, fmt.Errorf("open terminal: %w", err)
	}
	other, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCGPTPEER, syscall.O_RDWR|syscall.O_NOCTTY|syscall.O_CLOEXEC)
	if errno != 0 {
		syscall.Close(fd)
		return -1, -1, fmt.Errorf("open terminal: %w", errno)
	}
	return fd, int(other), nil
}

// openMaster opens the master end of a new terminal, the node's or one of the
// task's own instance, which it cannot put anything else in place of.
func (t *task) openMaster() (int, error) {
	const flags = syscall.O_RDWR | syscall.O_NOCTTY | syscall.O_CLOEXEC | syscall.O_NONBLOCK
	init := t.state.Init
	if init.PID == 0 {
		return syscall.Open("/dev/ptmx", flags, 0)
	}
	root, err := syscall.Open("/proc/"+strconv.Itoa(init.PID)+"/root", unix.O_PATH|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer syscall.Close(root)
	if !proctree.Alive(init.PID, init.StartTicks) {
		return 0, driver.ErrTaskEnded // the id may be somebody else's by now
	}
	return supervisor.OpenInRoot(root, "dev/pts/ptmx", flags)
}

package exec

import (
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"nomadlike/plugins/driver"
	"nomadlike/plugins/exec/proctree"
)

// openTerminal makes a pseudo terminal: our end, ready for waiting reads, and
// the descriptor of the command's end. An isolated task has terminals of its
// own, which it finds under their names.
func (t *task) openTerminal() (*os.File, int, error) {
	fd, err := t.openMaster()
	if err != nil {
		return nil, 0, fmt.Errorf("open terminal: %w", err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		syscall.Close(fd)
		return nil, 0, fmt.Errorf("open terminal: %w", err)
	}
	other, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCGPTPEER, syscall.O_RDWR|syscall.O_NOCTTY|syscall.O_CLOEXEC)
	if errno != 0 {
		syscall.Close(fd)
		return nil, 0, fmt.Errorf("open terminal: %w", errno)
	}
	return os.NewFile(uintptr(fd), "terminal"), int(other), nil
}

// openMaster opens the master end of a new terminal, the node's or one of the
// task's own instance, which it can not put anything else in place of.
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
	return unix.Openat2(root, "dev/pts/ptmx", &unix.OpenHow{Flags: flags, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_SYMLINKS})
}

// resize tells a terminal its size; the kernel tells the command.
func resize(terminal *os.File, size driver.WindowSize) error {
	raw, err := terminal.SyscallConn()
	if err != nil {
		return fmt.Errorf("resize terminal: %w", err)
	}
	var ioctlErr error
	err = raw.Control(func(fd uintptr) {
		ioctlErr = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: size.Rows, Col: size.Cols})
	})
	if err == nil {
		err = ioctlErr
	}
	if err != nil {
		return fmt.Errorf("resize terminal: %w", err)
	}
	return nil
}

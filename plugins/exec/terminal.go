package exec

import (
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"nomadlike/plugins/driver"
)

// openTerminal makes a pseudo terminal: our end, ready for waiting reads, and
// the descriptor of the command's end.
func openTerminal() (*os.File, int, error) {
	fd, err := syscall.Open("/dev/ptmx", syscall.O_RDWR|syscall.O_NOCTTY|syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, fmt.Errorf("open terminal: %w", err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		syscall.Close(fd)
		return nil, 0, fmt.Errorf("open terminal: %w", err)
	}
	other, err := syscall.Open("/dev/pts/"+strconv.Itoa(number), syscall.O_RDWR|syscall.O_NOCTTY|syscall.O_CLOEXEC, 0)
	if err != nil {
		syscall.Close(fd)
		return nil, 0, fmt.Errorf("open terminal: %w", err)
	}
	return os.NewFile(uintptr(fd), "terminal"), other, nil
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

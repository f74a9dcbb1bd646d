package driver

import (
	"fmt"
	"strings"
	"syscall"

	"nomadlike/nomadlike/structs"
)

// signalNames lists the signals that may be sent to tasks, by number.
func signalNames() map[syscall.Signal]string {
	return map[syscall.Signal]string{
		syscall.SIGABRT: "SIGABRT", syscall.SIGALRM: "SIGALRM", syscall.SIGBUS: "SIGBUS",
		syscall.SIGCHLD: "SIGCHLD", syscall.SIGCONT: "SIGCONT", syscall.SIGFPE: "SIGFPE",
		syscall.SIGHUP: "SIGHUP", syscall.SIGILL: "SIGILL", syscall.SIGINT: "SIGINT",
		syscall.SIGIO: "SIGIO", syscall.SIGKILL: "SIGKILL", syscall.SIGPIPE: "SIGPIPE",
		syscall.SIGPROF: "SIGPROF", syscall.SIGQUIT: "SIGQUIT", syscall.SIGSEGV: "SIGSEGV",
		syscall.SIGSTOP: "SIGSTOP", syscall.SIGSYS: "SIGSYS", syscall.SIGTERM: "SIGTERM",
		syscall.SIGTRAP: "SIGTRAP", syscall.SIGTSTP: "SIGTSTP", syscall.SIGTTIN: "SIGTTIN",
		syscall.SIGTTOU: "SIGTTOU", syscall.SIGURG: "SIGURG", syscall.SIGUSR1: "SIGUSR1",
		syscall.SIGUSR2: "SIGUSR2", syscall.SIGVTALRM: "SIGVTALRM", syscall.SIGWINCH: "SIGWINCH",
		syscall.SIGXCPU: "SIGXCPU", syscall.SIGXFSZ: "SIGXFSZ",
	}
}

// ParseSignal returns the number of a signal named "SIGUSR1" or "usr1". The
// error is a *structs.Error with the id "driver.bad_signal".
func ParseSignal(name string) (syscall.Signal, error) {
	want := strings.ToUpper(name)
	if !strings.HasPrefix(want, "SIG") {
		want = "SIG" + want
	}
	for number, known := range signalNames() {
		if known == want {
			return number, nil
		}
	}
	return 0, structs.NewError(structs.CodeInvalid, "driver.bad_signal", "signal", name)
}

// SignalName returns the name of a signal, "SIG<number>" for one without.
func SignalName(number syscall.Signal) string {
	if name, ok := signalNames()[number]; ok {
		return name
	}
	return fmt.Sprintf("SIG%d", int(number))
}

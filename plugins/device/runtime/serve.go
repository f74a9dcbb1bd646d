package runtime

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// exitHung is the exit status of a plugin that gives up on its library.
const exitHung = 75

// Process is what a plugin's own process has for its options: where it logs,
// which life of the machine this is and when that began, and how to give up.
type Process struct {
	Logger *slog.Logger
	Boot   string
	Booted time.Time
	Quit   func(reason string)
}

// ThisProcess looks at this process and its machine.
func ThisProcess() Process {
	p := Process{Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)), Quit: func(reason string) {
		fmt.Fprintln(os.Stderr, reason)
		os.Exit(exitHung)
	}}
	if text, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		p.Boot = strings.TrimSpace(string(text))
	}
	var up unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &up) == nil {
		p.Booted = time.Now().Add(-time.Duration(up.Nano()))
	}
	return p
}

package nvml

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"nomadlike/plugins/device"
	"nomadlike/plugins/device/deviceplugin"
	"nomadlike/plugins/nvidia"
)

// exitHung is the exit status of a plugin that gives up on its library.
const exitHung = 75

// Serve runs the plugin for the agent that has started this process.
func Serve() { deviceplugin.Serve(nvidia.Name, Start) }

// Start makes the plugin with the vendor's library. It lives as long as the
// process.
func Start(setup deviceplugin.Setup) (device.Plugin, error) {
	settings, err := nvidia.ParseConfig(setup.Config)
	if err != nil {
		return nil, err
	}
	boot, booted := started()
	return nvidia.Start(settings, nvidia.Options{
		Library: New(settings.Library), Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)), StateDir: setup.StateDir,
		Boot: boot, Booted: booted,
		Quit: func(reason string) {
			fmt.Fprintln(os.Stderr, reason)
			os.Exit(exitHung)
		},
	}), nil
}

// started tells which life of the machine this is, and when it began.
func started() (boot string, at time.Time) {
	if text, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		boot = strings.TrimSpace(string(text))
	}
	var up unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &up) == nil {
		at = time.Now().Add(-time.Duration(up.Nano()))
	}
	return boot, at
}

package dcmi

import (
	"fmt"
	"log/slog"
	"os"
	"strings"

	"nomadlike/plugins/ascend"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/deviceplugin"
)

// exitHung is the exit status of a plugin that gives up on its library.
const exitHung = 75

// Serve runs the plugin for the agent that has started this process.
func Serve() { deviceplugin.Serve(ascend.Name, Start) }

// Start makes the plugin with the vendor's library, or its tool where that can
// not be loaded. It lives as long as the process.
func Start(setup deviceplugin.Setup) (device.Plugin, error) {
	settings, err := ascend.ParseConfig(setup.Config)
	if err != nil {
		return nil, err
	}
	path := settings.Library
	if path == "" {
		path = ascend.FindLibrary(settings.Root)
	}
	boot := ""
	if text, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		boot = strings.TrimSpace(string(text))
	}
	return ascend.Start(settings, ascend.Options{
		Library: ascend.NewChain(New(path), &ascend.Tool{Path: settings.SMI}), Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		StateDir: setup.StateDir, Boot: boot,
		Quit: func(reason string) {
			fmt.Fprintln(os.Stderr, reason)
			os.Exit(exitHung)
		},
	}), nil
}

package nvml

import (
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/deviceplugin"
	"nomadlike/plugins/device/runtime"
	"nomadlike/plugins/nvidia"
)

// Serve runs the plugin for the agent that has started this process.
func Serve() { deviceplugin.Serve(nvidia.Name, Start) }

// Start makes the plugin with the vendor's library. It lives as long as the
// process.
func Start(setup deviceplugin.Setup) (device.Plugin, error) {
	settings, err := nvidia.ParseConfig(setup.Config)
	if err != nil {
		return nil, err
	}
	this := runtime.ThisProcess()
	return nvidia.Start(settings, nvidia.Options{
		Library: New(settings.Library), Logger: this.Logger, StateDir: setup.StateDir, Boot: this.Boot, Booted: this.Booted, Quit: this.Quit,
	}), nil
}

package dcmi

import (
	"nomadlike/plugins/ascend"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/deviceplugin"
	"nomadlike/plugins/device/runtime"
)

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
	this := runtime.ThisProcess()
	return ascend.Start(settings, ascend.Options{
		Library: ascend.NewChain(New(path), &ascend.Tool{Path: settings.SMI}), Logger: this.Logger, StateDir: setup.StateDir, Boot: this.Boot, Quit: this.Quit,
	}), nil
}

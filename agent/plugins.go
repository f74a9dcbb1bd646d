package agent

import (
	"path/filepath"
	"slices"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/amd"
	"nomadlike/plugins/ascend"
	"nomadlike/plugins/cambricon"
	"nomadlike/plugins/device"
	"nomadlike/plugins/host"
	"nomadlike/plugins/nvidia"
)

// hostConfig is what the host of plugins starts: what the configuration names,
// and of the carried device plugins those that have something to find here.
func (a *Agent) hostConfig(dir string) host.Config {
	c := host.Config{
		PluginDir: a.config.PluginDir, RunDir: filepath.Join(dir, "plugins"), StateDir: dir, Plugins: a.config.Plugins,
		BuiltinCommand: a.config.Devices.Builtin, Logger: a.log,
	}
	wanted := slices.Clone(a.config.Devices.Named)
	for _, name := range host.Builtins() {
		named := slices.ContainsFunc(wanted, func(one host.DeviceConfig) bool { return one.Name == name })
		if !named && !a.config.Devices.Off[name] {
			wanted = append(wanted, host.DeviceConfig{Name: name, Builtin: true})
		}
	}
	for _, one := range wanted {
		if one.Builtin {
			reason := present(one.Name)
			if a.config.Devices.Forced[one.Name] {
				reason = nil
			}
			if reason == nil {
				if reason = host.BuiltinMissing(c, one.Name); reason != nil {
					a.log.Warn("device plugin is not started", logkey.Plugin, one.Name, logkey.Reason, reason)
				}
			}
			if reason != nil {
				a.log.Debug("device plugin is not started", logkey.Plugin, one.Name, logkey.Reason, reason)
				continue
			}
		}
		c.Devices = append(c.Devices, one)
	}
	return c
}

// present says why a carried plugin has nothing to find on this machine; nil:
// it may have.
func present(name string) *structs.Reason {
	switch name {
	case nvidia.Name:
		return nvidia.Present("/")
	case ascend.Name:
		return ascend.Present("/")
	case amd.Name:
		return amd.Vendor().Present("/")
	case cambricon.Name:
		return cambricon.Vendor().Present("/")
	}
	return nil
}

// devicePlugins gives the started device plugins by name.
func devicePlugins(plugins *host.Host) (map[string]device.Plugin, error) {
	found := map[string]device.Plugin{}
	for _, name := range plugins.DeviceNames() {
		one, err := plugins.Device(name)
		if err != nil {
			return nil, err
		}
		found[name] = one
	}
	return found, nil
}

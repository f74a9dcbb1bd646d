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

// devicePlugins returns the started device plugins by name.
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

// hostConfig is what the host of plugins starts: what the configuration names,
// and of the carried device plugins those that have something to find here.
func (p *clientPart) hostConfig(dir string) host.Config {
	c := host.Config{
		PluginDir: p.config.PluginDir, RunDir: filepath.Join(dir, "plugins"), StateDir: dir, Plugins: p.config.Plugins,
		BuiltinCommand: p.config.Devices.Builtin, Logger: p.log,
	}
	wanted := slices.Clone(p.config.Devices.Named)
	for _, name := range host.Builtins() {
		named := slices.ContainsFunc(wanted, func(one host.DeviceConfig) bool { return one.Name == name })
		if !named && !p.config.Devices.Off[name] {
			wanted = append(wanted, host.DeviceConfig{Name: name, Builtin: true})
		}
	}
	for _, one := range wanted {
		if one.Builtin {
			reason := present(one.Name)
			if p.config.Devices.Forced[one.Name] {
				reason = nil
			}
			if reason == nil {
				if reason = host.BuiltinMissing(c, one.Name); reason != nil {
					p.log.Warn("device plugin is not started", logkey.Plugin, one.Name, logkey.Reason, reason)
				}
			}
			if reason != nil {
				p.log.Debug("device plugin is not started", logkey.Plugin, one.Name, logkey.Reason, reason)
				continue
			}
		}
		c.Devices = append(c.Devices, one)
	}
	return c
}

package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/amd"
	"nomadlike/plugins/ascend"
	"nomadlike/plugins/cambricon"
	"nomadlike/plugins/docker"
	"nomadlike/plugins/exec"
	"nomadlike/plugins/host"
	"nomadlike/plugins/nvidia"
)

// The types of plugin blocks.
const (
	pluginDriver = "driver"
	pluginDevice = "device"
)

// DevicePlugins says which device plugins an agent starts.
type DevicePlugins struct {
	// Named have a block. One that the agent carries is started where it finds
	// something, or always when it is in Forced.
	Named  []host.DeviceConfig
	Forced map[string]bool
	Off    map[string]bool // switched off
	// Builtin runs carried plugins instead of the embedded programs, for tests:
	// a program and its first arguments.
	Builtin []string `json:"-"`
}

// PluginBlock is the block of one plugin, labelled with its name, which is also the
// name of its program in plugin_dir. The device plugins that host.Builtins names
// are carried by the agent and need no block.
type PluginBlock struct {
	Name   string
	Type   *string
	Args   []string
	Env    map[string]string // complete: it gets nothing of the agent's own
	SHA256 *string           // of the program, in hexadecimal
	// Enabled starts a built-in device plugin, or not, whatever the machine
	// seems to have.
	Enabled *bool
	Config  cty.Value // of a device plugin, in its own words
}

func walkPlugin(v visitor, b *PluginBlock) {
	kind := pluginDriver
	if slices.Contains(host.Builtins(), b.Name) {
		kind = pluginDevice
	}
	walkTypedPlugin(v, b, &kind)
}

// walkTypedPlugin goes over a block whose type is kind when it says none.
func walkTypedPlugin(v visitor, b *PluginBlock, kind *string) {
	v.label(&b.Name)
	v.setting("type", word(&b.Type, kind, *kind, pluginDriver, pluginDevice).knownAs(pluginDriver))
	v.setting("args", list(&b.Args, new([]string)))
	v.setting("env", table(&b.Env, new(map[string]string)).hidden())
	v.setting("sha256", text(&b.SHA256, new(string), "").unset().apart())
	v.setting("enabled", toggle(&b.Enabled, new(bool), true).unset().apart())
	v.setting("config", object(&b.Config).hidden())
}

// plugins reads the blocks of plugins.
func (r *resolver) plugins(blocks []PluginBlock) {
	seen := map[string]bool{}
	devices := &r.config.Devices
	devices.Forced, devices.Off = map[string]bool{}, map[string]bool{}
	for i := range blocks {
		plugin := &blocks[i]
		path := "plugin." + plugin.Name
		carried := slices.Contains(host.Builtins(), plugin.Name)
		kind := pluginDriver
		if carried {
			kind = pluginDevice
		}
		r.settle(path, func(v visitor) { walkTypedPlugin(v, plugin, &kind) })
		switch {
		case r.config.PluginDir == "" && !carried:
			r.refuse("plugin", "agent.config.plugin_dir")
		case seen[plugin.Name]:
			r.refuse("plugin", "agent.config.plugin_twice", "name", plugin.Name)
		case plugin.Name == exec.Name, plugin.Name == docker.Name, carried && kind != pluginDevice,
			kind == pluginDriver && structs.Nearest(plugin.Name, []string{exec.Name, docker.Name}) != "":
			r.refuse("plugin", "agent.config.plugin_name", "name", plugin.Name)
		}
		seen[plugin.Name] = true
		switch {
		case kind == pluginDriver:
			r.driverPlugin(path, plugin)
		case get(plugin.Enabled, true):
			r.devicePlugin(path, plugin, carried)
			devices.Forced[plugin.Name] = plugin.Enabled != nil
		default:
			devices.Off[plugin.Name] = true
		}
	}
}

func (r *resolver) driverPlugin(path string, plugin *PluginBlock) {
	one := host.PluginConfig{Name: plugin.Name, Args: plugin.Args, SHA256: r.pin(path, plugin), Env: environ(plugin.Env)}
	r.config.Plugins = append(r.config.Plugins, one)
}

func (r *resolver) devicePlugin(path string, plugin *PluginBlock, carried bool) {
	one := host.DeviceConfig{Name: plugin.Name, Builtin: carried, Args: plugin.Args, SHA256: r.pin(path, plugin), Env: environ(plugin.Env)}
	if plugin.Config != cty.NilVal && !plugin.Config.IsNull() {
		text, err := ctyjson.Marshal(plugin.Config, plugin.Config.Type())
		if err != nil {
			r.refuse(path+".config", "device.bad_config", "plugin", plugin.Name, "problem", err)
			return
		}
		one.Config = text
	}
	if err := checkDeviceConfig(&one); err != nil {
		r.refuse(path+".config", err.ID, pairs(err.Params)...)
	}
	r.config.Devices.Named = append(r.config.Devices.Named, one)
}

// checkDeviceConfig lets a carried plugin judge its configuration before it is
// started; an external one judges its own.
func checkDeviceConfig(one *host.DeviceConfig) *structs.Error {
	var err error
	switch {
	case !one.Builtin:
	case one.Name == nvidia.Name:
		_, err = nvidia.ParseConfig(one.Config)
	case one.Name == ascend.Name:
		_, err = ascend.ParseConfig(one.Config)
	case one.Name == amd.Name:
		_, err = amd.Vendor().ParseConfig(one.Config)
	case one.Name == cambricon.Name:
		_, err = cambricon.Vendor().ParseConfig(one.Config)
	}
	if err == nil {
		return nil
	}
	if told, ok := errors.AsType[*structs.Error](err); ok {
		return told
	}
	return structs.NewError(structs.CodeInvalid, "device.bad_config", "plugin", one.Name, "problem", err)
}

// pairs returns the parameters of a message in the order of their names.
func pairs(params map[string]string) []any {
	var list []any
	for _, name := range slices.Sorted(maps.Keys(params)) {
		list = append(list, name, params[name])
	}
	return list
}

func (r *resolver) pin(path string, plugin *PluginBlock) string {
	pin := get(plugin.SHA256, "")
	if raw, err := hex.DecodeString(pin); pin != "" && (err != nil || len(raw) != sha256.Size) {
		r.refuse(path, "agent.config.plugin_hash", "name", plugin.Name)
	}
	return strings.ToLower(pin)
}

func environ(env map[string]string) []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}

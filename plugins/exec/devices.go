package exec

import (
	"crypto/rand"
	"fmt"
	"syscall"

	"github.com/opencontainers/cgroups"
	_ "github.com/opencontainers/cgroups/devices" // rules need it
	"github.com/opencontainers/cgroups/devices/config"
	"golang.org/x/sys/unix"

	"nomadlike/internal/logkey"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/exec/supervisor"
)

// Numbers of devices that every task may use.
const (
	memoryMajor   = 1   // null, zero, full, random, urandom
	terminalMajor = 5   // tty, ptmx
	ptsFirstMajor = 136 // terminals, to 143
	ptsLastMajor  = 143
)

// deviceRules say which devices a task may open: the common ones and those
// that it was given, and no others, wherever it finds or makes nodes for them.
func deviceRules(spec *driver.TaskSpec) ([]*config.Rule, error) {
	allow := func(major, minor int64, access string) *config.Rule {
		return &config.Rule{Type: config.CharDevice, Major: major, Minor: minor, Permissions: config.Permissions(access), Allow: true}
	}
	var rules []*config.Rule
	for _, minor := range []int64{3, 5, 7, 8, 9} {
		rules = append(rules, allow(memoryMajor, minor, "rw"))
	}
	for _, minor := range []int64{0, 2} {
		rules = append(rules, allow(terminalMajor, minor, "rw"))
	}
	for major := int64(ptsFirstMajor); major <= ptsLastMajor; major++ {
		rules = append(rules, allow(major, config.Wildcard, "rw"))
	}
	for _, node := range taskNodes(spec) {
		rule, err := nodeRule(node)
		if err != nil {
			return nil, err
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

// nodeRule allows the device behind a node.
func nodeRule(node driver.Device) (*config.Rule, error) {
	var stat syscall.Stat_t
	if err := syscall.Stat(node.HostPath, &stat); err != nil {
		return nil, fmt.Errorf("look at device %s: %w", node.HostPath, err)
	}
	kind := config.CharDevice
	switch stat.Mode & syscall.S_IFMT {
	case syscall.S_IFCHR:
	case syscall.S_IFBLK:
		kind = config.BlockDevice
	default:
		return nil, fmt.Errorf("look at device %s: it is none", node.HostPath)
	}
	access := node.Access
	if access == "" {
		access = "rw"
	}
	return &config.Rule{
		Type: kind, Major: int64(unix.Major(stat.Rdev)), Minor: int64(unix.Minor(stat.Rdev)),
		Permissions: config.Permissions(access), Allow: true,
	}, nil
}

// tryDevices finds out whether the kernel takes rules for devices: version 2
// needs programs in the kernel for them, which not every agent may load.
func (i *isolator) tryDevices() {
	rules, err := deviceRules(&driver.TaskSpec{})
	if err == nil && i.cgroups.ruleDevices() {
		wire := &supervisor.Spec{Marker: "probe:" + rand.Text()}
		err = i.cgroups.make(wire, &cgroups.Resources{Devices: rules})
		i.cgroups.remove(wire.Marker)
	}
	if err != nil {
		i.log.Warn("devices cannot be ruled by cgroups", logkey.Error, err)
		i.cgroups.deviceReason = err.Error()
	}
}

// ruleDevices reports whether cgroups can say which devices may be used. Asked
// once the level of isolation is known.
func (c *cgroupTree) ruleDevices() bool {
	_, v1 := c.v1["devices"]
	return (v1 || len(c.v1) == 0 && c.v2 != "") && c.deviceReason == ""
}

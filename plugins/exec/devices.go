package exec

import (
	"fmt"
	"syscall"

	"github.com/opencontainers/cgroups"
	_ "github.com/opencontainers/cgroups/devices" // rules need it
	"github.com/opencontainers/cgroups/devices/config"
	"golang.org/x/sys/unix"

	"nomadlike/plugins/driver"
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
		rules = append(rules, allow(memoryMajor, minor, "rwm"))
	}
	for _, minor := range []int64{0, 2} {
		rules = append(rules, allow(terminalMajor, minor, "rwm"))
	}
	for major := int64(ptsFirstMajor); major <= ptsLastMajor; major++ {
		rules = append(rules, allow(major, config.Wildcard, "rwm"))
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
		Type: kind, Major: int64(unix.Major(uint64(stat.Rdev))), Minor: int64(unix.Minor(uint64(stat.Rdev))),
		Permissions: config.Permissions(access), Allow: true,
	}, nil
}

// boundDevices adds the rules to a task's bounds, where cgroups have any.
func (d *Driver) boundDevices(bounds *cgroups.Resources, spec *driver.TaskSpec) error {
	if !d.cgroups.ruleDevices() {
		return nil
	}
	rules, err := deviceRules(spec)
	if err != nil {
		return err
	}
	bounds.Devices, bounds.SkipDevices = rules, false
	return nil
}

// ruleDevices tells whether cgroups can say which devices may be used.
func (c *cgroupTree) ruleDevices() bool {
	_, v1 := c.v1["devices"]
	return v1 || len(c.v1) == 0 && c.v2 != ""
}

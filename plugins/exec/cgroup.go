package exec

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/fs"
	"github.com/opencontainers/cgroups/fs2"

	"nomadlike/plugins/driver"
	"nomadlike/plugins/exec/supervisor"
)

const (
	// CgroupParentDefault is the name under which all tasks of all agents of a
	// node have their cgroups.
	CgroupParentDefault = "nomadlike"
	// PIDsDefault bounds processes and threads of a task that says nothing.
	PIDsDefault = 32 << 10

	cgroupRoot    = "/sys/fs/cgroup"
	cgroupUnified = "/sys/fs/cgroup/unified" // of version 2, beside the controllers of version 1

	cpuPeriod = 100_000 // microseconds
	// CPULeast is the least bound that a task gets, in cores, however little its job
	// has reserved: with less than that most programs do not even come to their
	// first line.
	CPULeast = 0.1
	// MemoryLeast is the same of memory, in bytes.
	MemoryLeast = 32 << 20
)

// cgroupTree is where the driver makes cgroups for its tasks. Version 1 has a
// hierarchy for each controller, version 2 one for all; a node with version 1
// may have one of version 2 without controllers beside, which serves to kill
// and freeze in one step.
type cgroupTree struct {
	v1     map[string]string // parents by controller, "cpu" for instance
	v2     string            // parent, "" for none
	limits []string          // what can be bounded: "cpu", "memory", "pids"
	reason string            // why something cannot; "" when all can
	// deviceReason is why devices cannot be ruled, set before the level of
	// isolation is known.
	deviceReason string
}

// limitControllers are what tasks are bounded by.
func limitControllers() []string { return []string{"cpu", "memory", "pids"} }

// findCgroups looks where cgroups can be made, and makes the parents.
func findCgroups(parent string) *cgroupTree {
	tree := &cgroupTree{}
	problems := make(map[string]bool)
	if isCgroup2(cgroupRoot) {
		if tree.v2 = openCgroup2(cgroupRoot, parent, problems); tree.v2 != "" {
			tree.limits = controllersOf(cgroupRoot)
		}
	} else {
		tree.v2 = openCgroup2(cgroupUnified, parent, make(map[string]bool)) // does without it
		tree.openVersion1(parent, problems)
	}
	for _, name := range limitControllers() {
		if !slices.Contains(tree.limits, name) {
			problems["no controller "+name] = true
		}
	}
	all := make([]string, 0, len(problems))
	for problem := range problems {
		all = append(all, problem)
	}
	slices.Sort(all)
	tree.reason = strings.Join(all, ", ")
	return tree
}

// openVersion1 makes the parents in the hierarchies of version 1. cpuacct
// measures, devices and freezer act; the others bound.
func (c *cgroupTree) openVersion1(parent string, problems map[string]bool) {
	const cgroupMagic = 0x27e0eb
	c.v1 = make(map[string]string)
	for _, name := range append(limitControllers(), "cpuacct", "devices", "freezer") {
		root := filepath.Join(cgroupRoot, name)
		var stat syscall.Statfs_t
		if syscall.Statfs(root, &stat) != nil || stat.Type != cgroupMagic {
			continue
		}
		dir := filepath.Join(root, parent)
		if err := os.Mkdir(dir, 0o755); err != nil && !os.IsExist(err) {
			problems[err.Error()] = true
			continue
		}
		c.v1[name] = dir
		if slices.Contains(limitControllers(), name) {
			c.limits = append(c.limits, name)
		}
	}
}

func isCgroup2(root string) bool {
	const cgroup2Magic = 0x63677270
	var stat syscall.Statfs_t
	return syscall.Statfs(root, &stat) == nil && stat.Type == cgroup2Magic
}

// openCgroup2 makes the parent in a hierarchy of version 2; "" when it cannot
// be used.
func openCgroup2(root, parent string, problems map[string]bool) string {
	if !isCgroup2(root) {
		return ""
	}
	dir := filepath.Join(root, parent)
	if err := os.Mkdir(dir, 0o755); err != nil && !os.IsExist(err) {
		problems[err.Error()] = true
		return ""
	}
	if _, err := os.Stat(filepath.Join(dir, "cgroup.freeze")); err != nil {
		problems["the kernel has no freezer in cgroup version 2"] = true
		_ = os.Remove(dir)
		return ""
	}
	return dir
}

// controllersOf lists the bounds that a hierarchy of version 2 has.
func controllersOf(root string) []string {
	text, err := os.ReadFile(filepath.Join(root, "cgroup.controllers"))
	if err != nil {
		return nil
	}
	there := strings.Fields(string(text))
	return slices.DeleteFunc(limitControllers(), func(name string) bool { return !slices.Contains(there, name) })
}

// version names what there is, for the fingerprint.
func (c *cgroupTree) version() string {
	switch {
	case len(c.v1) > 0 && c.v2 != "":
		return "hybrid"
	case len(c.v1) > 0:
		return "v1"
	case c.v2 != "":
		return "v2"
	}
	return "none"
}

// parents lists all directories in which a task can have a cgroup.
func (c *cgroupTree) parents() []string {
	var all []string
	if c.v2 != "" {
		all = append(all, c.v2)
	}
	for _, dir := range c.v1 {
		all = append(all, dir)
	}
	slices.Sort(all)
	return all
}

// make makes a task's cgroups with their bounds and tells the supervisor of
// them. On an error nothing of them is left.
func (c *cgroupTree) make(wire *supervisor.Spec, resources *cgroups.Resources) (err error) {
	name := wire.Marker
	wire.Cgroup, wire.Cgroups = "", nil
	defer func() {
		if err != nil {
			c.remove(name)
		}
	}()
	group := &cgroups.Cgroup{Path: "/" + name, Resources: resources}
	if len(c.v1) > 0 {
		paths := make(map[string]string, len(c.v1))
		for controller, parent := range c.v1 {
			if controller == "devices" && resources.SkipDevices {
				continue // the library makes none
			}
			paths[controller] = filepath.Join(parent, name)
			wire.Cgroups = append(wire.Cgroups, supervisor.Cgroup{Controller: controller, Dir: paths[controller]})
		}
		manager, err := fs.NewManager(group, paths)
		if err != nil {
			return fmt.Errorf("make cgroups: %w", err)
		}
		if err := apply(manager, resources); err != nil {
			return err
		}
	}
	if c.v2 == "" {
		return nil
	}
	wire.Cgroup = filepath.Join(c.v2, name)
	if len(c.v1) > 0 {
		if err := os.Mkdir(wire.Cgroup, 0o755); err != nil {
			return fmt.Errorf("make cgroup: %w", err)
		}
		return nil
	}
	manager, err := fs2.NewManager(group, wire.Cgroup)
	if err != nil {
		return fmt.Errorf("make cgroup: %w", err)
	}
	return apply(manager, resources)
}

// noProcess lets a manager make cgroups that nobody enters yet.
const noProcess = -1

// oneByOne guards the library's cgroups of version 1: what it has found out
// about the kernel it keeps in variables of its packages, without a lock
// (fs/blkio.go, detectWeightFilenames).
var oneByOne sync.Mutex

func apply(manager interface {
	Apply(pid int) error
	Set(*cgroups.Resources) error
}, resources *cgroups.Resources,
) error {
	oneByOne.Lock()
	defer oneByOne.Unlock()
	if err := manager.Apply(noProcess); err != nil {
		return fmt.Errorf("make cgroups: %w", err)
	}
	if err := manager.Set(resources); err != nil {
		return fmt.Errorf("bound cgroups: %w", err)
	}
	return nil
}

// bounds says what a task may use in the words of the library. Pure.
func (c *cgroupTree) bounds(r driver.Resources, pidsMax int64) *cgroups.Resources {
	bounds := &cgroups.Resources{SkipDevices: true}
	if r.CPU > 0 && slices.Contains(c.limits, "cpu") {
		bounds.CpuPeriod, bounds.CpuQuota = cpuPeriod, int64(max(r.CPU, CPULeast)*cpuPeriod)
	}
	if r.Memory > 0 && slices.Contains(c.limits, "memory") {
		bounds.Memory = max(r.Memory, MemoryLeast)
		if c.swapBounded() {
			bounds.MemorySwap = bounds.Memory // together: no swap
		}
	}
	if slices.Contains(c.limits, "pids") {
		if r.PIDs > 0 {
			pidsMax = r.PIDs
		}
		bounds.PidsLimit = &pidsMax
	}
	return bounds
}

// swapBounded reports whether the kernel counts swapped memory.
func (c *cgroupTree) swapBounded() bool {
	file := filepath.Join(c.v2, "memory.swap.max")
	if dir, ok := c.v1["memory"]; ok {
		file = filepath.Join(dir, "memory.memsw.limit_in_bytes")
	}
	_, err := os.Stat(file)
	return err == nil
}

// find returns the cgroups of a task that exist: as a rule one in each
// hierarchy or none. They are named as markers are, and a task's marker
// begins with its id, so that no record can lead to anybody else's. A marker
// that ends with the separator stands for all that begin with it.
func (c *cgroupTree) find(marker string) []string {
	if marker == "" || strings.Contains(marker, "/") {
		return nil
	}
	var found []string
	for _, parent := range c.parents() {
		if !strings.HasSuffix(marker, ":") {
			dir := filepath.Join(parent, marker)
			if _, err := os.Lstat(dir); err == nil {
				found = append(found, dir)
			}
			continue
		}
		entries, err := os.ReadDir(parent)
		if err != nil {
			continue
		}
		for _, entry := range entries {
			if entry.IsDir() && strings.HasPrefix(entry.Name(), marker) {
				found = append(found, filepath.Join(parent, entry.Name()))
			}
		}
	}
	return found
}

// remove removes what is empty of a task's cgroups. What is not stays, with
// something unkillable in it.
func (c *cgroupTree) remove(marker string) {
	for _, dir := range c.find(marker) {
		_ = os.Remove(dir)
	}
}

// kill kills what is in a task's cgroups, as far as they can do that, and
// returns the ids of the processes found in them.
func (c *cgroupTree) kill(marker string) (pids []int) {
	for _, dir := range c.find(marker) {
		// What these do not reach is found by other means.
		_ = os.WriteFile(filepath.Join(dir, "cgroup.freeze"), []byte("0"), 0)
		_ = os.WriteFile(filepath.Join(dir, "freezer.state"), []byte("THAWED"), 0)
		_ = os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0)
		members, err := cgroups.GetPids(dir)
		if err == nil {
			pids = append(pids, members...)
		}
	}
	slices.Sort(pids)
	return slices.Compact(pids)
}

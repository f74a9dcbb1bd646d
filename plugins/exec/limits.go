package exec

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/exec/supervisor"
)

// limitNumber returns the kernel's number of a limit, -1 for none.
func limitNumber(name string) int {
	// The numbers of Linux on every architecture that the supervisor is built
	// for, by their order.
	return slices.Index([]string{
		"cpu", "fsize", "data", "stack", "core", "rss", "nproc", "nofile", "memlock", "as", "locks", "sigpending",
		"msgqueue", "nice", "rtprio", "rttime",
	}, name)
}

// hardLimit is what this process may give its children without any right.
func hardLimit(name string) (int64, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(limitNumber(name), &limit); err != nil {
		return 0, fmt.Errorf("read limit %s: %w", name, err)
	}
	if limit.Max > math.MaxInt64 {
		return structs.UlimitInfinite, nil
	}
	return int64(limit.Max), nil
}

// ulimits returns the limits of a task: what the job asks for, up to what the
// administrator allows, else up to what the agent itself has; and what the
// administrator sets for every task.
func (t *translator) ulimits(spec *driver.TaskSpec) ([]supervisor.Limit, error) {
	wanted := slices.DeleteFunc(slices.Clone(t.config.Ulimits), func(given driver.Ulimit) bool {
		return slices.ContainsFunc(spec.Ulimits, func(asked driver.Ulimit) bool { return asked.Name == given.Name })
	})
	for _, limit := range spec.Ulimits {
		most, given := t.config.UlimitsMax[limit.Name]
		if !given {
			var err error
			if most, err = hardLimit(limit.Name); err != nil {
				return nil, err
			}
		}
		if structs.UlimitAbove(limit.Hard, most) {
			return nil, structs.NewError(structs.CodeForbidden, "driver.ulimit_refused", "limit", limit.Name,
				"value", structs.FormatUlimit(limit.Name, limit.Hard), "most", structs.FormatUlimit(limit.Name, most))
		}
		wanted = append(wanted, limit)
	}
	var limits []supervisor.Limit
	for _, limit := range wanted {
		limits = append(limits, supervisor.Limit{Resource: limitNumber(limit.Name), Soft: limit.Soft, Hard: limit.Hard})
	}
	return limits, nil
}

// raiseLimits lets a supervisor give its task hard limits that this process
// does not have itself, which takes a right of the node's.
func raiseLimits(pid int, limits []supervisor.Limit) error {
	for _, limit := range limits {
		var now unix.Rlimit
		if err := unix.Prlimit(pid, limit.Resource, nil, &now); err != nil {
			return fmt.Errorf("read limits of supervisor: %w", err)
		}
		if uint64(limit.Hard) <= now.Max { // without a limit is the greatest number
			continue
		}
		old := now.Max
		now.Max = uint64(limit.Hard)
		err := unix.Prlimit(pid, limit.Resource, &now, nil)
		if errors.Is(err, unix.EPERM) {
			name := limitName(limit.Resource)
			return structs.NewError(structs.CodeForbidden, "driver.ulimit_powerless", "limit", name,
				"value", structs.FormatUlimit(name, limit.Hard), "hard", structs.FormatUlimit(name, int64(old)))
		}
		if err != nil {
			return fmt.Errorf("raise limits of supervisor: %w", err)
		}
	}
	return nil
}

func limitName(number int) string {
	names := structs.UlimitNames()
	return names[slices.IndexFunc(names, func(name string) bool { return limitNumber(name) == number })]
}

// checkUlimits refuses limits that mean nothing.
func (c *Config) checkUlimits() error {
	for _, limit := range c.Ulimits {
		if limitNumber(limit.Name) < 0 || structs.UlimitAbove(limit.Soft, limit.Hard) {
			return fmt.Errorf("prepare exec driver: bad limit %+v", limit)
		}
	}
	for name := range c.UlimitsMax {
		if limitNumber(name) < 0 {
			return fmt.Errorf("prepare exec driver: there is no limit %q", name)
		}
	}
	return nil
}

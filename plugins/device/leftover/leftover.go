// Package leftover ends what dead tasks have left on devices.
//
// Flow: a plugin lists the processes that have a context on its devices; End
// looks each up in /proc, decides with classify whether it belongs to a task
// of this agent that has ended, kills those, and looks again until they are
// gone or time is up. Only a process that is marked as the agent's own, and
// not as one of a live task, is ever ended.
//
// Limits: Linux 5.3 (pidfd). Process numbers must be those of this machine: a
// plugin in a PID namespace of its own sees others, finds them not, and
// touches nothing.
package leftover

import (
	"context"
	"slices"
	"time"

	"nomadlike/plugins/device"
)

// pollEvery is how often ended processes are looked for on the devices.
const pollEvery = 50 * time.Millisecond

// Kind is what a process on a device is.
type Kind int

// The kinds of processes.
const (
	Foreign Kind = iota // of nobody that this agent knows
	Live                // of a task that runs
	Dead                // of a task of this agent that has ended
	Gone                // the kernel knows it no longer
)

// Facts are what /proc says about a process.
type Facts struct {
	Exists          bool
	StartTicks      uint64 // with the number, this names one process for ever
	Cgroups         []string
	Environment     []string // empty when it may not be read
	Ancestors       []int    // its parent first
	Name            string
	Uninterruptible bool // in an uninterruptible wait
}

// Door is what End needs of the world.
type Door interface {
	// Look returns the facts of a process.
	Look(pid int) Facts
	// Kill ends the process that had these facts; one that has taken over its
	// number since stays.
	Kill(pid int, facts Facts) error
}

// List returns the processes on each of the asked devices.
type List func(ctx context.Context, ids []string) (map[string][]device.Process, error)

// End cleans devices. It returns what it has found on each, in the order of
// the request, without a verdict on memory. The context bounds it besides the
// request's limit; an error means that the list could not be had.
func End(ctx context.Context, request device.Reaping, list List, door Door) ([]device.Reaped, error) {
	limit := request.Limit
	if limit <= 0 {
		limit = device.ReapLimitDefault
	}
	ctx, cancel := context.WithTimeout(ctx, min(limit, device.ReapLimitMax))
	defer cancel()
	killed := make(map[string]map[int]device.Process, len(request.IDs)) // by device: those that were on it
	for _, id := range request.IDs {
		killed[id] = make(map[int]device.Process)
	}
	asked := make(map[int]bool) // to end
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	var found []device.Reaped
	for {
		on, err := list(ctx, request.IDs)
		if err != nil && ctx.Err() != nil && found != nil {
			return concluded(found, killed), nil // time is up: what was seen last counts
		}
		if err != nil {
			return nil, err
		}
		found = make([]device.Reaped, len(request.IDs))
		waiting := false
		for i, id := range request.IDs {
			found[i] = device.Reaped{ID: id, MemoryUsed: -1}
			for _, p := range on[id] {
				facts := door.Look(p.PID)
				if p.Name == "" {
					p.Name = facts.Name
				}
				switch classify(p.PID, facts, request) {
				case Live:
					found[i].Live = append(found[i].Live, p)
				case Foreign:
					found[i].Foreign = append(found[i].Foreign, p)
				case Gone:
					waiting = true // the driver still cleans up after it
					if _, known := killed[id][p.PID]; asked[p.PID] && !known {
						killed[id][p.PID] = p
					}
				case Dead:
					waiting = true
					found[i].Unkillable = append(found[i].Unkillable, p)
					killed[id][p.PID] = p
					if !asked[p.PID] {
						asked[p.PID] = true
						_ = door.Kill(p.PID, facts) // whether it worked is seen at the next look
					}
				}
			}
		}
		if waiting {
			select {
			case <-tick.C:
				continue
			case <-ctx.Done():
			}
		}
		return concluded(found, killed), nil
	}
}

// concluded completes what was found.
func concluded(found []device.Reaped, killed map[string]map[int]device.Process) []device.Reaped {
	for i := range found {
		found[i].Killed = gone(killed[found[i].ID], found[i].Unkillable)
		found[i].Clean = len(found[i].Unkillable) == 0
	}
	return found
}

// gone returns the killed processes that are no longer there, by number.
func gone(killed map[int]device.Process, unkillable []device.Process) []device.Process {
	var ended []device.Process
	for pid, p := range killed {
		if !slices.ContainsFunc(unkillable, func(s device.Process) bool { return s.PID == pid }) {
			ended = append(ended, p)
		}
	}
	slices.SortFunc(ended, func(a, b device.Process) int { return a.PID - b.PID })
	return ended
}

// classify decides what a process is.
func classify(pid int, facts Facts, request device.Reaping) Kind {
	switch {
	case !facts.Exists:
		return Gone
	case slices.ContainsFunc(request.Live, func(m device.Mark) bool { return marked(pid, facts, m) }):
		return Live
	case slices.ContainsFunc(request.Mine, func(m device.Mark) bool { return marked(pid, facts, m) }):
		return Dead
	}
	return Foreign
}

// marked reports whether a mark holds for a process.
func marked(pid int, facts Facts, m device.Mark) bool {
	if m.PID > 0 && (m.PID == pid || slices.Contains(facts.Ancestors, m.PID)) {
		return true
	}
	if m.Cgroup != "" && m.Cgroup != "/" && slices.ContainsFunc(facts.Cgroups, func(path string) bool { return below(path, m.Cgroup) }) {
		return true
	}
	return m.Env != "" && slices.ContainsFunc(facts.Environment, func(entry string) bool {
		return len(entry) >= len(m.Env) && entry[:len(m.Env)] == m.Env
	})
}

// below reports whether a cgroup path is prefix or lies below it.
func below(path, prefix string) bool {
	for len(prefix) > 1 && prefix[len(prefix)-1] == '/' {
		prefix = prefix[:len(prefix)-1]
	}
	return path == prefix || len(path) > len(prefix) && path[:len(prefix)] == prefix && path[len(prefix)] == '/'
}

package driver

import (
	"maps"
	"slices"

	"nomadlike/nomadlike/structs"
)

// UlimitsMax is how many limits of processes a task may name.
const UlimitsMax = 16

// Ulimit is a limit of each of the task's processes, further commands and
// hooks included.
type Ulimit struct {
	Name string `json:"name"` // one of structs.UlimitNames
	Soft int64  `json:"soft"` // structs.UlimitInfinite: without a limit
	Hard int64  `json:"hard"`
}

// ParseUlimits reads limits by name as structs.ParseUlimit does, in the order
// of the names; what is none is left out, so check before. Pure.
func ParseUlimits(limits map[string]string) (parsed []Ulimit) {
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		if soft, hard, err := structs.ParseUlimit(name, limits[name]); err == nil {
			parsed = append(parsed, Ulimit{Name: name, Soft: soft, Hard: hard})
		}
	}
	return parsed
}

func checkUlimits(limits []Ulimit) error {
	if len(limits) > UlimitsMax {
		return badSpec("ulimits", "has %d entries, at most %d are allowed", len(limits), UlimitsMax)
	}
	for i, limit := range limits {
		if !slices.Contains(structs.UlimitNames(), limit.Name) {
			return badSpec("ulimits", "there is no limit named %q", limit.Name)
		}
		if slices.ContainsFunc(limits[:i], func(other Ulimit) bool { return other.Name == limit.Name }) {
			return badSpec("ulimits", "%s is there twice", limit.Name)
		}
		if limit.Soft < -1 || limit.Hard < -1 || structs.UlimitAbove(limit.Soft, limit.Hard) {
			return badSpec("ulimits", "%s: want a soft limit that is not above the hard one, or -1", limit.Name)
		}
	}
	return nil
}

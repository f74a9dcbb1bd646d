package driver

import (
	"slices"
	"strings"
)

// SearchPathDefault is the PATH of tasks whose job and image name none.
const SearchPathDefault = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// WithSearchPath completes the environment that a driver has made for a task:
// a missing PATH is SearchPathDefault, and PathFirst and PathLast stand around
// the directories that are there. env is not changed. For drivers, at a
// task's start.
func (s *TaskSpec) WithSearchPath(env []string) []string {
	dirs := SearchPathDefault
	rest := make([]string, 0, len(env)+1)
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, "PATH="); ok {
			dirs = value
			continue
		}
		rest = append(rest, entry)
	}
	all := slices.Concat(s.PathFirst, []string{dirs}, s.PathLast)
	return append(rest, "PATH="+strings.Join(all, ":"))
}

//go:build linux && !cli

package main

import "nomadlike/plugins/exec/supervisor"

// superviseTask is the life of this program as the supervisor of a task. It comes
// before anything else: it is started once for each task and must start fast.
func superviseTask(args []string) (code int, done bool) {
	if len(args) < 2 || args[1] != supervisor.Argument {
		return 0, false
	}
	return supervisor.Main(args[2:]), true
}

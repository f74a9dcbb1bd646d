package taskinit

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"nomadlike/plugins/driver/taskside"
)

// Environ is the environment of a keeper: how the Go runtime behaves in a
// process that idles for days. An init sets the same by itself, so that no
// container shows such variables.
func Environ() []string {
	return []string{"GOMAXPROCS=2", "GOGC=20", "GOMEMLIMIT=64MiB", "GODEBUG=containermaxprocs=0,updatemaxprocs=0"}
}

// Main runs an init, or with KeepArgument a keeper, and returns the process's
// exit code. It takes the whole process; main calls it before anything else.
func Main(args []string) int {
	switch {
	case len(args) > 1 && args[0] == taskside.Argument:
		return taskside.Main(args[1:])
	case len(args) == 0:
		runtime.GOMAXPROCS(2)
		debug.SetGCPercent(20)
		debug.SetMemoryLimit(64 << 20)
		return runInit()
	case len(args) == 1 && args[0] == KeepArgument:
		return runKeeper()
	}
	fmt.Fprintln(os.Stderr, "task-init: started by the agent and by the container engine only")
	return 2
}

// Command task-supervisor owns one task of the exec driver; see package
// supervisor. It is built small, embedded into the main program and written
// out by the driver. People do not call it.
package main

import (
	"os"
	"runtime"

	"nomadlike/plugins/exec/supervisor"
)

// init keeps main on the process's first thread; see supervisor.Main.
func init() { runtime.LockOSThread() }

func main() { os.Exit(supervisor.Main(os.Args[1:])) }

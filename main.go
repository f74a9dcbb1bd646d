// Nomadlike turns Linux machines into an AI training cluster: this binary is
// the server, the client and the command line. See README.md.
package main

import (
	"os"

	"nomadlike/command"
	"nomadlike/plugins/exec/supervisor"
)

func main() {
	// The supervisor of a task comes before anything else: it is started
	// once for each task and must start fast.
	if len(os.Args) > 1 && os.Args[1] == supervisor.Argument {
		os.Exit(supervisor.Main(os.Args[2:]))
	}
	os.Exit(command.Main(os.Args[1:]))
}

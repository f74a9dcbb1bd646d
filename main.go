// Nomadlike turns Linux machines into an AI training cluster: this binary is
// the server, the client and the command line. See README.md. Elsewhere than on
// Linux it is the command line alone.
package main

import (
	"os"

	"nomadlike/command"
)

func main() {
	if code, done := superviseTask(os.Args); done {
		os.Exit(code)
	}
	os.Exit(command.Main(os.Args[1:]))
}

// Command task-init runs inside and beside the containers of tasks; see
// package taskinit. Flow: main calls it. Limits: never started by hand.
package main

import (
	"os"

	"nomadlike/plugins/docker/taskinit"
)

func main() { os.Exit(taskinit.Main(os.Args[1:])) }

// Device-plugin is the program of the built-in device plugins. The agent's
// binary carries it and starts it once for each vendor whose hardware a node
// has, with the plugin's name as its argument.
package main

import (
	"fmt"
	"os"

	"nomadlike/plugins/nvidia"
	"nomadlike/plugins/nvidia/nvml"
)

func main() {
	name := ""
	if len(os.Args) > 1 {
		name = os.Args[1]
	}
	switch name {
	case nvidia.Name:
		nvml.Serve()
	default:
		fmt.Fprintf(os.Stderr, "there is no built-in device plugin %q\n", name)
		os.Exit(2)
	}
}

// Nvidia-plugin is the program of the built-in device plugin for NVIDIA cards.
// The agent's binary carries it and starts it on nodes that have something for
// it to find. It needs cgo, and the C library of the machine that it was built
// on or a newer one.
package main

import "nomadlike/plugins/nvidia/nvml"

func main() { nvml.Serve() }

// Nvidia-plugin is the program of the built-in device plugin for NVIDIA cards.
// The agent's binary carries it and starts it on nodes that have something for
// it to find. It needs cgo and glibc: `make device-plugins` links it so that 2.17
// will do; a plain build needs the C library of its machine or a newer one.
package main

import "nomadlike/plugins/nvidia/nvml"

func main() { nvml.Serve() }

// Ascend-plugin is the program of the built-in device plugin for Huawei's
// Ascend cards. The agent's binary carries it and starts it on nodes that have
// something for it to find. It is built without cgo, so that it runs with any
// C library.
package main

import "nomadlike/plugins/ascend/dcmi"

func main() { dcmi.Serve() }

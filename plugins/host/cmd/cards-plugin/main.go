// Cards-plugin is the program of the built-in device plugins for AMD's, Huawei's
// and Cambricon's cards: it is the one under whose name it is started. The
// agent's binary carries it and starts it on nodes that have something for it to
// find. It is built without cgo, so that it runs with any C library.
package main

import (
	"fmt"
	"os"

	"nomadlike/plugins/amd"
	"nomadlike/plugins/amd/amdsmi"
	"nomadlike/plugins/ascend"
	"nomadlike/plugins/ascend/dcmi"
	"nomadlike/plugins/cambricon"
	"nomadlike/plugins/cambricon/cndev"
)

func main() {
	serve := map[string]func(){amd.Name: amdsmi.Serve, ascend.Name: dcmi.Serve, cambricon.Name: cndev.Serve}[os.Args[0]]
	if serve == nil {
		fmt.Fprintf(os.Stderr, "%s: this program is started by an agent, under the name of a device plugin\n", os.Args[0])
		os.Exit(2)
	}
	serve()
}

package launch

import (
	"cmp"
	"strconv"
)

// Where older platforms put the host files; scripts name these paths. They are
// views of the files in the task directory.
const (
	horovodHostFile = "/etc/mpi/hostfile"
	horovodHydra    = "/etc/mpi/mpich_hostfile"
	horovodDiscover = "/etc/mpi/discover_hosts.sh"
	discoverFile    = ".nomadlike/discover_hosts.sh" // in the task directory
)

// horovod is mpi with the prefix that horovod users know: rank 0 runs the
// command, the others hold their place. A command without mpirun gets the
// documented prefix for Open MPI 4; one with it, or with horovodrun, stays as
// typed. The host files stand at the paths that scripts expect, and so does the
// script that horovodrun --host-discovery-script asks for hosts: those of this
// attempt, which never change.
func (b *build) horovod() error {
	if err := b.mpi(); err != nil || b.out.Hold {
		return err
	}
	b.view(horovodHostFile, mpiHostFile)
	b.view(horovodHydra, mpiHydraFile)
	b.out.Files = append(b.out.Files, File{Path: discoverFile, Mode: 0o755, Content: "#!/bin/sh\n" +
		"# The hosts of this job and their slots, for horovodrun --host-discovery-script.\n" +
		"exec cat '" + b.inTaskDir(mpiHydraFile) + "'\n"})
	b.view(horovodDiscover, discoverFile)
	return nil
}

// horovodPrefix is put in front of a command without a launcher. It shows
// NCCL's own log: that is part of the documented prefix, unless the job or the
// node's configuration says what NCCL shall log.
func (b *build) horovodPrefix() []string {
	words := []string{"mpirun", "--allow-run-as-root", "-np", strconv.Itoa(b.slotsOfAll()), "-bind-to", "none", "-map-by", "slot"}
	_, mine := b.env.users["NCCL_DEBUG"]
	switch {
	case mine:
		words = append(words, "-x", "NCCL_DEBUG")
	case b.node.NCCLDebug != NCCLDebugOff:
		words = append(words, "-x", "NCCL_DEBUG="+cmp.Or(b.node.NCCLDebug, "INFO"))
	}
	return append(words, "-x", "LD_LIBRARY_PATH", "-x", "PATH", "-mca", "pml", "ob1", "-mca", "btl", "^openib")
}

// NCCLDebugOff is the word of the node's configuration for no NCCL_DEBUG at all.
const NCCLDebugOff = "off"

// view shows a file of the task directory at a path of its own as well.
func (b *build) view(path, file string) {
	b.out.Views = append(b.out.Views, View{Path: path, File: file})
}

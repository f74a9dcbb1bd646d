package launch

import (
	"path"
	"strconv"
	"strings"

	"nomadlike/nomadlike/structs"
)

// MasterPortDefault is the rendezvous port when the scheduler gave none: a
// task with a network of its own needs none from the node.
const MasterPortDefault = 2222

// pytorch runs the command on every node with what torch.distributed reads.
//
// PET_* are torchrun's own option names and mean the same everywhere;
// WORLD_SIZE counts nodes or processes by the job's dialect, and RANK is the
// node's in both. torchrun and torch.distributed.launch set RANK and
// WORLD_SIZE anew for their processes, so the dialect matters only to scripts
// that are started directly.
func (b *build) pytorch() error {
	b.torchEnvironment()
	words, err := b.words()
	if err != nil {
		return err
	}
	b.out.Command, err = b.rewrite(words)
	return err
}

// torchEnvironment sets what torch.distributed and its launchers read.
func (b *build) torchEnvironment() {
	nodes, slots, rank := strconv.Itoa(len(b.members)), strconv.Itoa(b.slots), strconv.Itoa(b.rank)
	address, port := b.masterAddr(), strconv.Itoa(b.masterPort())
	world := nodes
	if b.job.Distributed.WorldSize == structs.WorldSizeProcs {
		world = strconv.Itoa(len(b.members) * b.slots)
	}
	if b.job.TorchRange() {
		b.torchRange()
	} else {
		b.env.set("PET_NNODES", nodes)
		b.env.set("PET_NODE_RANK", rank)
		b.env.set("PET_MASTER_ADDR", bracketed(address))
		b.env.set("PET_MASTER_PORT", port)
	}
	for _, v := range [...]struct{ name, value string }{
		{"MASTER_ADDR", address},
		{"MASTER_PORT", port},
		{"WORLD_SIZE", world},
		{"RANK", rank},
		{"SLOTS", slots},
		{"NNODES", nodes},
		{"NODE_RANK", rank},
		{"NPROC_PER_NODE", slots},
		{"PET_NPROC_PER_NODE", slots},
	} {
		b.env.set(v.name, v.value)
	}
	b.env.suggest("GLOO_SOCKET_IFNAME", b.node.Interface)
}

// torchRange lets torchrun itself gather what is there of the gang, between the
// job's range: its agents meet at a store that rank 0 keeps. How often it starts
// its processes again is the user's to say (PET_MAX_RESTARTS); that a node has
// left does not count.
func (b *build) torchRange() {
	for _, option := range b.rangeOptions() {
		b.env.set("PET_"+strings.ToUpper(option.name), option.value)
	}
	b.env.suggest("PET_MAX_RESTARTS", "3")
}

type torchOption struct{ name, value string }

// rangeOptions are torchrun's options for a range of nodes.
func (b *build) rangeOptions() []torchOption {
	// Who keeps the store is said rather than guessed from host names. A few
	// seconds for the last node to come, where torchrun would wait half a minute.
	conf := "is_host=" + strconv.FormatBool(b.rank == 0) + ",join_timeout=600,last_call_timeout=5"
	return []torchOption{
		{"nnodes", strconv.Itoa(b.job.NodesMin()) + ":" + strconv.Itoa(len(b.members))},
		{"rdzv_backend", "c10d"},
		{"rdzv_endpoint", hostPort(b.masterAddr(), b.masterPort())},
		{"rdzv_id", b.job.ID + "-" + strconv.Itoa(b.alloc.Subjob) + "-" + strconv.FormatUint(b.alloc.Attempt, 10)},
		{"rdzv_conf", conf},
	}
}

// masterAddr is where rank 0 listens, the same on every node. Older platforms
// tell node 0 itself to listen on localhost, which worked while every node took
// the address from its own options. From PyTorch 1.9 to 2.3 node 0 publishes
// its own to all, and the others knock at themselves until they give up (seen
// with 1.13); rank 0's name means the same to node 0 and is right in every
// version. The rewrite uses localhost where nobody else reads it: with one node.
func (b *build) masterAddr() string {
	if !b.node.PrivateHosts {
		return b.members[0].Addr
	}
	return b.members[0].Name
}

func (b *build) masterPort() int {
	if port := b.members[0].Ports[structs.MasterPortName]; port > 0 {
		return port
	}
	if b.job.Distributed.MasterPort > 0 {
		return b.job.Distributed.MasterPort
	}
	return MasterPortDefault
}

// bracketed writes an IPv6 address as torchrun takes it.
func bracketed(address string) string {
	if strings.Contains(address, ":") {
		return "[" + address + "]"
	}
	return address
}

// rewrite puts `python X…` under torch.distributed, unless the job says none
// or the command brings a launcher of its own.
func (b *build) rewrite(words []string) ([]string, error) {
	module := "torch.distributed.launch"
	switch b.job.Distributed.Rewrite {
	case structs.RewriteNone:
		return words, nil
	case structs.RewriteTorchrun:
		module = "torch.distributed.run" // what torchrun is, with the interpreter as typed
	}
	if !isPython(words[0]) {
		if isPython(path.Base(words[0])) {
			b.note("launch.python_path", "command", words[0])
		}
		return words, nil
	}
	found, substring := findLauncher(words, pytorchLaunchers())
	if found != "" {
		b.note("launch.launcher_found", "launcher", found)
		return words, nil
	}
	if substring != "" {
		b.note("launch.launcher_substring", "launcher", substring)
	}
	call := readPython(words)
	switch {
	case call.code && len(b.members) > 1:
		return nil, structs.NewError(structs.CodeInvalid, "launch.python_code", "nodes", len(b.members))
	case call.module == "" && !call.script:
		b.note("launch.python_no_script")
		return words, nil
	}
	address := b.masterAddr()
	if len(b.members) == 1 {
		address = "localhost"
	}
	if b.job.TorchRange() {
		options := []string{"--nproc_per_node=" + strconv.Itoa(b.slots)}
		for _, option := range b.rangeOptions() {
			options = append(options, "--"+option.name+"="+option.value)
		}
		// What torchrun is: the older launcher would need all nodes.
		return call.under("torch.distributed.run", options), nil
	}
	return call.under(module, []string{
		"--nproc_per_node=" + strconv.Itoa(b.slots),
		"--nnodes=" + strconv.Itoa(len(b.members)),
		"--node_rank=" + strconv.Itoa(b.rank),
		"--master_addr=" + bracketed(address),
		"--master_port=" + strconv.Itoa(b.masterPort()),
	}), nil
}

package launch

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"nomadlike/nomadlike/structs"
)

const (
	deepspeedHostFile = "/job/hostfile"  // where deepspeed looks by itself
	deepspeedEnvFile  = ".deepspeed_env" // what the launcher hands to other nodes
	deepspeedProgram  = "deepspeed"
)

// deepspeed sets what pytorch sets on every node, and writes the host file.
//
//	pdsh    the command runs on rank 0; deepspeed reaches the other ranks, which
//	        hold their place, by a pdsh and an ssh that go through the agents:
//	        no such program, no sshd and no key is needed in the image. A command
//	        that begins with deepspeed gets rank 0's address and port.
//	no_ssh  the command runs on every node; `deepspeed X` gets --no_ssh, which
//	        deepspeed knows since July 2024, with the node's rank and rank 0's
//	        address. Other commands stay as typed.
func (b *build) deepspeed() error {
	b.torchEnvironment()
	pdsh := b.job.Distributed.Launcher == structs.LauncherPDSH && len(b.members) > 1
	if pdsh {
		b.commonDir()
	}
	if pdsh && b.rank != 0 {
		b.out.Hold = true
		return nil
	}
	b.out.Files = append(b.out.Files, File{Path: mpiHostFile, Mode: 0o644, Content: b.hostFile()})
	b.view(deepspeedHostFile, mpiHostFile)
	if pdsh {
		if err := b.pdsh(); err != nil {
			return err
		}
	}
	words, err := b.words()
	if err != nil {
		return err
	}
	if pdsh {
		b.out.Command = b.addressed(words)
	} else {
		b.out.Command = b.noSSH(words)
	}
	return nil
}

// addressed tells deepspeed where rank 0 listens, unless the command does. By
// itself it would ask rank 0 for the first of all its addresses, which need not
// be the one of the ranks' network, and take one port for all jobs of a node.
func (b *build) addressed(words []string) []string {
	if path.Base(words[0]) != deepspeedProgram {
		return words
	}
	command := words[:1:1]
	for _, option := range [...]struct{ name, value string }{
		{"--master_addr", b.masterAddr()}, {"--master_port", strconv.Itoa(b.masterPort())},
	} {
		if !slices.ContainsFunc(words, func(word string) bool { return word == option.name || strings.HasPrefix(word, option.name+"=") }) {
			command = append(command, option.name+"="+option.value)
		}
	}
	return append(command, words[1:]...)
}

// hostFile lists the nodes, one on a line, as Open MPI and DeepSpeed read it.
func (b *build) hostFile() string { return b.listed(&b.gang.hostFile, " slots=") }

// hydraFile lists them as MPICH and Intel MPI read it.
func (b *build) hydraFile() string { return b.listed(&b.gang.hydra, ":") }

// listed writes every node with its slots, once for all ranks.
func (b *build) listed(file *common[string], between string) string {
	text, _ := file.by(func() (string, error) {
		var lines strings.Builder
		for i := range b.members {
			lines.WriteString(b.members[i].Name + between + strconv.Itoa(b.slotsAt(i)) + "\n")
		}
		return lines.String(), nil
	})
	return text
}

// slotsOfAll is the number of processes of the gang.
func (b *build) slotsOfAll() int {
	all := 0
	for rank := range b.members {
		all += b.slotsAt(rank)
	}
	return all
}

// slotsAt is the number of processes of a node: its cards, where a spec that asks
// for all of them does not say how many.
func (b *build) slotsAt(rank int) int {
	if all := len(b.members[rank].Devices); all > 0 && b.job.Distributed.ProcsPerNode == 0 {
		return all
	}
	return b.slots
}

// noSSH puts the options of a launcher that starts only its own node behind
// the program's name, unless the command chose a launcher itself.
func (b *build) noSSH(words []string) []string {
	if path.Base(words[0]) != deepspeedProgram || len(b.members) == 1 {
		return words
	}
	for _, word := range words[1:] {
		option, _, _ := strings.Cut(word, "=")
		if slices.Contains([]string{"--no_ssh", "--launcher", "--node_rank"}, option) {
			return words
		}
	}
	options := []string{
		"--no_ssh", "--node_rank=" + strconv.Itoa(b.rank),
		"--master_addr=" + b.masterAddr(), "--master_port=" + strconv.Itoa(b.masterPort()),
	}
	if !slices.ContainsFunc(words, func(word string) bool { return strings.HasPrefix(word, "--hostfile") || word == "-H" }) {
		options = append(options, "--hostfile="+b.inTaskDir(mpiHostFile))
	}
	return append(append([]string{words[0]}, options...), words[1:]...)
}

// pdsh makes the agent the remote shell of deepspeed, and hands the environment
// that matters to the other nodes.
func (b *build) pdsh() error {
	if err := b.fitForShell(); err != nil {
		return err
	}
	b.shellPrograms()
	b.out.Files = append(b.out.Files, File{Path: deepspeedEnvFile, Mode: 0o644, Content: b.deepspeedEnv()})
	b.env.set("PDSH_RCMD_TYPE", "ssh")
	b.env.set("DS_ENV_FILE", b.inTaskDir(deepspeedEnvFile))
	return nil
}

// deepspeedEnv lists what processes on other nodes need besides what the
// launcher hands over by itself.
func (b *build) deepspeedEnv() string {
	var lines []string
	for name, value := range b.env.values {
		wanted := name == "LD_LIBRARY_PATH" || slices.ContainsFunc([]string{"NCCL_", "HCCL_", "GLOO_"}, func(prefix string) bool {
			return strings.HasPrefix(name, prefix)
		})
		if wanted && !strings.ContainsAny(value, "\n") {
			lines = append(lines, name+"="+value+"\n")
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

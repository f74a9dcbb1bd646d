package launch

import (
	"strconv"

	"nomadlike/nomadlike/structs"
)

// Files of an MPI job in the task directory of rank 0. Older platforms had
// them at /etc/mpi; commands reach them by their variables.
const (
	mpiShellFile = ".nomadlike/mpi-rsh"
	mpiHostFile  = ".nomadlike/hostfile"       // "host slots=N": Open MPI, DeepSpeed
	mpiHydraFile = ".nomadlike/mpich_hostfile" // "host:N": MPICH, Intel MPI
	programName  = "nomadlike"                 // of the binary in the PATH of every task
)

// mpi runs the command on rank 0 only; mpirun starts the processes of the
// other ranks through the agents, inside tasks that hold their place.
//
// A command without a launcher gets `mpirun -np N --bind-to none` in front,
// with N the slots of all nodes: both Open MPI and MPICH read that. Binding is
// off because jobs share nodes, and every mpirun would bind to the same first
// cores. A command with mpirun in it, or with rewrite = "none", stays as typed.
// Slots are the accelerators of the spec, 1 without, or procs_per_node.
func (b *build) mpi() error {
	b.mpiEveryRank()
	if b.rank != 0 {
		b.out.Hold = true
		b.commonDir()
		return nil
	}
	if err := b.fitForShell(); err != nil {
		return err
	}
	b.mpiFiles()
	if len(b.members) > 1 {
		b.shellPrograms()
	}
	b.mpiLauncher()
	b.commonDir()
	words, err := b.words()
	if err != nil {
		return err
	}
	b.out.Command = b.prefixed(words)
	return nil
}

// mpiEveryRank sets what processes and daemons read wherever they run.
func (b *build) mpiEveryRank() {
	e := b.env
	e.set("SLOTS", strconv.Itoa(b.slots))
	for _, name := range []string{
		"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
		"PRTE_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM",
	} {
		e.set(name, "1") // the task's user is the administrator's business
	}
	// Names are cut at the first dot otherwise, and two hosts become one.
	e.set("OMPI_MCA_orte_keep_fqdn_hostnames", "true")
	e.set("PRTE_MCA_prte_keep_fqdn_hostnames", "true")
	network := b.node.Network
	if network == "" {
		network = b.node.Interface
	}
	e.suggest("OMPI_MCA_btl_tcp_if_include", network)
	e.suggest("OMPI_MCA_oob_tcp_if_include", network)
	e.suggest("PRTE_MCA_oob_tcp_if_include", network)
	e.suggest("HYDRA_IFACE", b.node.Interface)
	e.suggest("I_MPI_HYDRA_IFACE", b.node.Interface)
}

// mpiFiles writes the host files and the remote shell.
func (b *build) mpiFiles() {
	b.out.Files = append(b.out.Files,
		File{Path: mpiHostFile, Mode: 0o644, Content: b.hostFile()},
		File{Path: mpiHydraFile, Mode: 0o644, Content: b.hydraFile()},
		File{Path: mpiShellFile, Mode: 0o755, Content: b.agentScript(remoteShellVerb)},
	)
}

// mpiLauncher tells the launchers of all families where the files are.
func (b *build) mpiLauncher() {
	hosts, hydraHosts := b.inTaskDir(mpiHostFile), b.inTaskDir(mpiHydraFile)
	shell := b.inTaskDir(mpiShellFile)
	// Open MPI's daemons on the other nodes look for the remote shell as well,
	// though they never use it: by a name that every task's PATH knows, since
	// the path of rank 0 exists nowhere else.
	everywhere := programName + " " + remoteShellVerb
	for _, v := range [...]struct{ name, value string }{
		{"OMPI_MCA_orte_default_hostfile", hosts},
		{"OMPI_MCA_plm_rsh_agent", everywhere},
		{"OMPI_MCA_plm_rsh_no_tree_spawn", "1"}, // workers have no remote shell
		{"PRTE_MCA_prte_default_hostfile", hosts},
		{"PRTE_MCA_plm_ssh_agent", everywhere},
		{"PRTE_MCA_plm_ssh_no_tree_spawn", "1"},
		{"HYDRA_HOST_FILE", hydraHosts},
		{"HYDRA_LAUNCHER", "ssh"}, // the form of arguments that the remote shell reads
		{"HYDRA_LAUNCHER_EXEC", shell},
		{"I_MPI_HYDRA_HOST_FILE", hydraHosts},
		{"I_MPI_HYDRA_BOOTSTRAP", "ssh"},
		{"I_MPI_HYDRA_BOOTSTRAP_EXEC", shell},
	} {
		b.env.set(v.name, v.value)
	}
}

// prefixed puts mpirun in front of a command that has no launcher.
func (b *build) prefixed(words []string) []string {
	if b.job.Distributed.Rewrite == structs.RewriteNone {
		return words
	}
	found, substring := findLauncher(structs.WordsInside(words), mpiLaunchers())
	if found != "" {
		return words
	}
	if substring != "" {
		b.note("launch.launcher_substring", "launcher", substring)
	}
	if b.job.Distributed.Mode == structs.ModeHorovod {
		return append(b.horovodPrefix(), words...)
	}
	return append([]string{"mpirun", "-np", strconv.Itoa(b.slotsOfAll()), "--bind-to", "none"}, words...)
}

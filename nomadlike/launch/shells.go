package launch

import (
	"path"
	"strings"

	"nomadlike/nomadlike/structs"
)

// Hidden commands of the nomadlike binary that reach other ranks through the
// agent.
const (
	remoteShellVerb = "mpi-rsh"  // as launchers call their remote shell
	sshVerb         = "mpi-ssh"  // as ssh: hosts that are no ranks are left to the real one
	pdshVerb        = "mpi-pdsh" // as pdsh
)

// ShellDir is first in the PATH of a rank that launches the others: whatever
// calls ssh or pdsh there reaches ranks by their names, with no sshd and no keys. It stands in the task directory.
const ShellDir = ".nomadlike/bin"

// EnvHostFile tells a task where the names of its ranks stand, one on a line with
// " slots=N" behind it.
const EnvHostFile = "NOMADLIKE_HOSTFILE"

// shellPrograms puts ssh and pdsh in front of the task's PATH. The host file must
// be among the files.
func (b *build) shellPrograms() {
	b.out.Files = append(b.out.Files,
		File{Path: ShellDir + "/ssh", Mode: 0o755, Content: b.agentScript(sshVerb)},
		File{Path: ShellDir + "/pdsh", Mode: 0o755, Content: b.agentScript(pdshVerb)})
	b.out.PathFirst = append(b.out.PathFirst, b.inTaskDir(ShellDir))
	b.env.set(EnvHostFile, b.inTaskDir(mpiHostFile))
}

// agentScript is a program that reaches other ranks through the agent.
func (b *build) agentScript(verb string) string {
	return "#!/bin/sh\n" +
		"# Reaches the other ranks of this job through the agent.\n" +
		"exec '" + b.node.AgentPath + "' " + verb + " \"$@\"\n"
}

// fitForShell refuses paths that launchers cannot carry: Open MPI parts the name
// of its remote shell at blanks and colons, and PATH is parted at colons.
func (b *build) fitForShell() error {
	for _, dir := range []string{b.node.TaskDir, b.node.AgentPath} {
		if dir == "" || strings.ContainsAny(dir, " \t\n:'") {
			return structs.NewError(structs.CodeInvalid, "launch.path_unfit", "path", dir)
		}
	}
	return nil
}

func (b *build) inTaskDir(file string) string { return path.Join(b.node.TaskDir, file) }

// commonDir makes every rank's task directory reachable at one common path, where the node has
// a place for it: launchers enter their own working directory on every node,
// and some give up when it does not exist there.
func (b *build) commonDir() {
	if b.node.SharedDir == "" || len(b.members) == 1 || b.members[0].AllocID == "" || b.job.Task.Dir != "" && path.IsAbs(b.job.Task.Dir) {
		return
	}
	// Rank names repeat over projects; the id of rank 0's allocation does not.
	link := path.Join(b.node.SharedDir, b.members[0].AllocID)
	b.out.Links = append(b.out.Links, Link{Path: link, Target: b.node.TaskDir})
	code, within := strings.CutPrefix(b.node.CodeDir, b.node.TaskDir+"/")
	switch {
	case b.node.CodeDir == "":
		b.out.Dir = path.Join(link, b.job.Task.Dir)
	case within: // elsewhere it has one path on all nodes
		b.out.Dir = path.Join(link, code, b.job.Task.Dir)
		b.env.set(envCodeDir, path.Join(link, code))
	}
}

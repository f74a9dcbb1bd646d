package launch

import (
	"path"

	"nomadlike/nomadlike/structs"
)

// What the platform DLWS calls its variables and its host file, in the words of
// its users' commands: horovodrun -hostfile /home/$DLWS_USER_NAME/ib_config
// -p $DLWS_SD_worker0_SSH_PORT.
const (
	dlwsUser     = "DLWS_USER_NAME"
	dlwsJob      = "DLWS_JOB_ID"
	dlwsSSHPort  = "DLWS_SD_worker0_SSH_PORT"
	dlwsHostFile = ".nomadlike/ib_config" // in the task directory
	// dlwsAnyPort is a port that nobody listens on: the ssh of a task reaches the
	// ranks through the agents, whatever port it is told.
	dlwsAnyPort = "22"
)

// emulate sets for the rank what another platform's users expect, in any mode.
func (b *build) emulate() {
	if b.job.Distributed.Emulate != structs.EmulateDLWS {
		return
	}
	b.env.suggest(dlwsUser, b.job.User)
	b.env.suggest(dlwsJob, b.job.ID)
	b.env.suggest(dlwsSSHPort, dlwsAnyPort)
	b.out.Files = append(b.out.Files, File{Path: dlwsHostFile, Mode: 0o644, Content: b.hostFile()})
	if user := b.env.values[dlwsUser]; user != "" && user == path.Base(path.Clean("/"+user)) {
		b.view("/home/"+user+"/ib_config", dlwsHostFile)
	}
}

// Package taskside has the small programs that a driver brings into its tasks,
// and that run there as any command of the task does: as its user, in its
// namespaces, seeing the files and reaching the addresses that the task does.
//
// Flow: an agent asks a driver for one (driver.ExecSpec.Side); the program beside
// the task, which is the task-supervisor or the task-init, executes itself once
// more in this role, and Main runs it on its standard streams. So nothing of it
// has to be in an image, and the agent itself opens no file and dials no address
// for a user.
//
//	sftp             the file transfer protocol of ssh, version 3
//	dial NET ADDR    a connection, to an address (tcp) or a socket's path (unix)
//
// Limits: standard library only, for it is part of what lives with every task.
package taskside

// Argument is the hidden argument of a program beside the task, before the words
// of the role.
const Argument = "side"

// The roles.
const (
	SFTP = "sftp"
	Dial = "dial"
)

// Connected is what a dialer writes first, once it is connected.
const Connected byte = 0

// Known reports whether words name a role, with what it needs.
func Known(words []string) bool {
	switch {
	case len(words) == 1 && words[0] == SFTP:
		return true
	case len(words) == 3 && words[0] == Dial:
		return (words[1] == "tcp" || words[1] == "unix") && words[2] != ""
	}
	return false
}

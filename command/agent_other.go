//go:build !linux || cli

package command

import (
	"flag"

	"nomadlike/internal/messages"
	"nomadlike/nomadlike/structs"
)

// Elsewhere than on Linux this program is the command line alone: it talks to
// clusters, and refuses what only a machine of a cluster does.

func agentVerbs() []verb {
	return []verb{{path: "agent", raw: true, hidden: true, setup: linuxOnly}}
}

func checkpointVerbs() []verb {
	return []verb{{path: "checkpoint", args: "PATH", raw: true, hidden: true, setup: linuxOnly}}
}

func raftRecover(set *flag.FlagSet) func(*Env, []string) error { return linuxOnly(set) }

func secretKeysSave(set *flag.FlagSet) func(*Env, []string) error { return linuxOnly(set) }

func secretKeysLoad(set *flag.FlagSet) func(*Env, []string) error { return linuxOnly(set) }

func linuxOnly(*flag.FlagSet) func(*Env, []string) error {
	return func(*Env, []string) error {
		return errLinuxOnly
	}
}

// errLinuxOnly is returned for what only a machine of a cluster does.
var errLinuxOnly = structs.NewError(structs.CodeNotAvailable, "cli.linux_only")

func agentReference(messages.Language) (string, error) { return "", errLinuxOnly }

func agentExit(error) (code int, known bool) { return 0, false }

//go:build linux && !cli

package command

import (
	"flag"
	"fmt"
	"strings"

	"nomadlike/agent"
)

// secretKeysSave writes a recovery copy of the servers' keys, on a server's machine.
func secretKeysSave(set *flag.FlagSet) func(*Env, []string) error {
	return keysOnDisk(set, agent.SaveSealKeys, func(env *Env, file, keys string) string {
		return env.text("cli.secrets.saved", "path", file, "keys", keys)
	})
}

// secretKeysLoad brings a recovery copy back, on a server's machine.
func secretKeysLoad(set *flag.FlagSet) func(*Env, []string) error {
	return keysOnDisk(set, agent.LoadSealKeys, func(env *Env, _, keys string) string {
		return env.text("cli.secrets.loaded", "keys", keys)
	})
}

// keysOnDisk does something with the keys of a data directory and a copy of them, and
// says which they are.
func keysOnDisk(set *flag.FlagSet, do func(dataDir, file string) ([]string, error), done func(env *Env, file, keys string) string) func(*Env, []string) error {
	dir := set.String("data-dir", "", "cli.flag.secrets_dir")
	return func(env *Env, args []string) error {
		file, err := one(args, "FILE")
		if err != nil {
			return err
		}
		if *dir == "" {
			return usagef("cli.secrets.no_dir")
		}
		names, err := do(*dir, file)
		if err != nil {
			return err
		}
		fmt.Fprintln(env.Stdout, done(env, file, strings.Join(names, ", ")))
		return nil
	}
}

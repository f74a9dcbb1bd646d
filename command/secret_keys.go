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
	dir := set.String("data-dir", "", "cli.flag.secrets_dir")
	return func(env *Env, args []string) error {
		file, err := one(args, "FILE")
		if err != nil {
			return err
		}
		if *dir == "" {
			return usagef("cli.secrets.no_dir")
		}
		names, err := agent.SaveSealKeys(*dir, file)
		if err != nil {
			return err
		}
		fmt.Fprintln(env.Stdout, env.text("cli.secrets.saved", "path", file, "keys", strings.Join(names, ", ")))
		return nil
	}
}

// secretKeysLoad brings a recovery copy back, on a server's machine.
func secretKeysLoad(set *flag.FlagSet) func(*Env, []string) error {
	dir := set.String("data-dir", "", "cli.flag.secrets_dir")
	return func(env *Env, args []string) error {
		file, err := one(args, "FILE")
		if err != nil {
			return err
		}
		if *dir == "" {
			return usagef("cli.secrets.no_dir")
		}
		names, err := agent.LoadSealKeys(*dir, file)
		if err != nil {
			return err
		}
		fmt.Fprintln(env.Stdout, env.text("cli.secrets.loaded", "keys", strings.Join(names, ", ")))
		return nil
	}
}

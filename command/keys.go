package command

import (
	"flag"
	"fmt"
	"strings"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

const keysPoll = 500 * time.Millisecond // between looks at a rotation

func keyVerbs() []verb {
	return []verb{
		{path: "operator gossip keys", setup: listKeys(structs.KeyGossip)},
		{path: "operator gossip rotate", setup: rotateKeys(structs.KeyGossip)},
		{path: "operator ca status", setup: listKeys(structs.KeyCA)},
		{path: "operator ca rotate", setup: rotateKeys(structs.KeyCA)},
	}
}

func listKeys(kind structs.KeyKind) func(*flag.FlagSet) func(*Env, []string) error {
	return reading("", func(env *Env, client *api.Client, _ string) (*api.Keys, error) {
		return client.Keys(env.Context, kind)
	}, func(env *Env, keys *api.Keys) {
		fmt.Fprintln(env.Stdout, env.text(keyText(kind, "current"), "key", shortKey(keys.Current)))
		for _, past := range keys.Past {
			fmt.Fprintln(env.Stdout, env.text("cli.ca.past", "key", shortKey(safe(past.Fingerprint)), "until", when(past.Until)))
		}
		if keys.Rotation != nil {
			fmt.Fprintln(env.Stdout, env.keyStage(keys))
		}
		table := newTable(env.Stdout, "ID", env.text("cli.col.name"), env.text("cli.col.role"), env.text("cli.col.alive"), env.text(columnOf(kind)))
		for _, agent := range keys.Agents {
			held := make([]string, len(agent.Keys))
			for i, key := range agent.Keys {
				held[i] = shortKey(safe(key))
			}
			table.row(short(agent.ID), safe(agent.Name), agent.Role, env.yesNo(agent.Alive), strings.Join(held, ", "))
		}
		table.print()
	})
}

// keyText is the message about a kind of key.
func keyText(kind structs.KeyKind, what string) string {
	if kind == structs.KeyCA {
		return "cli.ca." + what
	}
	return "cli.keys." + what
}

func columnOf(kind structs.KeyKind) string {
	if kind == structs.KeyCA {
		return "cli.col.cas"
	}
	return "cli.col.keys"
}

// shortKey is as much of a fingerprint as people compare.
func shortKey(fingerprint string) string { return fingerprint[:min(len(fingerprint), 16)] }

// keyStage says how far a rotation is, and whom it waits for.
func (env *Env) keyStage(keys *api.Keys) string {
	kind := structs.KeyKind(keys.Kind)
	id, to := keyText(kind, "cleaning"), keys.Current
	if keys.Rotation != nil {
		id, to = keyText(kind, string(keys.Rotation.Stage)), keys.Rotation.To
	}
	line := env.text(id, "key", shortKey(to))
	if len(keys.Waiting) > 0 {
		first := keys.Waiting[:min(len(keys.Waiting), waitingShown)]
		names := safe(strings.Join(first, ", "))
		if more := len(keys.Waiting) - len(first); more > 0 {
			names += fmt.Sprintf(" +%d", more)
		}
		line += env.text("cli.keys.waiting", "agents", names)
	}
	return line
}

const waitingShown = 5 // names of agents

func rotateKeys(kind structs.KeyKind) func(*flag.FlagSet) func(*Env, []string) error {
	return func(set *flag.FlagSet) func(*Env, []string) error {
		connection, output := declareConnection(set), declareOutput(set)
		detach := set.Bool("detach", false, "cli.flag.keys_detach")
		revoke := new(bool)
		if kind == structs.KeyCA {
			revoke = set.Bool("revoke", false, "cli.flag.ca_revoke")
		}
		return func(env *Env, args []string) error {
			if err := none(args); err != nil {
				return err
			}
			client, err := env.connect(connection)
			if err != nil {
				return err
			}
			defer client.Close()
			return env.rotate(client, kind, *revoke, output, *detach)
		}
	}
}

// rotate begins a rotation, or finds the one that is under way, and follows it to
// its end. A caller that is cut off may begin again: the servers go on by themselves.
func (env *Env) rotate(client *api.Client, kind structs.KeyKind, revoke bool, output outputFlags, detach bool) error {
	keys, err := client.RotateKeys(env.Context, kind, revoke)
	if err != nil {
		return err
	}
	last := ""
	for !detach && !keys.Settled {
		if line := env.keyStage(keys); line != last {
			fmt.Fprintln(env.Stderr, line)
			last = line
		}
		if !pause(env.Context, keysPoll) {
			return env.Context.Err()
		}
		next, err := client.Keys(env.Context, kind)
		switch code := structs.CodeOf(err); {
		case err == nil:
			keys = next
		case code == structs.CodeUnavailable || code == structs.CodeTimeout: // the leader changes
		default:
			return err
		}
	}
	return env.show(output, keys, func() {
		if !keys.Settled {
			fmt.Fprintln(env.Stdout, env.keyStage(keys))
			return
		}
		fmt.Fprintln(env.Stdout, env.text(keyText(kind, "rotated"), "key", shortKey(keys.Current), "agents", aliveAgents(keys)))
	})
}

func aliveAgents(keys *api.Keys) int {
	alive := 0
	for _, agent := range keys.Agents {
		if agent.Alive {
			alive++
		}
	}
	return alive
}

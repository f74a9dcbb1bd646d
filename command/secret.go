package command

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

func secretVerbs() []verb {
	return []verb{
		{path: "secret set", args: "NAME", setup: secretSet},
		{path: "secret list", setup: secretList},
		{path: "secret delete", args: "NAME", setup: secretDelete},
		{path: "operator secrets status", setup: secretKeys},
		{path: "operator secrets rotate", setup: secretRotate},
		{path: "operator secrets save-keys", args: "FILE", setup: secretKeysSave},
		{path: "operator secrets load-keys", args: "FILE", setup: secretKeysLoad},
	}
}

// secretSet makes a secret or gives it another value. The value comes from a file, a
// pipe or the keyboard: an argument would stand in the shell's history and in the
// process list.
func secretSet(set *flag.FlagSet) func(*Env, []string) error {
	connection, output := declareConnection(set), declareOutput(set)
	mine := set.Bool("mine", false, "cli.flag.mine")
	file := set.String("file", "", "cli.flag.secret_file")
	return func(env *Env, args []string) error {
		if len(args) > 1 {
			return usagef("cli.secret.argument")
		}
		name, err := secretName(args)
		if err != nil {
			return err
		}
		value, err := env.secretValue(name, *file)
		if err != nil {
			return err
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		changed, err := client.SetSecret(env.Context, name, *mine, value)
		clear(value)
		if err != nil {
			return err
		}
		return env.show(output, changed, func() {
			fmt.Fprintln(env.Stdout, env.text("cli.secret.set_done", "secret", name, "version", changed.Version))
			if len(changed.Jobs) > 0 {
				fmt.Fprintln(env.Stdout, env.text("cli.secret.set_used", "jobs", secretJobs(changed.Jobs)))
			}
			if changed.Unmasked {
				fmt.Fprintln(env.Stderr, env.text("cli.secret.unmasked", "min", structs.MaskMin))
			}
		})
	}
}

func secretName(args []string) (string, error) {
	name, err := one(args, "NAME")
	if err != nil {
		return "", err
	}
	if id := structs.SecretNameProblem(name); id != "" {
		return "", structs.NewError(structs.CodeInvalid, id, "name", safe(name), "max", structs.SecretNameMax)
	}
	return name, nil
}

// secretValue reads a value. One line feed at its end is dropped: editors and echo
// put it there, and no token has one; of a value with several lines it stays.
func (env *Env) secretValue(name, path string) ([]byte, error) {
	value, err := env.readSecret(name, path)
	if err != nil {
		return nil, err
	}
	if len(value) > structs.SecretSizeMax {
		return nil, structs.NewError(structs.CodeTooLarge, "secret.too_large", "secret", name, "size", len(value), "max", structs.SecretSizeMax)
	}
	if text := strings.TrimSuffix(strings.TrimSuffix(string(value), "\n"), "\r"); !strings.Contains(text, "\n") {
		value = value[:len(text)]
	}
	if len(value) == 0 {
		return nil, structs.NewError(structs.CodeInvalid, "secret.empty", "secret", name)
	}
	return value, nil
}

func (env *Env) readSecret(name, path string) ([]byte, error) {
	from := env.Stdin
	switch terminal, ok := env.Stdin.(*os.File); {
	case path != "" && path != "-":
		file, err := os.Open(path)
		if err != nil {
			return nil, structs.NewError(structs.CodeInvalid, "cli.file_unreadable", "path", path, "problem", rootCause(err))
		}
		defer file.Close()
		from = file
	case path == "" && ok && term.IsTerminal(int(terminal.Fd())):
		fmt.Fprint(env.Stderr, env.text("cli.secret.prompt", "secret", name))
		typed, err := term.ReadPassword(int(terminal.Fd()))
		fmt.Fprintln(env.Stderr)
		if err != nil {
			return nil, fmt.Errorf("read value: %w", err)
		}
		return typed, nil
	}
	value, err := io.ReadAll(io.LimitReader(from, structs.SecretSizeMax+2))
	if err != nil {
		return nil, fmt.Errorf("read value: %w", err)
	}
	return value, nil
}

// secretJobs names jobs, the first few of many.
func secretJobs(jobs []api.SecretJob) string {
	const most = 5
	var names []string
	for _, job := range jobs[:min(len(jobs), most)] {
		names = append(names, safe(job.Name))
	}
	if len(jobs) > most {
		names = append(names, fmt.Sprintf("… (%d)", len(jobs)))
	}
	return strings.Join(names, ", ")
}

func secretList(set *flag.FlagSet) func(*Env, []string) error {
	return reading("", func(env *Env, client *api.Client, _ string) ([]api.SecretInfo, error) {
		list, err := client.Secrets(env.Context)
		if err != nil {
			return nil, err
		}
		return all(list.Secrets), nil
	}, func(env *Env, secrets []api.SecretInfo) {
		if len(secrets) == 0 {
			fmt.Fprintln(env.Stdout, env.text("cli.secret.list_empty"))
			return
		}
		table := newTable(env.Stdout, env.text("cli.col.name"), env.text("cli.col.secret_of"), env.text("cli.col.version"),
			env.text("cli.col.set_by"), env.text("cli.col.set_at"), env.text("cli.col.used_by"))
		for i := range secrets {
			s := &secrets[i]
			of := s.Project
			if s.Own {
				of = env.text("cli.secret.mine")
			}
			table.row(safe(s.Name), safe(of), fmt.Sprint(s.Version), safe(s.UpdatedBy), when(s.UpdatedAt), firstOf(secretJobs(s.Jobs), "-"))
		}
		table.print()
	})(set)
}

// secretDelete says which jobs name the secret before it asks.
func secretDelete(set *flag.FlagSet) func(*Env, []string) error {
	connection, output := declareConnection(set), declareOutput(set)
	mine := set.Bool("mine", false, "cli.flag.mine")
	yes := set.Bool("yes", false, "cli.flag.yes")
	return func(env *Env, args []string) error {
		name, err := secretName(args)
		if err != nil {
			return err
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		list, err := client.Secrets(env.Context)
		if err != nil {
			return err
		}
		for i := range list.Secrets {
			if known := &list.Secrets[i]; known.Name == name && known.Own == *mine && len(known.Jobs) > 0 {
				if err := env.confirm(*yes, env.text("cli.secret.ask_used", "secret", name, "jobs", secretJobs(known.Jobs))); err != nil {
					return err
				}
			} else if known.Name == name && known.Own == *mine {
				if err := env.confirm(*yes, env.text("cli.secret.ask", "secret", name)); err != nil {
					return err
				}
			}
		}
		changed, err := client.DeleteSecret(env.Context, name, *mine)
		if err != nil {
			return err
		}
		return env.show(output, changed, func() { fmt.Fprintln(env.Stdout, env.text("cli.secret.deleted", "secret", name)) })
	}
}

func secretKeys(set *flag.FlagSet) func(*Env, []string) error {
	return reading("", func(env *Env, client *api.Client, _ string) (*api.SecretKeys, error) {
		return client.SecretKeys(env.Context)
	}, (*Env).printSecretKeys)(set)
}

func (env *Env) printSecretKeys(keys *api.SecretKeys) {
	if keys.Current == "" {
		fmt.Fprintln(env.Stdout, env.text("cli.secrets.none"))
		return
	}
	fmt.Fprintln(env.Stdout, env.text("cli.secrets.keys", "key", keys.Current, "server_key", keys.ServerKey, "count", keys.Secrets))
	if keys.Keys > 1 {
		fmt.Fprintln(env.Stdout, env.text("cli.secrets.unfinished", "count", keys.Keys-1))
	}
	for _, lacking := range keys.Lacking {
		fmt.Fprintln(env.Stdout, env.text("cli.secrets.lacking", "key", safe(lacking)))
	}
}

func secretRotate(set *flag.FlagSet) func(*Env, []string) error {
	return reading("", func(env *Env, client *api.Client, _ string) (*api.SecretKeys, error) {
		return client.RotateSecretKeys(env.Context)
	}, func(env *Env, keys *api.SecretKeys) {
		fmt.Fprintln(env.Stdout, env.text("cli.secrets.rotated", "count", keys.Resealed, "key", keys.Current))
	})(set)
}

package command

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"nomadlike/jobspec"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// jobClone writes the job file of a job that there is, with every value
// written out, or submits it again.
func jobClone(set *flag.FlagSet) func(*Env, []string) error {
	connection := declareConnection(set)
	name := set.String("name", "", "cli.flag.clone_name")
	run := set.Bool("run", false, "cli.flag.clone_run")
	edit := set.Bool("edit", false, "cli.flag.clone_edit")
	force := set.Bool("force", false, "cli.flag.force")
	var sets listFlag
	set.Var(&sets, "set", "cli.flag.clone_set")
	return func(env *Env, args []string) error {
		if len(args) == 0 {
			return usagef("cli.missing_argument", "argument", "JOB")
		}
		path, err := atMostOne(args[1:])
		if err != nil {
			return err
		}
		if path != "" && (*run || *edit) {
			return usagef("cli.flags_exclude", "first", "FILE", "second", "-run, -edit")
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		detail, _, err := client.Job(env.Context, args[0], nil)
		if err != nil {
			return err
		}
		detail.Job.Name = firstOf(*name, detail.Job.Name)
		detail.Job.Note = "" // it is of the job that there was
		source, err := changed(jobspec.Write(detail.Job), sets)
		if err != nil {
			return err
		}
		env.sayHidden(detail.Job, source)
		switch {
		case *edit:
			if source, err = env.edit(detail.Job.Name, source); err != nil {
				return err
			}
			return env.submitClone(client, source)
		case *run:
			return env.submitClone(client, source)
		case path == "" || path == "-":
			_, err := env.Stdout.Write(source)
			return err
		}
		if err := writeNew(path, source, *force); err != nil {
			return err
		}
		fmt.Fprintln(env.Stdout, env.text("cli.init.written", "path", path))
		return nil
	}
}

// sayHidden says of which variables a copy has no values, because whoever makes it may
// not see the environment of the job. It is no job until each has one.
func (env *Env) sayHidden(job *structs.Job, source []byte) {
	if names := job.HiddenVariables(); len(names) > 0 && strings.Contains(string(source), strconv.Quote(structs.Hidden)) {
		fmt.Fprintln(env.Stderr, env.text("cli.clone.hidden", "names", strings.Join(names, ", ")))
	}
}

// changed makes changes such as nodes=2 in a job file. What reads as a JSON value is
// one, null takes an argument away, and all else is text.
func changed(source []byte, sets []string) ([]byte, error) {
	var changes []jobspec.Change
	for _, text := range sets {
		at, value, found := strings.Cut(text, "=")
		if !found || at == "" {
			return nil, usagef("cli.clone.set", "value", safe(text))
		}
		change := jobspec.Change{At: at, Value: value}
		if json.Unmarshal([]byte(value), &change.Value) != nil {
			change.Value = value
		}
		changes = append(changes, change)
	}
	if len(changes) == 0 {
		return source, nil
	}
	edited, diagnostics, err := jobspec.Edit("clone.hcl", source, changes)
	if err != nil {
		return nil, err
	}
	if !diagnostics.HasErrors() {
		_, _, diagnostics = jobspec.Parse("clone.hcl", edited, jobspec.Options{})
	}
	if diagnostics.HasErrors() {
		return nil, diagnostics.Err()
	}
	return edited, nil
}

// edit lets a person change a job file in the editor that they like.
func (env *Env) edit(name string, source []byte) ([]byte, error) {
	editor := firstOf(firstOf(env.Getenv("VISUAL"), env.Getenv("EDITOR")), "vi")
	dir, err := os.MkdirTemp("", "nomadlike-clone-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the job file: %w", err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, name+".hcl")
	if err := os.WriteFile(path, source, 0o600); err != nil {
		return nil, fmt.Errorf("write job file: %w", err)
	}
	program := exec.CommandContext(env.Context, "sh", "-c", editor+` "$1"`, "sh", path)
	program.Stdin, program.Stdout, program.Stderr = env.Stdin, env.Stdout, env.Stderr
	if err := program.Run(); err != nil {
		return nil, structs.NewError(structs.CodeInvalid, "cli.clone.editor", "editor", editor, "problem", rootCause(err))
	}
	return os.ReadFile(path)
}

func (env *Env) submitClone(client *api.Client, source []byte) error {
	job, places, diagnostics := jobspec.Parse("clone.hcl", source, jobspec.Options{})
	if err := diagnostics.Render(env.Stderr, env.style()); err != nil {
		return err
	}
	if diagnostics.HasErrors() {
		return &exitError{code: ExitError}
	}
	job.Source = string(source)
	code, err := env.readCode("-", job, "", env.boundOf(client)) // none, unless an edit says another directory
	if err != nil {
		return err
	}
	defer code.close(env)
	if err := env.sendCode(client, job, code, false); err != nil {
		return err
	}
	submitted, err := client.SubmitJob(env.Context, api.JobRequest{Job: job}, "")
	if err != nil {
		return env.explain(err, places)
	}
	fmt.Fprintln(env.Stdout, env.text("cli.job.submitted", "name", submitted.Name, "id", submitted.JobID))
	return nil
}

// writeNew writes a job file that must not exist yet, unless force says so.
func writeNew(path string, text []byte, force bool) error {
	mode := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if force {
		mode = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	file, err := os.OpenFile(path, mode, 0o644)
	if os.IsExist(err) {
		return structs.NewError(structs.CodeConflict, "cli.init.exists", "path", path)
	}
	if err != nil {
		return fmt.Errorf("create job file: %w", err)
	}
	if _, err := file.Write(text); err != nil {
		file.Close()
		return fmt.Errorf("write job file: %w", err)
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("write job file: %w", err)
	}
	return nil
}

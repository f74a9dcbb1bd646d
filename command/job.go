package command

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"nomadlike/jobspec"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

func jobVerbs() []verb {
	return []verb{
		{path: "job run", args: "FILE", setup: jobRun},
		{path: "job validate", args: "FILE", setup: jobValidate},
		{path: "job plan", args: "FILE", setup: jobPlan},
		{path: "job init", args: "[FILE]", setup: jobInit},
		{path: "job fmt", args: "[FILE...]", setup: jobFmt},
		{path: "job status", args: "[JOB]", setup: jobStatus},
		{path: "job list", setup: jobList},
		{path: "job logs", args: "JOB", setup: jobLogs},
		{path: "job exec", args: "JOB COMMAND...", stopAtArg: 1, setup: jobExec},
		{path: "job inspect", args: "JOB", setup: jobInspect},
		{path: "job history", args: "JOB", setup: jobHistory},
		{path: "job priority", args: "JOB normal|urgent|critical", setup: jobPriority},
		{path: "job stop", args: "JOB", setup: jobStop},
		{path: "job delete", args: "JOB", setup: jobDelete},
		{path: "queue", setup: queueShow},
	}
}

// sourceFlags are the flags of every verb that reads a job file.
type sourceFlags struct {
	vars     listFlag
	varFiles listFlag
}

func declareSource(set *flag.FlagSet) *sourceFlags {
	flags := &sourceFlags{}
	set.Var(&flags.vars, "var", "cli.flag.var")
	set.Var(&flags.varFiles, "var-file", "cli.flag.var_file")
	return flags
}

// readJob parses a job file ("-" is stdin) and prints what is wrong with it.
func (env *Env) readJob(path string, flags *sourceFlags) (*structs.Job, error) {
	source, err := env.readSource(path)
	if err != nil {
		return nil, err
	}
	for _, pair := range flags.vars {
		if !strings.Contains(pair, "=") {
			return nil, usagef("cli.bad_var", "value", safe(pair))
		}
	}
	options := jobspec.Options{Vars: flags.vars, Env: env.Environ, ReadFile: readBounded}
	for _, name := range flags.varFiles {
		text, err := env.readSource(name)
		if err != nil {
			return nil, err
		}
		options.VarFiles = append(options.VarFiles, jobspec.VarFile{Name: name, Source: text})
	}
	job, _, diagnostics := jobspec.Parse(path, source, options)
	if err := diagnostics.Render(env.Stderr, env.style()); err != nil {
		return nil, err
	}
	if diagnostics.HasErrors() {
		return nil, &exitError{code: ExitError, err: nil}
	}
	return job, nil
}

func (env *Env) style() jobspec.Style {
	return jobspec.Style{Language: env.Language, Color: env.Colour}
}

// readBounded is what the function file() of a job file reads with.
func readBounded(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, jobspec.SourceSizeMax+1))
}

func (env *Env) readSource(path string) ([]byte, error) {
	if path == "-" {
		source, err := io.ReadAll(io.LimitReader(env.Stdin, jobspec.SourceSizeMax+1))
		if err != nil {
			return nil, fmt.Errorf("read job file from standard input: %w", err)
		}
		return source, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, structs.NewError(structs.CodeInvalid, "cli.file_unreadable", "path", path, "problem", rootCause(err))
	}
	defer file.Close()
	source, err := io.ReadAll(io.LimitReader(file, jobspec.SourceSizeMax+1))
	if err != nil {
		return nil, structs.NewError(structs.CodeInvalid, "cli.file_unreadable", "path", path, "problem", rootCause(err))
	}
	return source, nil
}

func jobRun(set *flag.FlagSet) func(*Env, []string) error {
	source, connection, output := declareSource(set), declareConnection(set), declareOutput(set)
	wait := set.Bool("wait", false, "cli.flag.wait")
	logs := set.Bool("logs", false, "cli.flag.logs")
	detach := set.Bool("detach", false, "cli.flag.detach")
	key := set.String("idempotency-key", "", "cli.flag.idempotency_key")
	return func(env *Env, args []string) error {
		path, err := one(args, "FILE")
		if err != nil {
			return err
		}
		if *detach && (*wait || *logs) {
			return usagef("cli.flags_exclude", "first", "-detach", "second", "-wait, -logs")
		}
		job, err := env.readJob(path, source)
		if err != nil {
			return err
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		submitted, err := client.SubmitJob(env.Context, api.JobRequest{Job: job}, *key)
		if err != nil {
			return err
		}
		quiet := *output.json || *output.template != ""
		if !quiet {
			fmt.Fprintln(env.Stdout, env.text("cli.job.submitted", "name", submitted.Name, "id", submitted.JobID))
		}
		if *detach || quiet && !*wait && !*logs {
			return env.show(output, submitted, func() {})
		}
		watch := &watcher{env: env, client: client, jobID: submitted.JobID, logs: *logs, quiet: quiet}
		detail, err := watch.run(*wait || *logs)
		if err != nil {
			return err
		}
		if err := env.show(output, detail, func() {}); err != nil {
			return err
		}
		if *wait || *logs {
			return endOf(detail)
		}
		return nil
	}
}

// endOf turns how a job ended into the exit code of `job run -wait`: its own
// code when it failed, 130 when it was stopped, 124 when it expired.
func endOf(detail *api.JobDetail) error {
	switch detail.State {
	case structs.JobSucceeded:
		return nil
	case structs.JobStopped:
		return &exitError{code: 130}
	case structs.JobExpired:
		return &exitError{code: 124}
	default:
		code := detail.ExitCode
		if code <= 0 || code > 255 {
			code = ExitError
		}
		return &exitError{code: code}
	}
}

func jobValidate(set *flag.FlagSet) func(*Env, []string) error {
	source := declareSource(set)
	return func(env *Env, args []string) error {
		path, err := one(args, "FILE")
		if err != nil {
			return err
		}
		job, err := env.readJob(path, source)
		if err != nil {
			return err
		}
		fmt.Fprintln(env.Stdout, env.text("cli.job.valid", "name", job.Name))
		return nil
	}
}

func jobPlan(set *flag.FlagSet) func(*Env, []string) error {
	source, connection, output := declareSource(set), declareConnection(set), declareOutput(set)
	launch := set.Bool("launch", false, "cli.flag.launch")
	rank := set.Int("rank", -1, "cli.flag.rank")
	return func(env *Env, args []string) error {
		path, err := one(args, "FILE")
		if err != nil {
			return err
		}
		job, err := env.readJob(path, source)
		if err != nil {
			return err
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		plan, err := client.PlanJob(env.Context, api.JobRequest{Job: job})
		if err != nil {
			return err
		}
		return env.show(output, plan, func() { env.printPlan(plan, *launch, *rank) })
	}
}

func (env *Env) printPlan(plan *api.JobPlan, launch bool, rank int) {
	if plan.StartsNow {
		fmt.Fprintln(env.Stdout, env.text("cli.plan.now", "name", plan.Job.Name))
	} else {
		fmt.Fprintln(env.Stdout, env.text("cli.plan.waits", "name", plan.Job.Name, "reason", env.waitText(plan.Wait)))
	}
	for _, r := range plan.Ranks {
		if rank >= 0 && r.Rank != rank {
			continue
		}
		fmt.Fprintf(env.Stdout, "\n%s\n  %s\n", env.paint(colourBold, env.text("cli.plan.rank", "rank", r.Rank, "name", r.Name, "node", firstOf(r.Node, "-"))), safe(shellLine(r.Command)))
		if !launch && rank < 0 {
			continue
		}
		for _, name := range sortedKeys(r.Env) {
			fmt.Fprintf(env.Stdout, "  %s=%s\n", name, safe(r.Env[name]))
		}
		for _, file := range r.Files {
			fmt.Fprintf(env.Stdout, "  %s\n", env.text("cli.plan.file", "path", safe(file)))
		}
	}
}

func jobInit(set *flag.FlagSet) func(*Env, []string) error {
	kind := set.String("kind", "hello", "cli.flag.kind")
	force := set.Bool("force", false, "cli.flag.force")
	return func(env *Env, args []string) error {
		path := "job.hcl"
		if len(args) > 0 {
			path = args[0]
		}
		skeleton, err := jobspec.Skeleton(*kind, env.Language)
		if err != nil {
			return err
		}
		if path == "-" {
			fmt.Fprint(env.Stdout, string(skeleton))
			return nil
		}
		mode := os.O_WRONLY | os.O_CREATE | os.O_EXCL
		if *force {
			mode = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
		}
		file, err := os.OpenFile(path, mode, 0o644)
		if os.IsExist(err) {
			return structs.NewError(structs.CodeConflict, "cli.init.exists", "path", path)
		}
		if err != nil {
			return fmt.Errorf("create job file: %w", err)
		}
		if _, err := file.Write(skeleton); err != nil {
			file.Close()
			return fmt.Errorf("write job file: %w", err)
		}
		if err := file.Close(); err != nil {
			return fmt.Errorf("write job file: %w", err)
		}
		fmt.Fprintln(env.Stdout, env.text("cli.init.written", "path", path))
		return nil
	}
}

func jobFmt(set *flag.FlagSet) func(*Env, []string) error {
	check := set.Bool("check", false, "cli.flag.check")
	return func(env *Env, args []string) error {
		if len(args) == 0 {
			args = []string{"-"}
		}
		changed := false
		for _, path := range args {
			source, err := env.readSource(path)
			if err != nil {
				return err
			}
			formatted, diagnostics := jobspec.Format(path, source)
			if diagnostics.HasErrors() {
				if err := diagnostics.Render(env.Stderr, env.style()); err != nil {
					return err
				}
				return &exitError{code: ExitError}
			}
			differs := string(formatted) != string(source)
			changed = changed || differs
			switch {
			case path == "-" && !*check:
				fmt.Fprint(env.Stdout, string(formatted))
			case differs && *check:
				fmt.Fprintln(env.Stdout, path)
			case differs:
				if err := replaceFile(path, formatted); err != nil {
					return err
				}
				fmt.Fprintln(env.Stdout, path)
			}
		}
		if *check && changed {
			return &exitError{code: ExitError}
		}
		return nil
	}
}

// replaceFile writes beside the file first, so that a full disk leaves the
// old one whole.
func replaceFile(path string, data []byte) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("replace %s: %w", path, err)
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), ".fmt-*")
	if err != nil {
		return fmt.Errorf("replace %s: %w", path, err)
	}
	defer os.Remove(temporary.Name())
	if _, err = temporary.Write(data); err == nil {
		err = temporary.Chmod(info.Mode())
	}
	if closing := temporary.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Rename(temporary.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("replace %s: %w", path, err)
	}
	return nil
}

func jobStop(set *flag.FlagSet) func(*Env, []string) error {
	connection := declareConnection(set)
	reason := set.String("reason", "", "cli.flag.reason")
	subjob := set.Int("subjob", -1, "cli.flag.subjob")
	wait := set.Bool("wait", false, "cli.flag.wait_stop")
	return func(env *Env, args []string) error {
		id, err := one(args, "JOB")
		if err != nil {
			return err
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		request := api.JobStopRequest{Reason: *reason}
		if *subjob >= 0 {
			request.Subjob = subjob
		}
		changed, err := client.StopJob(env.Context, id, request)
		if err != nil {
			return err
		}
		fmt.Fprintln(env.Stdout, env.text("cli.job.stopping", "job", id))
		if !*wait {
			return nil
		}
		query := &api.Query{Index: changed.Index - 1, Wait: watchFor}
		for {
			detail, meta, err := client.Job(env.Context, id, query)
			if err != nil {
				return err
			}
			if detail.State.Terminal() {
				fmt.Fprintln(env.Stdout, env.stateText(detail.State))
				return nil
			}
			query.Index = meta.Index
		}
	}
}

func jobDelete(set *flag.FlagSet) func(*Env, []string) error {
	connection := declareConnection(set)
	return func(env *Env, args []string) error {
		id, err := one(args, "JOB")
		if err != nil {
			return err
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		if _, err := client.DeleteJob(env.Context, id); err != nil {
			return err
		}
		fmt.Fprintln(env.Stdout, env.text("cli.job.deleted", "job", id))
		return nil
	}
}

func jobPriority(set *flag.FlagSet) func(*Env, []string) error {
	connection := declareConnection(set)
	return func(env *Env, args []string) error {
		if len(args) != 2 {
			return usagef("cli.missing_argument", "argument", "JOB normal|urgent|critical")
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		if _, err := client.SetJobPriority(env.Context, args[0], structs.Priority(args[1])); err != nil {
			return err
		}
		fmt.Fprintln(env.Stdout, env.text("cli.job.priority_set", "job", args[0], "priority", args[1]))
		return nil
	}
}

// parseRank reads -rank, where "" means all ranks.
func parseRank(text string) (int, error) {
	if text == "" {
		return -1, nil
	}
	rank, err := strconv.Atoi(text)
	if err != nil || rank < 0 {
		return 0, usagef("cli.bad_rank", "value", safe(text))
	}
	return rank, nil
}

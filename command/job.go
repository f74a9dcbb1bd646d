package command

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"nomadlike/jobspec"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/structs/outlook"
)

func jobVerbs() []verb {
	return []verb{
		{path: "job run", args: "FILE", setup: jobRun},
		{path: "job validate", args: "FILE", setup: jobValidate},
		{path: "job plan", args: "FILE", setup: jobPlan},
		{path: "job init", args: "[FILE]", setup: jobInit},
		{path: "job fmt", args: "[FILE...]", setup: jobFmt},
		{path: "job import", args: "FILE", setup: jobImport},
		{path: "job status", args: "[JOB]", setup: jobStatus},
		{path: "job list", setup: jobList},
		{path: "job logs", args: "JOB", setup: jobLogs},
		{path: "job metrics", args: "JOB", setup: jobMetrics},
		{path: "job files", args: "JOB [PATH]", setup: jobFiles},
		{path: "job download", args: "JOB PATH [TARGET]", setup: jobDownload},
		{path: "job package", args: "JOB|FILE [DIR]", setup: jobPackage},
		{path: "job commit", args: "JOB NAME", setup: jobCommit},
		{path: "job exec", args: "JOB COMMAND...", stopAtArg: 1, setup: jobExec},
		{path: "job forward", args: "JOB LOCAL[:PORT]...", setup: jobForward},
		{path: "job inspect", args: "JOB", setup: jobInspect},
		{path: "job open", args: "JOB PORT", setup: jobOpen},
		{path: "job figures", args: "JOB", setup: jobUsage},
		{path: "job history", args: "JOB", setup: jobHistory},
		{path: "job diff", args: "JOB [OTHER]", setup: jobDiff},
		{path: "job priority", args: "JOB normal|urgent|critical", setup: jobPriority},
		{path: "job tag", args: "JOB [+TAG|-TAG...]", stopAtArg: 1, setup: jobTag},
		{path: "job note", args: "JOB [TEXT]", stopAtArg: 1, setup: jobNote},
		{path: "job consent", args: "JOB [yes|no]", setup: jobConsent},
		{path: "job clone", args: "JOB [FILE]", setup: jobClone},
		{path: "job resume", args: "JOB", setup: jobResume},
		{path: "job wait", args: "JOB...", setup: jobWait},
		{path: "job stop", args: "JOB...", setup: jobStop},
		{path: "job release", args: "JOB...", setup: jobRelease},
		{path: "job delete", args: "JOB...", setup: jobDelete},
		{path: "queue", setup: queueShow},
	}
}

func jobRun(set *flag.FlagSet) func(*Env, []string) error {
	source, name, connection, output := declareSource(set), declareName(set), declareConnection(set), declareOutput(set)
	workdir := declareWorkdir(set)
	wait := set.Bool("wait", false, "cli.flag.wait")
	logs := set.Bool("logs", false, "cli.flag.logs")
	detach := set.Bool("detach", false, "cli.flag.detach")
	key := set.String("idempotency-key", "", "cli.flag.idempotency_key")
	start := declareStart(set)
	return func(env *Env, args []string) error {
		path, err := one(args, "FILE")
		if err != nil {
			return err
		}
		if *detach && (*wait || *logs) {
			return usagef("cli.flags_exclude", "first", "-detach", "second", "-wait, -logs")
		}
		if *logs && output.forPrograms() {
			return usagef("cli.flags_exclude", "first", "-logs", "second", "-json, -t")
		}
		job, places, err := env.readNamed(path, source, name, *key)
		if err != nil {
			return err
		}
		if err := start.change(job); err != nil {
			return err
		}
		if *workdir.dryRun {
			code, err := env.readCode(path, job, *workdir.dir, env.laterBoundOf(connection))
			if err != nil {
				return err
			}
			defer code.close(env)
			return env.showCode(output, code, *workdir.list)
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		code, err := env.readCode(path, job, *workdir.dir, env.boundOf(client))
		if err != nil {
			return err
		}
		defer code.close(env)
		if code != nil && !output.forPrograms() {
			env.printCode(code)
			if *workdir.list {
				env.printCodeList(code)
			}
		}
		if err := env.sendCode(client, job, code, output.forPrograms()); err != nil {
			return err
		}
		code.close(env) // the job may run for days
		submitted, err := client.SubmitJob(env.Context, api.JobRequest{Job: job}, *key)
		if err != nil {
			return env.explain(err, places)
		}
		if !output.forPrograms() {
			if err := env.doubts(submitted.Warnings, job, places); err != nil {
				return err
			}
			if submitted.Number != 0 {
				fmt.Fprintln(env.Stdout, env.text("cli.job.submitted_number", "name", submitted.Name, "id", submitted.JobID, "number", submitted.Number))
			} else {
				fmt.Fprintln(env.Stdout, env.text("cli.job.submitted", "name", submitted.Name, "id", submitted.JobID))
			}
		}
		toEnd := *wait || *logs
		if *detach || output.forPrograms() && !toEnd {
			return env.show(output, submitted, func() {})
		}
		detail, err := env.watchJob(client, submitted.JobID, job, watchOptions{toEnd: toEnd, logs: *logs, quiet: output.forPrograms()})
		if err != nil {
			return err
		}
		if err := env.show(output, detail, func() {}); err != nil || !toEnd {
			return err
		}
		return endOf(detail)
	}
}

// endOf turns how a job ended into the exit code of `job run -wait`: its own
// code when it failed, 130 when it was stopped, 124 when it expired.
func endOf(detail *api.JobDetail) error {
	switch detail.State {
	case structs.JobSucceeded:
		return nil
	case structs.JobStopped:
		return &exitError{code: ExitInterrupted}
	case structs.JobExpired:
		return &exitError{code: ExitExpired}
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
		job, places, err := env.readJob(path, source)
		if err != nil {
			return err
		}
		code, err := env.readCode(path, job, "", codeBound{}) // what cannot be sent is told before it is
		if err != nil {
			return err
		}
		defer code.close(env)
		later := places.Diagnose(job.NotAvailable(), jobspec.SeverityWarning)
		if len(later) > 0 {
			if err := later.Render(env.Stderr, env.style()); err != nil {
				return err
			}
			fmt.Fprintln(env.Stdout, env.text("cli.job.valid_later", "name", job.Name))
			return nil
		}
		// What admission looks at besides the job itself: can its commands be
		// launched in the mode?
		complete := job.Copy()
		complete.SetDefaults()
		notes, err := api.CheckLaunch(complete)
		if err != nil {
			return err
		}
		for i := range notes {
			fmt.Fprintln(env.Stderr, env.reasonText(&notes[i]))
		}
		fmt.Fprintln(env.Stdout, env.text("cli.job.valid", "name", job.Name))
		return nil
	}
}

func jobPlan(set *flag.FlagSet) func(*Env, []string) error {
	source, name, connection, output := declareSource(set), declareName(set), declareConnection(set), declareOutput(set)
	launch := set.Bool("launch", false, "cli.flag.launch")
	rank := set.Int("rank", -1, "cli.flag.rank")
	dir := set.String("workdir", "", "cli.flag.workdir")
	return func(env *Env, args []string) error {
		path, err := one(args, "FILE")
		if err != nil {
			return err
		}
		job, places, err := env.readNamed(path, source, name, "")
		if err != nil {
			return err
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		code, err := env.readCode(path, job, *dir, env.boundOf(client)) // looked at, and not sent
		if err != nil {
			return err
		}
		defer code.close(env)
		request := api.JobRequest{Job: job}
		if *rank >= 0 {
			request.Rank = rank
		}
		plan, err := client.PlanJob(env.Context, request)
		if err != nil {
			return env.explain(err, places)
		}
		if !output.forPrograms() {
			if err := env.doubts(plan.Warnings, job, places); err != nil {
				return err
			}
		}
		found, err := client.ForecastJob(env.Context, api.JobRequest{Job: job})
		if err != nil {
			return env.explain(err, places)
		}
		value := struct {
			*api.JobPlan
			Forecast *api.JobOutlook `json:"forecast"`
		}{plan, found}
		return env.show(output, value, func() {
			if code != nil {
				env.printCode(code)
			}
			defer env.printTrialsOf(plan.Job)
			env.printPlan(plan, found, *launch || *rank >= 0)
			if len(plan.Lacks) == 0 && (!plan.StartsNow || len(found.Victims) > 0) { // what is refused waits for nothing
				fmt.Fprintln(env.Stdout)
				env.printAnswer(found)
			}
		})
	}
}

// printPlan shows whether the job would start, and its ranks; with launch
// also what it leaves to nomadlike and what each rank finds around it.
func (env *Env) printPlan(plan *api.JobPlan, found *api.JobOutlook, launch bool) {
	name := safe(plan.Job.Name)
	switch {
	case len(plan.Lacks) > 0:
		for _, lack := range plan.Lacks {
			fmt.Fprintln(env.Stdout, env.text("cli.plan.refused", "name", name, "reason", env.reasonText(&lack.Cause)))
		}
	case !plan.StartsNow && found.Verdict == outlook.VerdictNow && len(found.Victims) > 0:
		fmt.Fprintln(env.Stdout, env.text("cli.plan.yields", "name", name, "count", len(found.Victims)))
	case !plan.StartsNow && plan.Starts == 0:
		fmt.Fprintln(env.Stdout, env.text("cli.plan.waits", "name", name, "reason", env.waitText(plan.Wait)))
	case plan.Job.Batched():
		fmt.Fprintln(env.Stdout, env.text("cli.plan.some", "name", name, "starts", plan.Starts, "subjobs", plan.Job.SubjobCount()))
	default:
		fmt.Fprintln(env.Stdout, env.text("cli.plan.now", "name", name))
	}
	bears := env.bearsText(plan.Job)
	if t := plan.Job.Throttle; t != nil {
		bears = append(bears, env.text("cli.control.throttled", "busy", structs.FormatDuration(t.Busy), "idle", structs.FormatDuration(t.Idle)))
	}
	for _, text := range bears {
		fmt.Fprintf(env.Stdout, "  %s\n", text)
	}
	for i := range plan.Notes {
		fmt.Fprintf(env.Stdout, "  %s\n", env.reasonText(&plan.Notes[i]))
	}
	env.printCeilings("cli.plan.ceilings", plan.Ceilings)
	if launch && len(plan.Defaults) > 0 {
		fmt.Fprintf(env.Stdout, "\n%s\n", env.Stdout.paint(colourBold, env.text("cli.plan.defaults")))
		for _, chosen := range plan.Defaults {
			from := ""
			if chosen.From != "" {
				from = "  (" + env.text("cli.plan.from."+chosen.From) + ")"
			}
			fmt.Fprintf(env.Stdout, "  %s = %s%s\n", chosen.Path, safe(chosen.Value), from)
		}
	}
	for i := range plan.Ranks {
		env.printRank(&plan.Ranks[i], launch)
	}
	if launch && len(plan.Later) > 0 {
		fmt.Fprintf(env.Stdout, "\n%s\n", env.Stdout.paint(colourBold, env.text("cli.plan.later")))
		for i := range plan.Later {
			fmt.Fprintf(env.Stdout, "  %s\n", env.reasonText(&plan.Later[i]))
		}
	}
	if hidden := plan.Job.Nodes - len(plan.Ranks); hidden > 0 && len(plan.Ranks) == api.PlanRanksMax {
		fmt.Fprintf(env.Stdout, "\n%s\n", env.text("cli.plan.more", "count", hidden))
	}
}

func (env *Env) printRank(r *api.RankPlan, launch bool) {
	title := env.text("cli.plan.rank_somewhere", "rank", r.Rank, "name", r.Name)
	if r.Node != "" {
		title = env.text("cli.plan.rank", "rank", r.Rank, "name", r.Name, "node", safe(r.Node))
	}
	command := safe(shellLine(r.Command))
	if r.Hold {
		command = env.text("cli.plan.hold")
	}
	fmt.Fprintf(env.Stdout, "\n%s\n  %s\n", env.Stdout.paint(colourBold, title), command)
	if !launch {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(r.Env)) {
		fmt.Fprintf(env.Stdout, "  %s=%s\n", name, safe(r.Env[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Ports)) {
		fmt.Fprintf(env.Stdout, "  %s\n", env.text("cli.plan.port", "name", safe(name), "port", r.Ports[name]))
	}
	for _, file := range r.Files {
		fmt.Fprintf(env.Stdout, "  %s\n", env.text("cli.plan.file", "path", safe(file.Path)))
		for line := range strings.Lines(file.Content) {
			fmt.Fprintf(env.Stdout, "    %s\n", safe(strings.TrimRight(line, "\n")))
		}
	}
}

func jobInit(set *flag.FlagSet) func(*Env, []string) error {
	kind := set.String("kind", "hello", "cli.flag.kind")
	template := set.String("template", "", "cli.flag.init_template")
	connection := declareConnection(set)
	force := set.Bool("force", false, "cli.flag.force")
	return func(env *Env, args []string) error {
		path, err := atMostOne(args)
		if err != nil {
			return err
		}
		path = firstOf(path, "job.hcl")
		var skeleton []byte
		switch {
		case *template != "" && *kind != "hello":
			return usagef("cli.init.kind_or_template")
		case *template != "":
			skeleton, err = env.templateText(connection, *template)
		default:
			skeleton, err = jobspec.Skeleton(*kind, env.Language)
		}
		if err != nil {
			return err
		}
		if path == "-" {
			fmt.Fprint(env.Stdout, string(skeleton))
			return nil
		}
		if err := writeNew(path, skeleton, *force); err != nil {
			return err
		}
		fmt.Fprintln(env.Stdout, env.text("cli.init.written", "path", path))
		return nil
	}
}

func jobFmt(set *flag.FlagSet) func(*Env, []string) error {
	check := set.Bool("check", false, "cli.flag.check")
	var sets listFlag
	set.Var(&sets, "set", "cli.flag.fmt_set")
	return func(env *Env, args []string) error {
		changes, err := changesOf(sets)
		if err != nil {
			return err
		}
		if len(args) == 0 {
			args = []string{"-"}
		}
		changed := false
		for _, path := range args {
			source, err := env.readSource(path)
			if err != nil {
				return err
			}
			formatted, diagnostics, err := jobspec.Edit(path, source, changes)
			if err != nil {
				return structs.NewError(structs.CodeInvalid, "agent.job_change", "reason", err)
			}
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
// old one whole, and keeps its mode. A new one has 0600.
func replaceFile(path string, data []byte) error {
	mode := fs.FileMode(0o600)
	info, err := os.Stat(path)
	switch {
	case err == nil:
		mode = info.Mode()
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("replace %s: %w", path, err)
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), ".fmt-*")
	if err != nil {
		return fmt.Errorf("replace %s: %w", path, err)
	}
	defer os.Remove(temporary.Name())
	if _, err = temporary.Write(data); err == nil {
		err = temporary.Chmod(mode)
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

func jobPriority(set *flag.FlagSet) func(*Env, []string) error {
	connection := declareConnection(set)
	return func(env *Env, args []string) error {
		client, err := env.openTwo(connection, args, "JOB normal|urgent|critical")
		if err != nil {
			return err
		}
		defer client.Close()
		if _, err := client.SetJobPriority(env.Context, args[0], structs.Priority(args[1])); err != nil {
			return err
		}
		fmt.Fprintln(env.Stdout, env.text("cli.job.priority_set", "job", safe(args[0]), "priority", safe(args[1])))
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

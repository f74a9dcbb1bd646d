package command

import (
	"flag"
	"fmt"
	"strconv"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// How many trials are listed where nobody asks for all.
const (
	trialsShown   = 50
	trialsPlanned = 10
)

func jobParallel(set *flag.FlagSet) func(*Env, []string) error {
	connection := declareConnection(set)
	return func(env *Env, args []string) error {
		if err := two(args, "JOB COUNT|all"); err != nil {
			return err
		}
		most := 0
		if args[1] != "all" {
			var err error
			if most, err = strconv.Atoi(args[1]); err != nil || most < 1 || most > structs.BatchCountMax {
				return usagef("cli.job.bad_parallel", "value", safe(args[1]), "max", structs.BatchCountMax)
			}
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		if _, err := client.SetParallel(env.Context, args[0], most); err != nil {
			return err
		}
		if most == 0 {
			fmt.Fprintln(env.Stdout, env.text("cli.job.parallel_lifted", "job", safe(args[0])))
			return nil
		}
		fmt.Fprintln(env.Stdout, env.text("cli.job.parallel_set", "job", safe(args[0]), "count", most))
		return nil
	}
}

func jobTrials(set *flag.FlagSet) func(*Env, []string) error {
	connection, output := declareConnection(set), declareOutput(set)
	metric := set.String("metric", "", "cli.flag.trials_metric")
	all := set.Bool("all", false, "cli.flag.trials_all")
	return func(env *Env, args []string) error {
		client, detail, err := env.openJob(connection, args)
		if err != nil {
			return err
		}
		defer client.Close()
		found, err := client.JobTrials(env.Context, detail.Job.ID, *metric)
		if err != nil {
			return err
		}
		return env.show(output, found, func() { env.printTrials(found, detail.Job, *all) })
	}
}

// printTrials prints a line for each trial: its values, or its name, and where the metric
// stands.
func (env *Env) printTrials(found *api.TrialList, job *structs.Job, all bool) {
	head := []string{env.text("cli.col.subjob")}
	if job.Sweep != nil {
		for i := range job.Sweep.Params {
			head = append(head, safe(job.Sweep.Params[i].Name))
		}
	} else {
		head = append(head, env.text("cli.col.name"))
	}
	head = append(head, env.text("cli.col.state"), env.text("cli.col.exit"))
	if found.Metric != "" {
		head = append(head, safe(found.Metric), env.text("cli.col.step"), env.text("cli.col.min"), env.text("cli.col.max"))
		fmt.Fprintln(env.Stdout, env.text("cli.trials.order", "metric", safe(found.Metric), "goal", found.Goal))
	}
	table, left := newTable(env.Stdout, head...), 0
	for i := range found.Trials {
		if i >= trialsShown && !all {
			left = len(found.Trials) - i
			break
		}
		table.row(env.trialRow(&found.Trials[i], job, found.Metric != "")...)
	}
	table.print()
	if left > 0 {
		fmt.Fprintln(env.Stdout, env.text("cli.trials.more", "count", left))
	}
	if found.Waiting > 0 {
		fmt.Fprintln(env.Stdout, env.text("cli.trials.waiting", "count", found.Waiting))
	}
	if found.LeftOut > 0 {
		fmt.Fprintln(env.Stderr, env.text("cli.trials.left_out", "count", found.LeftOut))
	}
	for _, node := range found.Away {
		fmt.Fprintln(env.Stderr, env.text("cli.metrics.away", "node", safe(node)))
	}
}

func (env *Env) trialRow(one *api.Trial, job *structs.Job, metric bool) []string {
	row := []string{strconv.Itoa(one.Subjob)}
	switch {
	case job.Sweep != nil && len(one.Params) == len(job.Sweep.Params):
		for _, param := range one.Params {
			row = append(row, safe(param.Value))
		}
	default:
		row = append(row, safe(one.Name))
	}
	state, exit := env.stateText(env.Stdout, one.State), "-"
	if one.Turn {
		state = env.text("cli.trials.turn")
	}
	if one.State.Terminal() && one.Attempt > 0 {
		exit = strconv.Itoa(one.ExitCode)
	}
	row = append(row, state, exit)
	switch m := one.Metric; {
	case !metric:
	case m == nil:
		row = append(row, "-", "-", "-", "-")
	default:
		row = append(row, metricText(m.Last.Value), strconv.FormatInt(m.Last.Step, 10), metricText(m.Min), metricText(m.Max))
	}
	return row
}

// printTrialsOf says what the subjobs of a job will be: the values of the first trials of
// a sweep, or the numbers of an array.
func (env *Env) printTrialsOf(job *structs.Job) {
	most := job.Parallel()
	switch {
	case job.Sweep != nil && most > 0:
		fmt.Fprintf(env.Stdout, "\n%s\n", env.text("cli.plan.trials", "count", job.Sweep.Trials(), "parallel", most))
	case job.Sweep != nil:
		fmt.Fprintf(env.Stdout, "\n%s\n", env.text("cli.plan.trials_all", "count", job.Sweep.Trials()))
	case most > 0:
		fmt.Fprintf(env.Stdout, "\n%s\n", env.text("cli.plan.parallel", "parallel", most))
	}
	if job.Sweep == nil {
		return
	}
	for index := range min(job.Sweep.Trials(), trialsPlanned) {
		fmt.Fprintf(env.Stdout, "  %d  %s\n", index, safe(structs.TrialName(job.Sweep.Trial(index))))
	}
	if more := job.Sweep.Trials() - trialsPlanned; more > 0 {
		fmt.Fprintf(env.Stdout, "  %s\n", env.text("cli.trials.more", "count", more))
	}
}

package command

import (
	"flag"
	"fmt"
	"strconv"

	"nomadlike/internal/messages"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/faults"
	"nomadlike/nomadlike/structs"
)

// jobDiff shows in what a job differs from another one, or from the last of its
// lineage that succeeded.
func jobDiff(set *flag.FlagSet) func(*Env, []string) error {
	connection, output := declareConnection(set), declareOutput(set)
	return func(env *Env, args []string) error {
		if len(args) == 0 {
			return usagef("cli.missing_argument", "argument", "JOB")
		}
		if len(args) > 2 {
			return usagef("cli.extra_argument", "argument", safe(args[2]))
		}
		with := ""
		if len(args) == 2 {
			with = args[1]
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		found, err := client.JobDiff(env.Context, args[0], with)
		if err != nil {
			return err
		}
		code, err := env.diffCode(client, found)
		if err != nil {
			return err
		}
		value := struct {
			*api.JobDiff
			Code *codeDiff `json:"code,omitempty"`
		}{found, code}
		return env.show(output, value, func() {
			env.printDiff(found)
			env.printCodeDiff(code)
		})
	}
}

func (env *Env) printDiff(found *api.JobDiff) {
	if found.Before == nil {
		fmt.Fprintln(env.Stdout, env.text("cli.diff.no_success", "job", safe(found.After.Name)))
		return
	}
	side := func(job *api.DiffJob) string {
		return fmt.Sprintf("%s %s (%s)", safe(job.Name), short(job.ID), env.stateText(env.Stdout, job.State))
	}
	fmt.Fprintln(env.Stdout, env.text("cli.diff.of", "before", side(found.Before), "after", side(&found.After)))
	if len(found.Differences)+len(found.Found) == 0 {
		fmt.Fprintln(env.Stdout, env.text("cli.diff.same"))
	} else {
		table := newTable(env.Stdout, env.text("cli.col.what"), safe(found.Before.Name), safe(found.After.Name))
		for _, list := range [][]structs.Difference{found.Differences, found.Found} {
			for _, one := range list {
				table.row(safe(one.Path), safe(firstOf(one.Before, "-")), safe(firstOf(one.After, "-")))
			}
		}
		table.print()
	}
	if found.Hidden {
		fmt.Fprintln(env.Stdout, env.text("cli.diff.hidden"))
	}
}

// jobHistory shows what happened to a job, or the story of each of its faults.
func jobHistory(set *flag.FlagSet) func(*Env, []string) error {
	connection, output := declareConnection(set), declareOutput(set)
	stories := set.Bool("faults", false, "cli.flag.faults")
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
		if *stories {
			found, err := client.JobFaults(env.Context, id)
			if err != nil {
				return err
			}
			return env.show(output, found, func() { env.printFaults(found) })
		}
		events, _, err := client.JobEvents(env.Context, id, nil)
		if err != nil {
			return err
		}
		list := all(events.Events)
		return env.show(output, list, func() {
			for i := range list {
				env.printEvent(&list[i])
			}
		})
	}
}

// faultsRow is what a job's faults cost, "" of one without any, and where a server of
// an older version does not say.
func (env *Env) faultsRow(client *api.Client, detail *api.JobDetail) string {
	had := false
	for i := range detail.Subjobs {
		had = had || detail.Subjobs[i].Restarts+detail.Subjobs[i].InfraLosses > 0
	}
	if !had && detail.State != structs.JobFailed {
		return ""
	}
	found, err := client.JobFaults(env.Context, detail.Job.ID)
	if err != nil || len(found.Faults) == 0 {
		return ""
	}
	id := "cli.faults.row_nodes"
	for i := range found.Faults {
		if found.Faults[i].Loss.Devices > 0 {
			id = "cli.faults.row"
		}
	}
	return env.text(id, "count", len(found.Faults), "hours", hours(found.Lost))
}

// printFaults prints the story of each fault.
func (env *Env) printFaults(found *api.JobFaults) {
	if len(found.Faults) == 0 {
		fmt.Fprintln(env.Stdout, env.text("cli.faults.none"))
		return
	}
	for i := range found.Faults {
		env.printFault(&found.Faults[i])
	}
	if len(found.Faults) > 1 {
		fmt.Fprintln(env.Stdout, env.text("cli.faults.all", "count", len(found.Faults), "hours", hours(found.Lost)))
	}
	for _, node := range found.Away {
		fmt.Fprintln(env.Stderr, env.text("cli.metrics.away", "node", safe(node)))
	}
}

func (env *Env) printFault(fault *faults.Fault) {
	outcome := string(fault.Outcome)
	if fault.Outcome == structs.OutcomeLost && fault.Cause != nil && fault.Cause.ID == structs.ReasonSlow {
		outcome = "moved"
	}
	if id := "cli.outcome." + outcome; messages.Has(env.Language, id) {
		outcome = env.text(id)
	}
	head := env.text("cli.faults.head", "attempt", fault.Attempt, "outcome", outcome)
	if fault.Subjob > 0 {
		head = fmt.Sprintf("s%d %s", fault.Subjob, head)
	}
	if why := env.reasonText(fault.Cause); why != "" {
		head += ": " + why
	}
	fmt.Fprintln(env.Stdout, env.Stdout.paint(colourRed, head))
	table := newTable(env.Stdout, "", "", "")
	for i := range fault.Moments {
		moment := &fault.Moments[i]
		at, took := "-", ""
		if moment.At != 0 {
			at = moment.At.Time().Local().Format("2006-01-02 15:04:05.000")
		}
		if moment.Took != 0 {
			took = "+" + span(moment.Took.Std())
		}
		table.row("  "+at, took, env.reasonText(&moment.Reason))
	}
	table.print()
	fmt.Fprintf(env.Stdout, "  %s\n\n", env.lossText(&fault.Loss))
}

// lossText says what a fault cost.
func (env *Env) lossText(loss *faults.Loss) string {
	id := "cli.faults.lost_devices"
	if loss.Devices == 0 {
		id = "cli.faults.lost_nodes"
	}
	work := "cli.faults.work_since_start"
	if loss.Saved {
		work = "cli.faults.work_since_checkpoint"
	}
	text := env.text(id, "hours", hours(loss.Hours), "devices", loss.Devices, "nodes", loss.Nodes) + " " +
		env.text(work, "work", span(loss.Work.Std())) + ", " +
		env.text("cli.faults.around", "stopping", span(loss.Stopping.Std()), "starting", span(loss.Starting.Std()))
	if loss.Waiting > 0 {
		text += ", " + env.text("cli.faults.waited", "waiting", span(loss.Waiting.Std()))
	}
	if loss.Steps > 0 {
		text += ", " + env.text("cli.faults.steps", "steps", loss.Steps)
	}
	if loss.Open {
		text += ", " + env.text("cli.faults.open")
	}
	return text
}

// hours writes hours of cards.
func hours(h float64) string {
	switch {
	case h > 0 && h < 0.01:
		return "< 0.01"
	case h < 10:
		return strconv.FormatFloat(h, 'f', 2, 64)
	}
	return strconv.FormatFloat(h, 'f', 0, 64)
}

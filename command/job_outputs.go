package command

import (
	"fmt"
	"strconv"
	"strings"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// outputLines say what became of an output, where it lies, and what can be done where it
// is no version.
func (env *Env) outputLines(job *structs.Job, out *api.JobOutput) []string {
	if out.Path == "" && out.State == api.OutputUnkept && out.Cause == nil { // it never ran
		return nil
	}
	lines := []string{env.outputText(out)}
	if job.Batched() {
		lines[0] = fmt.Sprintf("s%d: %s", out.Subjob, lines[0])
	}
	if out.Path != "" && out.State != api.OutputWaiting && out.State != api.OutputLies {
		lines = append(lines, env.outputPlace(out))
	}
	if out.Path != "" && (out.State == api.OutputRefused || out.State == api.OutputUnkept) {
		lines = append(lines, env.text("cli.output.cure", "command", addCommand(job, out), "home", "nomadlike job download"+subjobFlag(job, out)+" "+short(job.ID)+" outputs DIR"))
	}
	return lines
}

// outputText is what became of an output, in one line.
func (env *Env) outputText(out *api.JobOutput) string {
	if out.State == api.OutputLies {
		return env.outputPlace(out)
	}
	text := env.text("cli.output."+out.State, "kind", out.Kind, "name", safe(out.Name), "version", out.Version)
	if out.Step > 0 {
		text = env.text("cli.output.checkpoint", "step", out.Step, "attempt", out.Attempt, "text", text)
	}
	if out.Cause != nil {
		text += ": " + env.reasonText(out.Cause)
	}
	return text
}

// outputPlace is where an output lies.
func (env *Env) outputPlace(out *api.JobOutput) string {
	switch {
	case out.Storage != "":
		return env.text("cli.output.place", "path", safe(out.Path), "storage", safe(out.Storage))
	case out.Node != "":
		return env.text("cli.output.place_node", "path", safe(out.Path), "node", safe(out.Node))
	}
	return env.text("cli.output.place_path", "path", safe(out.Path))
}

func subjobFlag(job *structs.Job, out *api.JobOutput) string {
	if !job.Batched() {
		return ""
	}
	return " -subjob " + strconv.Itoa(out.Subjob)
}

// addCommand is the command that makes a version of an output.
func addCommand(job *structs.Job, out *api.JobOutput) string {
	command := "nomadlike data add -kind " + out.Kind
	if out.Kind == structs.StorageModel {
		command = "nomadlike model add"
	}
	if command += subjobFlag(job, out); out.Step > 0 {
		command += " -checkpoint " + strconv.FormatInt(out.Step, 10)
	}
	command += " " + safe(out.Name) + " from " + short(job.ID)
	switch keep := job.OutputKeep; {
	case keep == nil || out.Step > 0:
	case keep.When == structs.KeepOnCheckpoint: // one that told no step
		command += " " + shellLine([]string{safe(strings.TrimPrefix(out.Path, job.OfAttempt(out.Attempt).OutputOf(out.Subjob)+"/"))})
	case keep.Path != "":
		command += " " + shellLine([]string{safe(keep.Path)})
	}
	return command
}

// printDataOutputs lists the jobs that were to make a version and have not.
func (env *Env) printDataOutputs(list []api.DataOutputJob) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintln(env.Stdout)
	table := newTable(env.Stdout, env.text("cli.col.not_kept"), "ID", env.text("cli.col.user"), env.text("cli.col.why"), env.text("cli.col.output"))
	for i := range list {
		j := &list[i]
		name := safe(j.Name)
		if j.Output.Subjob > 0 {
			name = fmt.Sprintf("%s s%d", name, j.Output.Subjob)
		}
		place := "-"
		if j.Output.Path != "" {
			place = env.outputPlace(&j.Output)
		}
		table.row(name, short(j.ID), safe(j.User), env.outputText(&j.Output), place)
	}
	table.print()
	fmt.Fprintln(env.Stdout, env.text("cli.output.see"))
}

package structs

import (
	"maps"
	"slices"
	"strings"
)

// Hidden stands for a value that its reader may not see. A job that still has it
// where a value belongs is refused: it is a copy by somebody who could not read it.
const Hidden = "***"

// WithoutEnvironment is the job for those who may see it, and not its environment:
// the names of its variables stay, their values, the names of its secrets and the
// file that it was written in do not. The job itself stays as it is.
func (j *Job) WithoutEnvironment() *Job {
	hidden := j.Copy()
	hidden.Source = ""
	hidden.Task.Env = hiddenValues(hidden.Task.Env)
	for i := range hidden.Task.Secrets {
		hidden.Task.Secrets[i] = SecretUse{Name: Hidden, Var: hidden.Task.Secrets[i].Var, Image: hidden.Task.Secrets[i].Image}
	}
	if hidden.Batch != nil {
		for i := range hidden.Batch.Subtasks {
			hidden.Batch.Subtasks[i].Env = hiddenValues(hidden.Batch.Subtasks[i].Env)
		}
	}
	return hidden
}

func hiddenValues(env map[string]string) map[string]string {
	for name := range env {
		env[name] = Hidden
	}
	return env
}

// HiddenVariables are the variables of which the job says no more than that there
// is a value, by name.
func (j *Job) HiddenVariables() []string {
	var names []string
	for name, value := range j.variables() {
		if value == Hidden {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// variables are those that the job itself sets, with one of the values where its
// subtasks differ. Those that are secrets have none here.
func (j *Job) variables() map[string]string {
	all := maps.Clone(j.Task.Env)
	if all == nil {
		all = make(map[string]string)
	}
	if j.Batch != nil {
		for _, subtask := range j.Batch.Subtasks {
			maps.Copy(all, subtask.Env)
		}
	}
	for _, use := range j.Task.Secrets {
		if use.Var != "" {
			all[use.Var] = ""
			if use.Name == Hidden {
				all[use.Var] = Hidden
			}
		}
	}
	return all
}

// factEnv begins the names of facts that are variables of a task's environment.
const factEnv = "env."

// SeenWithout is what a rank was seen with, without the values of variables that the
// job sets. The map stays as it is.
func (j *Job) SeenWithout(seen map[string]string) map[string]string {
	out := maps.Clone(seen)
	for variable := range j.variables() {
		if _, told := out[factEnv+variable]; told {
			out[factEnv+variable] = Hidden
		}
	}
	return out
}

// valueTold is how long a value must be to be looked for in a text: a shorter one is
// in many, and says little.
const valueTold = 4 // bytes

// TextWithout is what was told of a rank's environment, up to the first value of a
// variable that the job sets: what follows may belong to it.
func (j *Job) TextWithout(text string) string {
	first := len(text)
	cut := func(what string, after int) {
		if at := strings.Index(text, what); at >= 0 {
			first = min(first, at+after)
		}
	}
	for variable, value := range j.variables() {
		cut(variable+"=", len(variable)+1)
		if len(value) >= valueTold {
			cut(value, 0)
		}
	}
	if first == len(text) {
		return text
	}
	return text[:first] + Hidden
}

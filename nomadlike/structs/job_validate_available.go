package structs

// NotAvailable lists what the job asks for that this version knows but does
// not execute yet. Such a job is valid; submission refuses it with
// CodeNotAvailable rather than run something else than was asked. Pure.
func (j *Job) NotAvailable() []Problem {
	v := &validator{}
	if j.Type == JobTypeDev {
		v.later("type", `type = "dev"`)
	}
	if j.Batch != nil {
		for i, s := range j.Batch.Subtasks {
			v.laterIf(s.Algorithm != "", IndexedPath("batch.subtask", i)+".algorithm", "subtask { algorithm }")
		}
	}
	v.laterIf(j.Sweep != nil && j.Sweep.Method == SweepASHA, "sweep", `sweep "asha"`)
	v.laterIf(j.Fencing == FencingStrict && j.Task.Driver != DriverExec && j.Task.Driver != DriverDocker, "fencing", `fencing = "strict" with driver = "`+j.Task.Driver+`"`)
	v.laterIf(j.SSH, "ssh", "ssh")
	v.laterIf(j.Jupyter, "jupyter", "jupyter")
	v.laterIf(j.Tensorboard != nil, "tensorboard", "tensorboard")
	return v.problems
}

func (v *validator) later(path, block string) {
	v.add(path, "job.later", "", "block", block)
}

func (v *validator) laterIf(asked bool, path, block string) {
	if asked {
		v.later(path, block)
	}
}

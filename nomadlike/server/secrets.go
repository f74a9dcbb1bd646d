package server

import (
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// fixSecrets writes into a job whose secrets it names: the submitter's own where
// there is one of the name, else the project's. Whatever the request says of that is
// not believed, so nobody names another's. It lists those that are not there.
func fixSecrets(snapshot *state.Snapshot, job *structs.Job) []structs.Problem {
	var problems []structs.Problem
	for i := range job.Task.Secrets {
		use := &job.Task.Secrets[i]
		use.User = ""
		if job.User != "" && snapshot.Secret(structs.SecretRef{User: job.User, Name: use.Name}) != nil {
			use.User = job.User
			continue
		}
		if snapshot.Secret(use.Ref(job.Project)) == nil {
			problems = append(problems, placeProblem(use.Path(), "server.secret_unknown", "secret", use.Name, "project", job.Project))
		}
	}
	return problems
}

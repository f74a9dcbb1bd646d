package server

import (
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// fixCode compares the code that a job names with what the cluster has in the job's
// project, and writes into the job how much it is: whatever the request says of that
// is not believed. A job whose code was not sent yet has none to compare.
func fixCode(snapshot *state.Snapshot, job *structs.Job) []structs.Problem {
	digest := job.Tree()
	if digest == "" {
		return nil
	}
	tree := snapshot.Code(structs.CodeRef{Project: job.Project, Digest: digest})
	if tree == nil {
		return []structs.Problem{placeProblem("workdir", "server.code_unknown", "tree", digest, "project", job.Project)}
	}
	job.Workdir.Files, job.Workdir.Bytes = tree.Files, tree.Bytes
	return nil
}

package httpapi

import (
	"maps"
	"slices"

	"nomadlike/jobspec"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// jobFileName is what diagnostics call a job file that came in a request.
const jobFileName = "job.hcl"

// changedJobFile makes changes in the text of a job file.
func changedJobFile(text string, set []api.JobChange) (string, error) {
	changes := make([]jobspec.Change, len(set))
	for i := range set {
		changes[i] = jobspec.Change(set[i])
	}
	changed, diagnostics, err := jobspec.Edit(jobFileName, []byte(text), changes)
	if err != nil {
		return "", structs.NewError(structs.CodeInvalid, "agent.job_change", "reason", err)
	}
	if err := diagnostics.Err(); err != nil {
		return "", err
	}
	return string(changed), nil
}

// parseJobFile reads the text of a job file on the server: without files,
// environment or clock, within jobspec's bounds.
func parseJobFile(text string, variables map[string]string) (*structs.Job, error) {
	var options jobspec.Options
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		options.Vars = append(options.Vars, name+"="+variables[name])
	}
	job, _, diagnostics := jobspec.Parse(jobFileName, []byte(text), options)
	if err := diagnostics.Err(); err != nil {
		return nil, err
	}
	job.Source = text
	return job, nil
}

package agent

import (
	"maps"
	"slices"

	"nomadlike/jobspec"
	"nomadlike/nomadlike/structs"
)

// parseJobFile reads the text of a job file on the server: without files,
// environment or clock, within jobspec's bounds.
func parseJobFile(text string, variables map[string]string) (*structs.Job, error) {
	var options jobspec.Options
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		options.Vars = append(options.Vars, name+"="+variables[name])
	}
	job, _, diagnostics := jobspec.Parse("job.hcl", []byte(text), options)
	if err := diagnostics.Err(); err != nil {
		return nil, err
	}
	job.Source = text
	return job, nil
}

// Package monitoring carries what a cluster's Prometheus and Grafana are given: how to
// scrape, when to alarm, and what to draw.
//
// Flow: a test writes the dashboards from one table of panels (dashboards_test.go); the
// other files are written by hand. Agents serve all of them below
// /docs/examples/monitoring, and operator monitoring writes them to a directory.
//
// Limits: no file knows the cluster: names of servers and paths are the operator's.
package monitoring

import "embed"

//go:embed prometheus.yml nomadlike-alerts.yml nomadlike-dcgm.yml dashboard-*.json
var files embed.FS

// File is one of the files.
type File struct {
	Name string
	Data []byte
}

// Files are all of them, by name.
func Files() []File {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(err) // they are part of the program
	}
	all := make([]File, 0, len(entries))
	for _, entry := range entries {
		data, err := files.ReadFile(entry.Name())
		if err != nil {
			panic(err)
		}
		all = append(all, File{entry.Name(), data})
	}
	return all
}

package feasible

import "nomadlike/nomadlike/structs"

// nodesOnly is a View without pools and projects.
type nodesOnly func(id string) (*structs.Node, *structs.Usage)

func (g nodesOnly) Node(id string) (*structs.Node, *structs.Usage) { return g(id) }
func (nodesOnly) Pool(string) *structs.Pool                        { return nil }
func (nodesOnly) Project(string) *structs.Project                  { return nil }
func (nodesOnly) ProjectUsage(string) *structs.ProjectUsage        { return nil }

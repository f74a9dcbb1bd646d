package structs

// nodesOnly is a Ground without pools and projects.
type nodesOnly func(id string) (*Node, *Usage)

func (g nodesOnly) Node(id string) (*Node, *Usage)  { return g(id) }
func (nodesOnly) Pool(string) *Pool                 { return nil }
func (nodesOnly) Project(string) *Project           { return nil }
func (nodesOnly) ProjectUsage(string) *ProjectUsage { return nil }

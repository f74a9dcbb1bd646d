package structs

// Elastic lets a gang run on fewer nodes than it asked for.
type Elastic struct {
	MinNodes int       `json:"min_nodes"`
	By       ElasticBy `json:"by,omitempty" since:"16"`
	// AllowResize lets a running gang start anew on more nodes when that is worth it.
	AllowResize bool `json:"allow_resize,omitempty"`
}

// ElasticBy is who brings a gang to the nodes that there are.
type ElasticBy string

// Who does.
const (
	// ElasticByRestart: the gang starts anew, from its last checkpoint.
	ElasticByRestart ElasticBy = "restart"
	// ElasticByTorchrun: torchrun gathers what is there, between MinNodes and Nodes.
	ElasticByTorchrun ElasticBy = "torchrun"
)

// ElasticRule returns how the job may run on fewer nodes than it asked for; nil: it may
// not. Jobs of protocol 15 and before say it in two other places.
func (j *Job) ElasticRule() *Elastic {
	switch {
	case j.Elastic != nil:
		return j.Elastic
	case j.Distributed.MinNodes > 0 && j.Distributed.Mode == ModePyTorch:
		return &Elastic{MinNodes: j.Distributed.MinNodes, By: ElasticByTorchrun}
	case j.Checkpoint != nil && j.Checkpoint.Elastic != nil:
		e := *j.Checkpoint.Elastic
		e.By = ElasticByRestart
		return &e
	}
	return nil
}

// NodesMin is the fewest nodes that an attempt may have: Nodes, or less when
// the job is elastic.
func (j *Job) NodesMin() int {
	if e := j.ElasticRule(); e != nil {
		return max(1, min(e.MinNodes, j.Nodes))
	}
	return max(1, j.Nodes)
}

// GoesOnWithout reports whether a running gang goes on by itself when a rank is
// gone for good and left others are not: the job gave torchrun a range of nodes,
// and torchrun gathers what is left. Rank 0 holds the store at which they meet;
// nothing goes on without it.
func (j *Job) GoesOnWithout(rank, left int) bool {
	return j.TorchRange() && rank != 0 && left >= j.NodesMin()
}

// Resizes reports whether a running gang that has fewer nodes than it asked for may
// be started anew on more.
func (j *Job) Resizes() bool {
	if j.NodesMin() >= j.Nodes {
		return false
	}
	return j.TorchRange() || j.ElasticRule().AllowResize
}

// TorchRange reports whether torchrun itself decides how many of the gang's nodes
// take part, between NodesMin and Nodes.
func (j *Job) TorchRange() bool {
	e := j.ElasticRule()
	return e != nil && e.By == ElasticByTorchrun && j.Nodes > 1
}

package structs

// GoesOnWithout reports whether a running gang goes on by itself when a rank is
// gone for good and left others are not: the job gave torchrun a range of nodes,
// and torchrun gathers what is left. Rank 0 holds the store at which they meet;
// nothing goes on without it.
func (j *Job) GoesOnWithout(rank, left int) bool {
	return j.TorchRange() && rank != 0 && left >= j.Distributed.MinNodes
}

// Resizes reports whether a running gang that has fewer nodes than it asked for may
// be started anew on more.
func (j *Job) Resizes() bool {
	if j.NodesMin() >= j.Nodes {
		return false
	}
	return j.TorchRange() || j.Checkpoint != nil && j.Checkpoint.Elastic != nil && j.Checkpoint.Elastic.AllowResize
}

// TorchRange reports whether torchrun itself decides how many of the gang's nodes
// take part, between MinNodes and Nodes.
func (j *Job) TorchRange() bool {
	return j.Distributed.Mode == ModePyTorch && j.Distributed.MinNodes > 0 && j.Nodes > 1
}

package structs

import "testing"

// Jobs of protocol 15 and of today say in different words how they may be smaller.
func TestElasticRule(t *testing.T) {
	torch := Distributed{Mode: ModePyTorch}
	for name, c := range map[string]struct {
		job             Job
		least           int
		gathers, resize bool
	}{
		"all of them":            {Job{Nodes: 4}, 4, false, false},
		"a restart":              {Job{Nodes: 4, Elastic: &Elastic{MinNodes: 2, By: ElasticByRestart}}, 2, false, false},
		"a restart that grows":   {Job{Nodes: 4, Elastic: &Elastic{MinNodes: 2, By: ElasticByRestart, AllowResize: true}}, 2, false, true},
		"torchrun":               {Job{Nodes: 4, Distributed: torch, Elastic: &Elastic{MinNodes: 2, By: ElasticByTorchrun}}, 2, true, true},
		"torchrun on one node":   {Job{Nodes: 1, Distributed: torch, Elastic: &Elastic{MinNodes: 1, By: ElasticByTorchrun}}, 1, false, false},
		"more than there are":    {Job{Nodes: 4, Elastic: &Elastic{MinNodes: 9, By: ElasticByRestart, AllowResize: true}}, 4, false, false},
		"fewer than one":         {Job{Nodes: 4, Elastic: &Elastic{MinNodes: -3, By: ElasticByRestart}}, 1, false, false},
		"a restart of before":    {Job{Nodes: 4, Checkpoint: &Checkpoint{Elastic: &Elastic{MinNodes: 3, AllowResize: true}}}, 3, false, true},
		"torchrun of before":     {Job{Nodes: 4, Distributed: Distributed{Mode: ModePyTorch, MinNodes: 3}}, 3, true, true},
		"another mode of before": {Job{Nodes: 4, Distributed: Distributed{Mode: ModeMPI, MinNodes: 3}}, 4, false, false},
	} {
		if got := c.job.NodesMin(); got != c.least {
			t.Errorf("%s: at least %d nodes, want %d", name, got, c.least)
		}
		if c.job.TorchRange() != c.gathers || c.job.Resizes() != c.resize {
			t.Errorf("%s: range %v, resizes %v", name, c.job.TorchRange(), c.job.Resizes())
		}
	}
}

// Nodes of protocol 15 read torchrun's range where it was.
func TestElasticForOlderNodes(t *testing.T) {
	j := Job{Nodes: 4, Distributed: Distributed{Mode: ModePyTorch}, Elastic: &Elastic{MinNodes: 2, By: ElasticByTorchrun}}
	j.SetDefaults()
	if j.Distributed.MinNodes != 2 {
		t.Errorf("they read %d", j.Distributed.MinNodes)
	}
	older := j
	older.Elastic = nil // which they do not know
	if !older.TorchRange() || older.NodesMin() != 2 {
		t.Errorf("they make of it %v, %d", older.TorchRange(), older.NodesMin())
	}
}

package structs

import "fmt"

// elastic checks how a gang may run on fewer nodes than it asked for.
func (v *validator) elastic(j *Job) {
	e := j.Elastic
	if c := j.Checkpoint; c != nil && c.Elastic != nil {
		v.add("checkpoint.elastic", "job.elastic_moved", "job.elastic_moved.hint", "elastic", elasticBlock(c.Elastic.MinNodes, ElasticByRestart))
	}
	torch := e != nil && e.By == ElasticByTorchrun
	if least := j.Distributed.MinNodes; least != 0 && (!torch || least != e.MinNodes) {
		v.add("distributed.min_nodes", "job.elastic_moved", "job.elastic_moved.hint", "elastic", elasticBlock(least, ElasticByTorchrun))
	}
	if e == nil {
		return
	}
	v.integer("elastic.min_nodes", e.MinNodes, 1, max(1, min(j.Nodes, NodesMax)))
	v.choice("elastic.by", string(e.By), false, string(ElasticByRestart), string(ElasticByTorchrun))
	if j.Distributed.ParameterServers > 0 {
		v.excludes("elastic", "distributed.parameter_servers")
	}
	if !torch {
		if j.Checkpoint == nil && e.By == ElasticByRestart {
			v.add("elastic.by", "job.elastic_checkpoint", "job.elastic_checkpoint.hint")
		}
		return
	}
	if j.Distributed.Mode != ModePyTorch {
		v.add("elastic.by", "job.elastic_torchrun", "job.elastic_torchrun.hint", "mode", j.Distributed.Mode)
	}
	if e.AllowResize {
		v.excludes("elastic.allow_resize", `elastic.by = "torchrun"`)
	}
	if j.Fencing == FencingStrict {
		v.excludes(`elastic.by = "torchrun"`, `fencing = "strict"`)
	}
}

// elasticBlock is the block of a job file that says so.
func elasticBlock(least int, by ElasticBy) string {
	return fmt.Sprintf("elastic { min_nodes = %d, by = %q }", least, by)
}

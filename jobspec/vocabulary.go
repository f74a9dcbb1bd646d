package jobspec

import "strings"

// homeOf is the block that an argument or block belongs into, for names that
// are often put elsewhere; "" for names that have no one home.
func homeOf(name string) string {
	switch name {
	case "command", "arguments", "driver", "image", "pull", "env", "dir", "user", "hook", "logs", "ulimits":
		return "task"
	case "cpu", "memory", "shared_memory", "disk", "device", "port", "rdma", "sku":
		return "resources"
	case "pool", "driver_version", "spread_or_pack":
		return "placement"
	case "world_size", "rewrite", "launcher", "procs_per_node", "master_port", "parameter_servers", "rank_table", "chief", "emulate":
		return "distributed"
	case "max_restarts":
		return "restart"
	case "max_resumes", "precheck", "elastic", "performance":
		return "checkpoint"
	case "min_nodes", "allow_resize":
		return "elastic"
	case "subtask":
		return "batch"
	case "machine":
		return "vip"
	case "priority", "time_limit", "expected_runtime", "stop_grace", "fencing", "project", "category", "preemptible",
		"resources", "placement", "distributed", "task", "restart", "checkpoint", "batch", "dataset", "volume", "mount", "output",
		"algorithm", "tensorboard", "metrics", "debug", "hang", "supports", "throttle", "ssh", "jupyter", "meta", "vip":
		return "job"
	}
	return ""
}

// oursFor is what a word of Nomad, Slurm, Kubernetes or docker is called in a
// job file; "" for words that we do not know.
func oursFor(name string) string {
	switch strings.ToLower(name) {
	case "replicas", "instances", "workers", "worker_count", "num_nodes", "nnodes", "count":
		return "nodes"
	case "timeout", "walltime", "time", "max_run_duration":
		return "time_limit"
	case "gpu", "gpus", "gres", "npu", "npus", "worker_gpu":
		return `device "nvidia/gpu" { count = N }`
	case "mem", "memory_mb", "worker_memory":
		return "memory"
	case "shm", "shm_size", "worker_shared_memory":
		return "shared_memory"
	case "cores", "cpus", "vcpus", "worker_cpu":
		return "cpu"
	case "cmd", "args", "entrypoint", "script", "run":
		return "command"
	case "environment", "envs", "variables":
		return "env"
	case "partition", "queue", "node_pool", "virtual_cluster":
		return "pool"
	case "nodelist", "node_names", "hosts":
		return "nodes"
	case "kill_timeout", "grace_period":
		return "stop_grace"
	case "work_dir", "workdir", "chdir", "working_dir":
		return "dir"
	case "group", "namespace", "datacenters", "constraint", "affinity", "spread":
		return "placement"
	case "retries", "max_retries", "backoff_limit", "attempts":
		return "max_restarts"
	case "framework", "mode", "launcher_type":
		return `distributed "pytorch" {}`
	case "network":
		return `port "name" {}`
	}
	return ""
}

// joinWords lists words for a message.
func joinWords(words []string) string { return strings.Join(words, ", ") }

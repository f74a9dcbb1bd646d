package jobspec

import "strings"

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

// movedFrom is where an argument or a block of a block has moved to; "" when it
// never has.
func movedFrom(block, name string) string {
	switch block + "." + name {
	case "distributed.min_nodes":
		return `elastic { min_nodes = N, by = "torchrun" }`
	case "checkpoint.elastic":
		return `elastic { min_nodes = N, by = "restart" }`
	}
	return ""
}

// absentHint is the text about what other systems have at a place, and we have not; ""
// for everything else.
func absentHint(block, name string) string {
	switch block + "." + name {
	case "workdir.secret", "workdir.token", "workdir.password", "workdir.username", "workdir.user", "workdir.key", "workdir.ssh_key", "workdir.credentials":
		return "jobspec.workdir_secret.hint"
	}
	return ""
}

// renamedFrom is what an argument of a block is called now; "" when it never was
// called otherwise.
func renamedFrom(block, name string) string {
	if block+"."+name == "throttle.keep" {
		return "idle"
	}
	return ""
}

// joinWords lists words for a message.
func joinWords(words []string) string { return strings.Join(words, ", ") }

package structs

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// Warnings lists what is allowed but probably not meant; it never keeps a job
// from being admitted. SetDefaults comes first. Pure.
func (j *Job) Warnings() []Problem {
	v := &validator{}
	if j.TimeLimit > 0 && j.ExpectedRuntime > j.TimeLimit {
		v.add("expected_runtime", "job.warn.runtime", "", "expected", FormatDuration(j.ExpectedRuntime), "limit", FormatDuration(j.TimeLimit))
	}
	if j.LimitWarning != nil && j.TimeLimit == 0 {
		v.add("time_limit.warn", "job.warn.limit_warning", "")
	}
	for _, name := range slices.Sorted(maps.Keys(j.Task.Env)) {
		if id := envWarning(name, j.Task.Env[name]); id != "" {
			v.add(KeyedPath("task.env", name), id, "", "name", name, "value", j.Task.Env[name])
		}
	}
	v.commandWarnings(j)
	// Nobody writes such a block to have nothing started again.
	if j.Restart != nil && j.Restart.MaxRestarts == 0 {
		v.add("restart.max_restarts", "job.warn.no_restarts", "job.warn.no_restarts.hint")
	}
	if j.Checkpoint != nil && j.Checkpoint.MaxResumes == 0 {
		v.add("checkpoint.max_resumes", "job.warn.no_restarts", "job.warn.no_restarts.hint")
	}
	return v.problems
}

// envWarning is the message id of what is doubtful about a variable, or "".
func envWarning(name, value string) string {
	switch name {
	case "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "ASCEND_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES", "MLU_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES":
		return "job.warn.env_devices"
	case "NCCL_DEBUG":
		if strings.EqualFold(value, "INFO") || strings.EqualFold(value, "TRACE") {
			return "job.warn.env_debug"
		}
	case "NCCL_P2P_DISABLE", "CUDA_LAUNCH_BLOCKING", "PYTORCH_NO_CUDA_MEMORY_CACHING":
		if value != "" && value != "0" {
			return "job.warn.env_debug"
		}
	case "NCCL_IB_DISABLE":
		if value != "" && value != "0" {
			return "job.warn.env_platform"
		}
	case "NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "HCCL_SOCKET_IFNAME":
		return "job.warn.env_platform"
	}
	return ""
}

func (v *validator) commandWarnings(j *Job) {
	const at = "task.command"
	if i := strings.IndexAny(j.Task.Command, "\u3000“”‘’；"); i >= 0 {
		v.add(at, "job.warn.full_width", "")
	}
	scan, err := scanCommand(j.Task.Command, nil)
	if err != nil || len(scan.words) == 0 {
		return
	}
	if scan.glob != "" {
		hint, rewrite := shellHint(j.Task.Command, scan)
		v.add(at, "job.warn.glob", hint, "character", scan.glob, "rewrite", rewrite)
	}
	if strings.Contains(strings.Join(strings.Fields(j.Task.Command), " "), "sleep infinity") {
		v.add(at, "job.warn.sleep", "")
	}
	if j.Distributed.Mode == ModeNone && j.Nodes > 1 && rendezvousProgram(scan.texts()) {
		v.add(at, "job.warn.no_mode", "job.warn.no_mode.hint")
	}
}

// rendezvousProgram reports whether a command is one that meets its peers.
func rendezvousProgram(words []string) bool {
	for _, word := range words {
		switch path.Base(word) {
		case "torchrun", "torch.distributed.run", "torch.distributed.launch", "mpirun", "mpiexec", "mpiexec.hydra", "deepspeed", "msrun":
			return true
		}
	}
	return false
}

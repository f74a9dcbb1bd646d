package structs

import "strings"

// ReservedEnvPrefix starts the names of variables that describe the job to its
// tasks; users may not set them.
const ReservedEnvPrefix = "NOMADLIKE_"

// Reserves reports whether the system itself sets the variable name for jobs of
// this mode, so that a user's value would break the rendezvous and is refused.
// Modes single and none bring nobody together: there the frameworks' names
// are the user's own. Names that merely tune a framework are always theirs.
func (m Mode) Reserves(name string) bool {
	if strings.HasPrefix(name, ReservedEnvPrefix) {
		return true
	}
	if !m.rendezvous() {
		return false
	}
	return rankName(name) || torchName(name) || mpiName(name) || tensorflowName(name) || ascendName(name) || jaxName(name)
}

// rankName: who am I, how many are we, where is the first; common to all.
func rankName(name string) bool {
	switch name {
	case "RANK", "LOCAL_RANK", "GROUP_RANK", "ROLE_RANK", "NODE_RANK",
		"WORLD_SIZE", "LOCAL_WORLD_SIZE", "ROLE_WORLD_SIZE", "NNODES", "NPROC_PER_NODE", "SLOTS",
		"MASTER_ADDR", "MASTER_PORT":
		return true
	}
	return false
}

// torchName: the options of torchrun that place a node in its group. Others,
// such as PET_LOG_DIR, PET_MAX_RESTARTS or PET_TEE, stay with the user.
func torchName(name string) bool {
	switch name {
	case "PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT", "PET_STANDALONE",
		"PET_RDZV_BACKEND", "PET_RDZV_ENDPOINT", "PET_RDZV_ID", "PET_RDZV_CONF", "PET_LOCAL_ADDR", "TORCHELASTIC_RUN_ID":
		return true
	}
	return false
}

// mpiName: how the launchers of Open MPI 4 and 5, MPICH and Intel MPI find and
// reach the other nodes.
func mpiName(name string) bool {
	switch name {
	case "OMPI_MCA_plm_rsh_agent", "OMPI_MCA_plm_rsh_args", "OMPI_MCA_plm_rsh_no_tree_spawn",
		"OMPI_MCA_orte_default_hostfile", "OMPI_MCA_orte_keep_fqdn_hostnames",
		"PRTE_MCA_plm_ssh_agent", "PRTE_MCA_plm_ssh_args", "PRTE_MCA_plm_ssh_no_tree_spawn",
		"PRTE_MCA_prte_default_hostfile", "PRTE_MCA_prte_keep_fqdn_hostnames",
		"HYDRA_HOST_FILE", "HYDRA_LAUNCHER", "HYDRA_LAUNCHER_EXEC", "HYDRA_LAUNCH_EXTRA_ARGS",
		"I_MPI_HYDRA_HOST_FILE", "I_MPI_HYDRA_BOOTSTRAP", "I_MPI_HYDRA_BOOTSTRAP_EXEC":
		return true
	}
	return false
}

func tensorflowName(name string) bool {
	switch name {
	case "TF_CONFIG", "VK_TASK_INDEX":
		return true
	}
	return false
}

func ascendName(name string) bool {
	switch name {
	case "RANK_TABLE_FILE", "MINDSPORE_HCCL_CONFIG_PATH", "RANK_ID", "RANK_SIZE", "DEVICE_ID", "DEVICE_NUM",
		"MS_ROLE", "MS_SCHED_HOST", "MS_SCHED_PORT", "MS_WORKER_NUM", "MS_LOCAL_WORKER", "MS_NODE_RANK", "MS_SERVER_NUM":
		return true
	}
	return false
}

func jaxName(name string) bool {
	switch name {
	case "JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID", "JAX_PROCESS_COUNT", "JAX_PROCESS_INDEX":
		return true
	}
	return false
}

// reservedHint names the job file's own way to what name would set.
func reservedHint(name string) string {
	switch name {
	case "PET_NPROC_PER_NODE", "NPROC_PER_NODE", "SLOTS", "LOCAL_WORLD_SIZE", "DEVICE_NUM", "MS_LOCAL_WORKER":
		return "job.env_reserved.procs.hint"
	case "PET_MASTER_PORT", "MASTER_PORT", "MS_SCHED_PORT":
		return "job.env_reserved.port.hint"
	case "PET_NNODES", "NNODES":
		return "job.env_reserved.nodes.hint"
	case "WORLD_SIZE":
		return "job.env_reserved.world.hint"
	}
	return "job.env_reserved.hint"
}

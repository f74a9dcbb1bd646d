# From singularity.sbatch, a batch script of Slurm, by nomadlike job import. Read it before you run it.
#
# Changed:
#   mode pytorch: MASTER_ADDR, MASTER_PORT and torchrun's options are set on every node
#   line 4: --ntasks-per-node=1  tasks of a node: 1; what they are here, the distributed block and the launcher's
#       options say
#   line 8: export MASTER_ADDR=$(scontrol show hostname $SLURM_NODELIST | head -n1)  NOMADLIKE_RANK_NAMES lists the
#       nodes; their names are those of ranks, which resolve inside of the job
#   line 8: export MASTER_ADDR=$(scontrol show hostname $SLURM_NODELIST | head -n1)  MASTER_ADDR is set by the system,
#       with a port that is free
#   line 8: $SLURM_NODELIST  is $NOMADLIKE_RANK_NAMES
#   line 9: srun singularity exec --nv torch.sif torchrun --nnodes=$SLURM_NNODES --node_rank…  srun is gone: the line
#       runs on every node by itself
#   line 9: $SLURM_NNODES  is $NOMADLIKE_NODES
#   line 9: $SLURM_NODEID  is $NOMADLIKE_RANK
#
# To look at:
#   the script leaves cores to the site; cpu = 32 is a guess
#   the whole script runs on every node at the same time, in Slurm on the first alone; what must happen once goes
#       behind: if [ "$NOMADLIKE_RANK" = 0 ]
#   Slurm starts in the directory of submission, on a shared file system. workdir = "." sends the files beside this job
#       file along; what the script writes there stays on its node: name an output, or use a shared path with dir in
#       task
#   sbatch hands over the environment of whoever submits; here the task has what this file says: put what the script
#       needs into env

job "sing" {        # line 2: --job-name=sing
  nodes      = 2    # line 3: --nodes=2
  time_limit = "3h" # line 7: --time=3:00:00
  workdir    = "."

  distributed "pytorch" {}

  resources {
    cpu    = 32
    memory = "128GiB" # line 6: --mem=128G

    device "nvidia/gpu" {
      count = 4 # line 5: --gres=gpu:4
    }
  }

  task {
    # line 8: the script from here on
    command = <<SCRIPT
bash -c '
export MASTER_ADDR=$MASTER_ADDR
singularity exec --nv torch.sif torchrun --nnodes=$NOMADLIKE_NODES --node_rank=$NOMADLIKE_RANK --nproc_per_node=4 --master_addr=$MASTER_ADDR train.py
'
SCRIPT
  }
}

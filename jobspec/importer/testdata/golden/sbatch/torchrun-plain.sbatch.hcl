# From torchrun-plain.sbatch, a batch script of Slurm, by nomadlike job import. Read it before you run it.
#
# Changed:
#   mode pytorch: MASTER_ADDR, MASTER_PORT and torchrun's options are set on every node
#   line 7: srun torchrun --nnodes=4 --nproc_per_node=8 --rdzv_backend=c10d --rdzv_endpoint=…  srun is gone: the line
#       runs on every node by itself
#   line 7: srun torchrun --nnodes=4 --nproc_per_node=8 --rdzv_backend=c10d --rdzv_endpoint=…  --nnodes --rdzv_backend
#       --rdzv_endpoint: the launcher has them from the environment
#
# To look at:
#   the script leaves cores to the site; cpu = 64 is a guess
#   the whole script runs on every node at the same time, in Slurm on the first alone; what must happen once goes
#       behind: if [ "$NOMADLIKE_RANK" = 0 ]
#   sbatch hands over the environment of whoever submits; here the task has what this file says: put what the script
#       needs into env
#   line 5: --chdir=/nas/proj  the same directory must be on every node, and be allowed: a shared file system

job "torchrun-plain" {
  nodes      = 4     # line 2: --nodes=4
  time_limit = "24h" # line 6: --time=24:00:00

  distributed "pytorch" {}

  resources {
    cpu    = 64
    memory = "512GiB" # line 4: --mem=512G

    device "nvidia/gpu" {
      count = 8 # line 3: --gpus-per-node=8
    }
  }

  task {
    dir     = "/nas/proj"                                       # line 5: --chdir=/nas/proj
    command = "torchrun --nproc_per_node=8 train.py --epochs 3" # line 7: the script from here on
  }
}

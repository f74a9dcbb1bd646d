# From lightning.sbatch, a batch script of Slurm, by nomadlike job import. Read it before you run it.
#
# Changed:
#   mode pytorch: MASTER_ADDR, MASTER_PORT and torchrun's options are set on every node
#   line 4: --ntasks-per-node=8  tasks of a node: 8; what they are here, the distributed block and the launcher's
#       options say
#   line 5: --cpus-per-task=6  cores are counted by node: times 8 tasks
#   line 6: --mem-per-cpu=4G  memory is counted by node: times 48
#   line 7: --signal=SIGUSR1@90  every rank's command gets it, in Slurm the steps without the script: let the script
#       pass it on or exec the program
#   line 14: srun python -u train_lit.py --num_nodes 2 --devices 8  srun is gone: the line runs on every node by itself
#   line 14: srun python -u train_lit.py --num_nodes 2 --devices 8  Slurm started 8 of it on each node, torch's
#       launcher does now: RANK, LOCAL_RANK and WORLD_SIZE are set, SLURM_PROCID is not. For JAX use distributed "jax"
#       with rewrite = "procs", for --launcher slurm say pytorch
#
# To look at:
#   the whole script runs on every node at the same time, in Slurm on the first alone; what must happen once goes
#       behind: if [ "$NOMADLIKE_RANK" = 0 ]
#   Slurm starts in the directory of submission, on a shared file system. workdir = "." sends the files beside this job
#       file along; what the script writes there stays on its node: name an output, or use a shared path with dir in
#       task
#   sbatch hands over the environment of whoever submits; here the task has what this file says: put what the script
#       needs into env
#
# Without meaning here:
#   line 9: --requeue  always so here: after a lost node or preemption the job starts again, uncharged; for failures of
#       its own write restart { max_restarts = N }

job "lightning" {
  nodes   = 2 # line 2: --nodes=2
  workdir = "."

  time_limit {
    limit  = "8h"      # line 8: --time=0-08:00:00
    warn   = "1m30s"   # line 7: --signal=SIGUSR1@90
    signal = "SIGUSR1" # line 7: --signal=SIGUSR1@90
  }

  distributed "pytorch" {
    procs_per_node = 8
  }

  resources {
    cpu    = 48       # line 5: --cpus-per-task=6
    memory = "192GiB" # line 6: --mem-per-cpu=4G

    device "nvidia/gpu" {
      count = 8 # line 3: --gres=gpu:8
    }
  }

  task {
    # line 11: the script from here on
    command = <<SCRIPT
bash -l -c '
source activate lit
export NCCL_DEBUG=INFO
export PYTHONFAULTHANDLER=1
python -u -m torch.distributed.run --nproc_per_node=8 train_lit.py --num_nodes 2 --devices 8
'
SCRIPT
  }
}

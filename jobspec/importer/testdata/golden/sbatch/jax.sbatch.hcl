# From jax.sbatch, a batch script of Slurm, by nomadlike job import. Read it before you run it.
#
# Changed:
#   mode pytorch: MASTER_ADDR, MASTER_PORT and torchrun's options are set on every node
#   line 3: --ntasks-per-node=8  tasks of a node: 8; what they are here, the distributed block and the launcher's
#       options say
#   line 7: srun python -m maxtext.train configs/base.yml  srun is gone: the line runs on every node by itself
#   line 7: srun python -m maxtext.train configs/base.yml  Slurm started 8 of it on each node, torch's launcher does
#       now: RANK, LOCAL_RANK and WORLD_SIZE are set, SLURM_PROCID is not. For JAX use distributed "jax" with rewrite =
#       "procs", for --launcher slurm say pytorch
#
# To look at:
#   the script leaves cores to the site; cpu = 64 is a guess
#   the whole script runs on every node at the same time, in Slurm on the first alone; what must happen once goes
#       behind: if [ "$NOMADLIKE_RANK" = 0 ]
#   Slurm starts in the directory of submission, on a shared file system. workdir = "." sends the files beside this job
#       file along; what the script writes there stays on its node: name an output, or use a shared path with dir in
#       task
#   sbatch hands over the environment of whoever submits; here the task has what this file says: put what the script
#       needs into env

job "jax" {
  nodes      = 4     # line 2: --nodes=4
  time_limit = "12h" # line 6: --time=12:00:00
  workdir    = "."

  distributed "pytorch" {
    procs_per_node = 8
  }

  resources {
    cpu    = 64
    memory = "800GiB" # line 5: --mem=800G

    device "nvidia/gpu" {
      count = 8 # line 4: --gpus-per-node=8
    }
  }

  task {
    command = "python -m torch.distributed.run --nproc_per_node=8 -m maxtext.train configs/base.yml" # line 7: the script from here on
  }
}

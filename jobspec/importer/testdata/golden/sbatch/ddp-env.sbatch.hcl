# From ddp-env.sbatch, a batch script of Slurm, by nomadlike job import. Read it before you run it.
#
# Changed:
#   mode pytorch: MASTER_ADDR, MASTER_PORT and torchrun's options are set on every node
#   line 4: --ntasks-per-node=4  tasks of a node: 4; what they are here, the distributed block and the launcher's
#       options say
#   line 6: --cpus-per-task=8  cores are counted by node: times 4 tasks
#   line 10: export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)  NOMADLIKE_RANK_NAMES
#       lists the nodes; their names are those of ranks, which resolve inside of the job
#   line 10: export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)  MASTER_ADDR is set by the
#       system, with a port that is free
#   line 10: $SLURM_JOB_NODELIST  is $NOMADLIKE_RANK_NAMES
#   line 11: export MASTER_PORT=12355  MASTER_PORT is set by the system, with a port that is free
#   line 12: $SLURM_NNODES  is $NOMADLIKE_NODES
#   line 12: $SLURM_NTASKS_PER_NODE  4, set in front of the script and not exported
#   line 14: srun python main.py --epochs=100 --rank $SLURM_PROCID  srun is gone: the line runs on every node by itself
#   line 14: srun python main.py --epochs=100 --rank $SLURM_PROCID  Slurm started 4 of it on each node, torch's
#       launcher does now: RANK, LOCAL_RANK and WORLD_SIZE are set, SLURM_PROCID is not. For JAX use distributed "jax"
#       with rewrite = "procs", for --launcher slurm say pytorch
#   line 14: $SLURM_PROCID  is $NOMADLIKE_RANK
#
# To look at:
#   the whole script runs on every node at the same time, in Slurm on the first alone; what must happen once goes
#       behind: if [ "$NOMADLIKE_RANK" = 0 ]
#   Slurm starts in the directory of submission, on a shared file system. workdir = "." sends the files beside this job
#       file along; what the script writes there stays on its node: name an output, or use a shared path with dir in
#       task
#   sbatch hands over the environment of whoever submits; here the task has what this file says: put what the script
#       needs into env
#   line 14: $SLURM_PROCID  was the number of a process, and is that of the node where the script runs once on each:
#       the launcher has RANK and LOCAL_RANK

job "ddp" {         # line 2: --job-name=ddp
  nodes      = 2    # line 3: --nodes=2
  time_limit = "4h" # line 8: --time=04:00:00
  workdir    = "."

  distributed "pytorch" {
    procs_per_node = 4
  }

  resources {
    cpu    = 32       # line 6: --cpus-per-task=8
    memory = "100GiB" # line 7: --mem=100G

    device "nvidia/gpu" {
      count = 4 # line 5: --gpus-per-task=1
    }
  }

  task {
    # line 10: the script from here on
    command = <<SCRIPT
bash -c '
SLURM_NTASKS_PER_NODE=4
export MASTER_ADDR=$MASTER_ADDR
export MASTER_PORT=$MASTER_PORT
export WORLD_SIZE=$(($NOMADLIKE_NODES * $SLURM_NTASKS_PER_NODE))
echo "world $WORLD_SIZE"
python -m torch.distributed.run --nproc_per_node=4 main.py --epochs=100 --rank $NOMADLIKE_RANK
'
SCRIPT
  }
}

# From prep-then-train.sbatch, a batch script of Slurm, by nomadlike job import. Read it before you run it.
#
# Changed:
#   mode pytorch: MASTER_ADDR, MASTER_PORT and torchrun's options are set on every node
#   line 4: --ntasks-per-node=1  tasks of a node: 1; what they are here, the distributed block and the launcher's
#       options say
#   line 7: $SLURM_SUBMIT_DIR  is $NOMADLIKE_CODE_DIR
#   line 9: srun bash run_node.sh $SLURM_NODEID  srun is gone: the line runs on every node by itself
#   line 9: $SLURM_NODEID  is $NOMADLIKE_RANK
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
#   line 8: srun -N1 -n1 python prepare.py --out /nas/data  a step of one task: on rank 0 alone, and the other ranks do
#       not wait for it

job "prep-then-train" {
  nodes      = 2     # line 2: --nodes=2
  time_limit = "24h" # line 6: --time=1-0:0:0
  workdir    = "."

  distributed "pytorch" {}

  resources {
    cpu    = 64
    memory = "400GiB" # line 5: --mem=400G

    device "nvidia/gpu" {
      count = 8 # line 3: --gpus-per-node=8
    }
  }

  task {
    # line 7: the script from here on
    command = <<SCRIPT
bash -c '
mkdir -p $NOMADLIKE_CODE_DIR/runs
[ "$NOMADLIKE_RANK" != 0 ] || python prepare.py --out /nas/data
bash run_node.sh $NOMADLIKE_RANK
'
SCRIPT
  }
}

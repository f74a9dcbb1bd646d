# From nodelist.sbatch, a batch script of Slurm, by nomadlike job import. Read it before you run it.
#
# Not kept:
#   line 2: -p a800  nodes are named, so no pool is
#   line 3: --export=ALL,LR=0.1,WANDB_MODE=offline,HOME2=$HOME  HOME2: its value is not written here, or the system
#       sets it
#
# Changed:
#   mode pytorch: MASTER_ADDR, MASTER_PORT and torchrun's options are set on every node
#   line 7: srun --ntasks-per-node=1 python train.py  srun is gone: the line runs on every node by itself
#
# To look at:
#   the whole script runs on every node at the same time, in Slurm on the first alone; what must happen once goes
#       behind: if [ "$NOMADLIKE_RANK" = 0 ]
#   Slurm starts in the directory of submission, on a shared file system. workdir = "." sends the files beside this job
#       file along; what the script writes there stays on its node: name an output, or use a shared path with dir in
#       task
#   sbatch hands over the environment of whoever submits; here the task has what this file says: put what the script
#       needs into env
#   line 2: -w gpu[01-02]  on these nodes only; Slurm would take others beside them
#   line 3: --export=ALL,LR=0.1,WANDB_MODE=offline,HOME2=$HOME  Slurm does not replace variables in directives: this is
#       taken as it is written

job "nodelist" {
  nodes      = 2       # line 2: -N 2
  time_limit = "2m30s" # line 5: -t 2:30
  workdir    = "."

  distributed "pytorch" {
    rewrite = "none"
  }

  resources {
    cpu    = 1
    memory = "32GiB" # line 4: --mem=32G
  }

  placement {
    nodes          = ["gpu01", "gpu02"] # line 2: -w gpu[01-02]
    spread_or_pack = "spread"           # line 6: --spread-job
  }

  task {
    # line 3: --export=ALL,LR=0.1,WANDB_MODE=offline,HOME2=$HOME
    env = {
      LR         = "0.1"
      WANDB_MODE = "offline"
    }
    command = "python train.py" # line 7: the script from here on
  }
}

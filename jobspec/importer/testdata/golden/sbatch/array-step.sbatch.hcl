# From array-step.sbatch, a batch script of Slurm, by nomadlike job import. Read it before you run it.
#
# Changed:
#   line 6: $SLURM_ARRAY_TASK_COUNT  is $NOMADLIKE_SUBJOB_COUNT
#   line 6: $SLURM_ARRAY_TASK_MAX  21, set in front of the script and not exported
#
# To look at:
#   Slurm starts in the directory of submission, on a shared file system. workdir = "." sends the files beside this job
#       file along; what the script writes there stays on its node: name an output, or use a shared path with dir in
#       task
#   sbatch hands over the environment of whoever submits; here the task has what this file says: put what the script
#       needs into env

job "array-step" {
  type       = "batch" # line 2: --array=1-21:4
  time_limit = "30m"   # line 4: --time=30:00
  workdir    = "."

  batch {
    array = "1-21:4" # line 2: --array=1-21:4
  }

  resources {
    cpu    = 1
    memory = "4GiB" # line 3: --mem=4G
  }

  task {
    # line 5: the script from here on
    command = <<SCRIPT
sh -c '
SLURM_ARRAY_TASK_MAX=21
export SLURM_ARRAY_TASK_ID=$NOMADLIKE_ARRAY_ID
LR=$(sed -n "$${SLURM_ARRAY_TASK_ID}p" rates.txt)
./fit --rate "$LR" --of $NOMADLIKE_SUBJOB_COUNT --last $SLURM_ARRAY_TASK_MAX
'
SCRIPT
  }
}

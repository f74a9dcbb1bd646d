# From array-heredoc.sbatch, a batch script of Slurm, by nomadlike job import. Read it before you run it.
#
# To look at:
#   Slurm starts in the directory of submission, on a shared file system. workdir = "." sends the files beside this job
#       file along; what the script writes there stays on its node: name an output, or use a shared path with dir in
#       task
#   sbatch hands over the environment of whoever submits; here the task has what this file says: put what the script
#       needs into env
#   line 7: SLURM_JOB_ID  named without $: a program that reads it gets nothing here

job "array-heredoc" {
  type       = "batch" # line 2: --array=1-10
  time_limit = "1h"    # line 4: --time=01:00:00
  workdir    = "."

  batch {
    array = "1-10" # line 2: --array=1-10
  }

  resources {
    cpu    = 1
    memory = "8GiB" # line 3: --mem=8G
  }

  task {
    # line 5: the script from here on
    command = <<SCRIPT
bash -c '
export SLURM_ARRAY_TASK_ID=$NOMADLIKE_ARRAY_ID
python - <<'\''PY'\''
import os
print("task", os.environ["SLURM_ARRAY_TASK_ID"], "of job", os.environ["SLURM_JOB_ID"])
PY
'
SCRIPT
  }
}

# From python-script.sbatch, a batch script of Slurm, by nomadlike job import. Read it before you run it.
#
# Changed:
#   line 3: --time=10  a bare number of Slurm counts in minutes
#
# To look at:
#   Slurm starts in the directory of submission, on a shared file system. workdir = "." sends the files beside this job
#       file along; what the script writes there stays on its node: name an output, or use a shared path with dir in
#       task
#   sbatch hands over the environment of whoever submits; here the task has what this file says: put what the script
#       needs into env

job "py" {             # line 2: --job-name=py
  type       = "batch" # line 5: --array=0-3
  time_limit = "10m"   # line 3: --time=10
  workdir    = "."

  batch {
    array = "0-3" # line 5: --array=0-3
  }

  resources {
    cpu    = 1
    memory = "1GiB" # line 4: --mem=1G
  }

  task {
    # line 5: --array=0-3
    env = {
      SLURM_ARRAY_TASK_ID = "$NOMADLIKE_ARRAY_ID"
    }
    # line 6: the script from here on
    command = <<SCRIPT
python3 -c '
import os
print("it'\''s", os.environ.get("SLURM_ARRAY_TASK_ID"))
'
SCRIPT
  }
}

# From array-holes.sbatch, a batch script of Slurm, by nomadlike job import. Read it before you run it.
#
# To look at:
#   Slurm starts in the directory of submission, on a shared file system. workdir = "." sends the files beside this job
#       file along; what the script writes there stays on its node: name an output, or use a shared path with dir in
#       task
#   sbatch hands over the environment of whoever submits; here the task has what this file says: put what the script
#       needs into env

job "array-holes" {
  type       = "batch" # line 2: -a 0,6,16-18
  time_limit = "45m"   # line 4: --time 0:45:00
  workdir    = "."

  batch {
    array = "0,6,16-18" # line 2: -a 0,6,16-18
  }

  resources {
    cpu    = 1
    memory = "3GiB" # line 3: --mem-per-cpu 3G
  }

  task {
    # line 5: the script from here on
    command = <<SCRIPT
bash -c '
export SLURM_ARRAY_TASK_ID=$NOMADLIKE_ARRAY_ID
FILES=(data/*.csv)
python process.py "$${FILES[$SLURM_ARRAY_TASK_ID]}"
'
SCRIPT
  }
}

# From bom.sbatch, a batch script of Slurm, by nomadlike job import. Read it before you run it.
#
# Changed:
#   line 1: a byte order mark stood in front; it is left out
#
# To look at:
#   Slurm starts in the directory of submission, on a shared file system. workdir = "." sends the files beside this job
#       file along; what the script writes there stays on its node: name an output, or use a shared path with dir in
#       task
#   sbatch hands over the environment of whoever submits; here the task has what this file says: put what the script
#       needs into env

job "bom" {         # line 2: --job-name=bom
  time_limit = "1h" # line 3: --time=01:00:00
  workdir    = "."

  resources {
    cpu    = 1
    memory = "4GiB" # line 4: --mem=4G
  }

  task {
    command = "python train.py" # line 5: the script from here on
  }
}

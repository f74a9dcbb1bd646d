# From tcsh.sbatch, a batch script of Slurm, by nomadlike job import. Read it before you run it.
#
# To look at:
#   Slurm starts in the directory of submission, on a shared file system. workdir = "." sends the files beside this job
#       file along; what the script writes there stays on its node: name an output, or use a shared path with dir in
#       task
#   sbatch hands over the environment of whoever submits; here the task has what this file says: put what the script
#       needs into env

job "tcsh" {
  time_limit = "24h" # line 2: --time=1-0
  workdir    = "."

  resources {
    cpu    = 1
    memory = "1GiB" # line 3: --mem=1G
  }

  task {
    # line 4: the script from here on
    command = <<SCRIPT
tcsh -c '
setenv A 1
if ($A == 1) echo one
'
SCRIPT
  }
}

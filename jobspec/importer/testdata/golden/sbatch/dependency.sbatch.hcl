# From dependency.sbatch, a batch script of Slurm, by nomadlike job import. Read it before you run it.
#
# Not kept:
#   line 3: --dependency=afterok:81234:81235,afterany:prep  81234 is a number of Slurm: write after "NAME" { when =
#       "succeeded" } with the job's name here, or import with -job 81234=NAME
#   line 3: --dependency=afterok:81234:81235,afterany:prep  81235 is a number of Slurm: write after "NAME" { when =
#       "succeeded" } with the job's name here, or import with -job 81235=NAME
#
# To look at:
#   Slurm starts in the directory of submission, on a shared file system. workdir = "." sends the files beside this job
#       file along; what the script writes there stays on its node: name an output, or use a shared path with dir in
#       task
#   sbatch hands over the environment of whoever submits; here the task has what this file says: put what the script
#       needs into env

job "evaluate" {     # line 2: --job-name=evaluate
  time_limit = "30m" # line 6: --time=00:30:00
  begin      = "+2h" # line 4: --begin=now+2hours
  workdir    = "."

  after "prep" { # line 3: --dependency=afterok:81234:81235,afterany:prep
    when = "ended"
  }

  resources {
    cpu    = 1
    memory = "8GiB" # line 5: --mem=8G
  }

  task {
    command = "python evaluate.py" # line 7: the script from here on
  }
}

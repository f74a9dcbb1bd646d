# From singleton.sbatch, a batch script of Slurm, by nomadlike job import. Read it before you run it.
#
# Not kept:
#   line 3: --dependency=singleton  one job of a name at a time cannot be said; after "NAME" { when = "ended" } waits
#       for one
#
# Changed:
#   line 7: --time=15  a bare number of Slurm counts in minutes
#
# To look at:
#   Slurm starts in the directory of submission, on a shared file system. workdir = "." sends the files beside this job
#       file along; what the script writes there stays on its node: name an output, or use a shared path with dir in
#       task
#   sbatch hands over the environment of whoever submits; here the task has what this file says: put what the script
#       needs into env

job "nightly" {                      # line 2: --job-name=nightly
  time_limit = "15m"                 # line 7: --time=15
  begin      = "00:00"               # line 4: --begin=midnight
  deadline   = "2030-01-31T08:00:00" # line 5: --deadline=2030-01-31T08:00:00
  workdir    = "."

  resources {
    cpu    = 1
    memory = "1GiB" # line 6: --mem=1G
  }

  task {
    # line 8: the script from here on
    command = <<SCRIPT
bash -c '
./nightly.sh > nightly.log
'
SCRIPT
  }
}

# From hello.sh, a batch script of Slurm, by nomadlike job import. Read it before you run it.
#
# Changed:
#   line 3: -t 5  a bare number of Slurm counts in minutes
#   line 4: -n 1  tasks of a node: 1; what they are here, the distributed block and the launcher's options say
#
# To look at:
#   Slurm starts in the directory of submission, on a shared file system. workdir = "." sends the files beside this job
#       file along; what the script writes there stays on its node: name an output, or use a shared path with dir in
#       task
#   sbatch hands over the environment of whoever submits; here the task has what this file says: put what the script
#       needs into env

job "hello" {       # line 2: -J hello
  time_limit = "5m" # line 3: -t 5
  workdir    = "."

  resources {
    cpu    = 1
    memory = "2GiB" # line 5: --mem=2G
  }

  task {
    command = "python3 hello.py" # line 6: the script from here on
  }
}

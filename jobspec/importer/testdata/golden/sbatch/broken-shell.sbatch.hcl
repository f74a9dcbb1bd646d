# From broken-shell.sbatch, a batch script of Slurm, by nomadlike job import. Read it before you run it.
#
# Changed:
#   mode mpi: the script runs on rank 0, mpirun and ssh reach the others through the agents
#   line 2: --time=60  a bare number of Slurm counts in minutes
#
# To look at:
#   nothing fans out: as in Slurm the script runs on the first node alone (mode mpi); the other nodes hold their place,
#       and ssh NAME reaches them
#   Slurm starts in the directory of submission, on a shared file system. workdir = "." sends the files beside this job
#       file along; what the script writes there stays on its node: name an output, or use a shared path with dir in
#       task
#   sbatch hands over the environment of whoever submits; here the task has what this file says: put what the script
#       needs into env
#   line 1: the script cannot be read as bash (5:1: `if` statement must end with `fi`), so its lines are as they were:
#       srun and other commands of Slurm are to be taken out by hand

job "broken-shell" {
  nodes      = 2    # line 4: --nodes=2
  time_limit = "1h" # line 2: --time=60
  workdir    = "."

  distributed "mpi" {
    rewrite = "none"
  }

  resources {
    cpu    = 1
    memory = "1GiB" # line 3: --mem=1G
  }

  task {
    # line 5: the script from here on
    command = <<SCRIPT
bash -c '
if [ -f x ]; then
  srun ./a
'
SCRIPT
  }
}

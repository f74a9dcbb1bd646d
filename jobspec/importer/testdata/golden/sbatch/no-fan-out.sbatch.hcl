# From no-fan-out.sbatch, a batch script of Slurm, by nomadlike job import. Read it before you run it.
#
# Changed:
#   mode mpi: the script runs on rank 0, mpirun and ssh reach the others through the agents
#   line 6: $SLURM_JOB_NODELIST  is $NOMADLIKE_RANK_NAMES
#
# To look at:
#   nothing fans out: as in Slurm the script runs on the first node alone (mode mpi); the other nodes hold their place,
#       and ssh NAME reaches them
#   Slurm starts in the directory of submission, on a shared file system. workdir = "." sends the files beside this job
#       file along; what the script writes there stays on its node: name an output, or use a shared path with dir in
#       task
#   sbatch hands over the environment of whoever submits; here the task has what this file says: put what the script
#       needs into env

job "no-fan-out" {
  nodes      = 2     # line 2: --nodes=2
  time_limit = "10m" # line 4: --time=10:00
  workdir    = "."

  distributed "mpi" {
    rewrite = "none"
  }

  resources {
    cpu    = 1
    memory = "10GiB" # line 3: --mem=10G
  }

  task {
    # line 5: the script from here on
    command = <<SCRIPT
bash -c '
hostname
./driver --hosts "$NOMADLIKE_RANK_NAMES"
'
SCRIPT
  }
}

# From srun-mpi.sbatch, a batch script of Slurm, by nomadlike job import. Read it before you run it.
#
# Not kept:
#   line 5: --mem=0  all memory of a node cannot be said; 512GiB is a guess
#
# Changed:
#   mode mpi: the script runs on rank 0, mpirun and ssh reach the others through the agents
#   modules need what a login shell sets up: the script has one
#   line 3: --ntasks-per-node=64  tasks of a node: 64; what they are here, the distributed block and the launcher's
#       options say
#   line 4: --cpus-per-task=2  cores are counted by node: times 64 tasks
#   line 9: $SLURM_CPUS_PER_TASK  2, set in front of the script and not exported
#   line 10: srun --mpi=pmi2 --cpu-bind=cores ./lmp -in in.lj  mpirun in the place of srun: MPI has to be installed on
#       the nodes; ranks are in OMPI_COMM_WORLD_RANK or PMI_RANK, not SLURM_PROCID
#
# To look at:
#   Slurm starts in the directory of submission, on a shared file system. workdir = "." sends the files beside this job
#       file along; what the script writes there stays on its node: name an output, or use a shared path with dir in
#       task
#   sbatch hands over the environment of whoever submits; here the task has what this file says: put what the script
#       needs into env
#   line 7: -p compute  is there a pool compute? nomadlike pool list
#   line 8: ml load intel impi  kept: the modules must be on the nodes, or their contents in an image
#
# Without meaning here:
#   line 10: srun --mpi=pmi2 --cpu-bind=cores ./lmp -in in.lj  --cpu-bind of srun

job "srun-mpi" {
  nodes      = 2     # line 2: -N 2
  time_limit = "24h" # line 6: -t 1-00:00:00
  workdir    = "."

  distributed "mpi" {
    procs_per_node = 64
  }

  resources {
    cpu    = 128      # line 4: --cpus-per-task=2
    memory = "512GiB" # line 5: --mem=0
  }

  placement {
    pool = "compute" # line 7: -p compute
  }

  task {
    # line 8: the script from here on
    command = <<SCRIPT
bash -l -c '
SLURM_CPUS_PER_TASK=2
ml load intel impi
export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
mpirun -np 128 --bind-to none ./lmp -in in.lj
'
SCRIPT
  }
}

# From mpirun.sbatch, a batch script of Slurm, by nomadlike job import. Read it before you run it.
#
# Changed:
#   mode mpi: the script runs on rank 0, mpirun and ssh reach the others through the agents
#   modules need what a login shell sets up: the script has one
#   line 4: --ntasks-per-node=32  tasks of a node: 32; what they are here, the distributed block and the launcher's
#       options say
#   line 5: --mem-per-cpu=2000M  memory is counted by node: times 32
#   line 9: $SLURM_NTASKS  128, set in front of the script and not exported
#
# To look at:
#   Slurm starts in the directory of submission, on a shared file system. workdir = "." sends the files beside this job
#       file along; what the script writes there stays on its node: name an output, or use a shared path with dir in
#       task
#   sbatch hands over the environment of whoever submits; here the task has what this file says: put what the script
#       needs into env
#   line 7: module purge  kept: the modules must be on the nodes, or their contents in an image
#   line 8: module load gcc/11 openmpi/4.1  kept: the modules must be on the nodes, or their contents in an image
#   line 9: mpirun -np $SLURM_NTASKS ./hydro input.nml  kept: its hosts, slots and remote shell come from the
#       environment; take out a host file of your own

job "hydro" {       # line 2: --job-name=hydro
  nodes      = 4    # line 3: --nodes=4
  time_limit = "6h" # line 6: --time=06:00:00
  workdir    = "."

  distributed "mpi" {
    procs_per_node = 32
  }

  resources {
    cpu    = 32
    memory = "64000MiB" # line 5: --mem-per-cpu=2000M
  }

  task {
    # line 7: the script from here on
    command = <<SCRIPT
bash -l -c '
SLURM_NTASKS=128
module purge
module load gcc/11 openmpi/4.1
mpirun -np $SLURM_NTASKS ./hydro input.nml
'
SCRIPT
  }
}

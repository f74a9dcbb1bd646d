# From repeated.sbatch, a batch script of Slurm, by nomadlike job import. Read it before you run it.
#
# Not kept:
#   line 3: --nodes=1-4  1 to 4 nodes: 4 are asked for; to run on fewer write elastic { min_nodes = 1 } with a
#       checkpoint block
#   line 6: --mem-per-cpu=2G  memory was said already by another directive
#   line 9: srun --pty bash  nothing is interactive in a job; nomadlike job exec -t NAME bash while it runs
#
# Changed:
#   mode mpi: the script runs on rank 0, mpirun and ssh reach the others through the agents
#   line 8: --ntasks-per-node=2  tasks of a node: 2; what they are here, the distributed block and the launcher's
#       options say
#   line 10: srun $LAUNCH train.py  mpirun in the place of srun: MPI has to be installed on the nodes; ranks are in
#       OMPI_COMM_WORLD_RANK or PMI_RANK, not SLURM_PROCID
#
# To look at:
#   Slurm starts in the directory of submission, on a shared file system. workdir = "." sends the files beside this job
#       file along; what the script writes there stays on its node: name an output, or use a shared path with dir in
#       task
#   sbatch hands over the environment of whoever submits; here the task has what this file says: put what the script
#       needs into env
#   line 7: --ntasks=9  differs from nodes times tasks of a node, which is 8 and used
#
# Without meaning here:
#   line 2: --time=1:00:00  line 4 says it again, and counts

job "repeated" {
  nodes      = 4    # line 3: --nodes=1-4
  time_limit = "2h" # line 4: --time=2:00:00
  workdir    = "."

  distributed "mpi" {
    procs_per_node = 2
  }

  resources {
    cpu    = 2
    memory = "4GiB" # line 5: --mem=4G
  }

  task {
    # line 9: the script from here on
    command = <<SCRIPT
bash -c '
: srun --pty bash
mpirun -np 8 --bind-to none $LAUNCH train.py
'
SCRIPT
  }
}

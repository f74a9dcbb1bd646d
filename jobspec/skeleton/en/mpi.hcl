# MPI over several nodes: Open MPI 4 and 5, and MPICH. The command runs on the
# first node; mpirun reaches the others through nomadlike, without sshd and
# without keys. The host file is set already, so no -H and no -hostfile.
#
#   nomadlike job run mpi.hcl

job "mpi" {
  nodes   = 2
  workdir = "." # this directory goes along, and is where the command starts

  resources {
    cpu    = 2
    memory = "2GiB"
  }

  distributed "mpi" {
    procs_per_node = 2 # slots of each node; left out: one for each device
  }

  task {
    command = "mpirun -np 4 ./my_program"
  }
}

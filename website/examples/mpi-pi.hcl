# MPI over several nodes without sshd: mpirun reaches the other ranks through
# the agents. Works with Open MPI 4 and 5 and with MPICH:
#
#   nomadlike job run mpi-pi.hcl                                  (Open MPI, mpi4py)
#   nomadlike job run -var 'command=mpiexec.hydra -n 3 ./mpi_pi.mpich' mpi-pi.hcl

variable "examples" {
  description = "directory that holds mpi_pi.py on every node"
  default     = "/usr/share/nomadlike/examples"
}

variable "command" {
  description = "what rank 0 runs; empty: mpi_pi.py by Open MPI"
  default     = ""
}

job "mpi-pi" {
  nodes = 3

  resources {
    cpu    = 0.5
    memory = "256MiB"
  }

  distributed "mpi" {}

  task {
    command = var.command != "" ? var.command : "mpirun.openmpi -n 3 /usr/bin/python3 ${var.examples}/mpi_pi.py"
  }
}

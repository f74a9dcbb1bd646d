# Horovod: the command is started by mpirun with one process for each slot of
# every node; the ranks are reached through the agents, without sshd.
variable "examples" {
  description = "directory that holds mpi_pi.py on every node"
  default     = "/usr/share/nomadlike/examples"
}

job "horovod" {
  nodes = 3

  resources {
    cpu    = 0.5
    memory = "256MiB"
  }

  distributed "horovod" {
    procs_per_node = 1
  }

  task {
    command = "/usr/bin/python3 ${var.examples}/mpi_pi.py"
  }
}

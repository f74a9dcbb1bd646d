# JAX over several nodes: jax.distributed.initialize() needs no arguments, the
# coordinator's address, the number of processes and the own number are in the
# environment.
variable "examples" {
  description = "directory that holds meet.py on every node"
  default     = "/usr/share/nomadlike/examples"
}

job "jax" {
  nodes = 3

  resources {
    cpu    = 0.5
    memory = "256MiB"
  }

  distributed "jax" {}

  task {
    command = "/usr/bin/python3 ${var.examples}/meet.py"
  }
}

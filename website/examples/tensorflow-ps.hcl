# TensorFlow with parameter servers: they stand beside the workers, with one core
# and one GiB each, and serve until the last worker is done.
variable "examples" {
  description = "directory that holds tensorflow_ps.py on every node"
  default     = "/usr/share/nomadlike/examples"
}

variable "steps" {
  description = "steps of each worker"
  default     = 400
}

variable "servers" {
  default = 2
}

job "tensorflow-ps" {
  nodes = 3

  resources {
    cpu    = 0.5
    memory = "256MiB"
  }

  distributed "tensorflow" {
    parameter_servers = var.servers
    chief             = true
  }

  restart {
    max_restarts = 1
  }

  task {
    command = "/usr/bin/python3 ${var.examples}/tensorflow_ps.py ${var.steps}"
  }
}

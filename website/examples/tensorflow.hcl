# TensorFlow's MultiWorkerMirroredStrategy: TF_CONFIG names every worker and the
# own place. With chief = true rank 0 is the chief.
variable "examples" {
  description = "directory that holds meet.py on every node"
  default     = "/usr/share/nomadlike/examples"
}

job "tensorflow" {
  nodes = 3

  resources {
    cpu    = 0.5
    memory = "256MiB"
  }

  distributed "tensorflow" {
    chief = true
  }

  task {
    command = "/usr/bin/python3 ${var.examples}/meet.py"
  }
}

# MindSpore on several nodes without accelerators: the scheduler's address, the
# number of workers and the own node's rank are in the environment. On nodes
# with Ascend cards a rank table is written as well; rank_table chooses its
# format.
variable "examples" {
  description = "directory that holds meet.py on every node"
  default     = "/usr/share/nomadlike/examples"
}

job "mindspore" {
  nodes = 3

  resources {
    cpu    = 0.5
    memory = "256MiB"
  }

  distributed "mindspore" {}

  task {
    command = "/usr/bin/python3 ${var.examples}/meet.py"
  }
}

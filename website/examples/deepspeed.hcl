# DeepSpeed without ssh: every rank starts its own launcher, which finds rank 0
# by name. The hostfile, the node's rank and the address are put into the
# command that you write.
variable "launcher" {
  description = "the deepspeed program"
  default     = "deepspeed"
}

variable "script" {
  description = "what it runs, on every node"
  default     = "/usr/share/nomadlike/examples/meet.py"
}

job "deepspeed" {
  nodes = 3

  resources {
    cpu    = 0.5
    memory = "256MiB"
  }

  distributed "deepspeed" {
    procs_per_node = 2
  }

  task {
    command = "${var.launcher} ${var.script}"
  }
}

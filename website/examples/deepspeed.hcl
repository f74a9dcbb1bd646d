# DeepSpeed: rank 0 launches, and its ssh and pdsh reach the other ranks through
# the agents, so the image needs neither of them, no sshd and no keys. The
# hostfile is at /job/hostfile, where deepspeed looks by itself.
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

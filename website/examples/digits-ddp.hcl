# Real distributed training: three nodes learn handwritten digits together.
# A rank that fails, or a node that is lost, starts the gang again as the next
# attempt, which goes on from the newest checkpoint.

variable "examples" {
  description = "directory that holds digits_ddp.py on every node"
  default     = "/usr/share/nomadlike/examples"
}

variable "checkpoints" {
  description = "directory that every node sees, for instance on NFS"
  default     = "/tmp/nomadlike-digits"
}

variable "epochs" {
  default = 20
}

job "digits-ddp" {
  nodes = 3

  resources {
    cpu    = 0.5
    memory = "768MiB"
  }

  distributed "pytorch" {
    rewrite = "none" # the script reads MASTER_ADDR, RANK and WORLD_SIZE itself
  }

  task {
    driver  = "exec"
    command = "/usr/bin/python3 ${var.examples}/digits_ddp.py --epochs ${var.epochs} --checkpoints ${var.checkpoints}"
  }

  restart {
    max_restarts = 3
  }
  stop_grace = "5s"
}

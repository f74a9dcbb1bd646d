# torchrun's own elastic range: the gang starts on three nodes, or on two when no
# more are free. When one is lost, torchrun gathers the others again and goes on from
# the newest checkpoint of the script, within the same attempt. Rank 0 holds the store
# at which they meet: without it, or with fewer than min_nodes, the gang starts again
# as usual. When there is room for three again, the whole gang starts anew on them, if
# what is left to run is worth that.
#
# torchrun looks for the others when one of its processes fails. A machine that
# vanishes closes no connection, so the script must not wait for it for long:
# PyTorch's own timeout is 10 to 30 minutes.

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

variable "expected" {
  description = "how long you think that it runs: a short job does not start anew to grow"
  default     = "2h"
}

job "torchrun-range" {
  nodes            = 3
  expected_runtime = var.expected

  resources {
    cpu    = 0.5
    memory = "768MiB"
  }

  distributed "pytorch" {}
  elastic {
    min_nodes = 2
    by        = "torchrun"
  }

  task {
    driver  = "exec"
    command = "python3 ${var.examples}/digits_ddp.py --epochs ${var.epochs} --checkpoints ${var.checkpoints} --timeout 20"
    env = {
      PET_MAX_RESTARTS = "5" # how often torchrun starts processes that failed by themselves

      # torchrun of PyTorch 1.13 breaks under Python 3.11 unless the first two are
      # set, and then keeps what it passes on to itself without the third.
      PET_REDIRECTS    = "1"
      PET_TEE          = "1"
      PYTHONUNBUFFERED = "1"
    }
  }

  restart {
    max_restarts = 1
  }
  stop_grace = "5s"
}

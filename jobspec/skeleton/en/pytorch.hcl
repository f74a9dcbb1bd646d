# A distributed PyTorch training over several nodes. All of them start
# together; when one fails, the job starts again as its next attempt.
#
#   nomadlike job run -var epochs=10 pytorch.hcl

variable "epochs" {
  description = "how often the data are gone over"
  default     = 5
}

job "pytorch" {
  nodes      = 2
  time_limit = "48h"
  workdir    = "." # this directory goes along, and is where the command starts

  # expected_runtime = "6h"          # helps the queue forecast

  resources {
    cpu    = 4
    memory = "8GiB"

    # device "nvidia/gpu" { count = 8, model = "A800" }
  }

  # On every node MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE and all PET_* are
  # set, so torchrun needs no options. The rewriting of "python train.py":
  #   "launch"    python -m torch.distributed.launch … train.py (the default)
  #   "torchrun"  torchrun … train.py
  #   "none"      as it is written here
  distributed "pytorch" {
    rewrite = "torchrun"

    # procs_per_node = 8             # left out: one for each device
    # world_size     = "procs"       # what WORLD_SIZE counts: "nodes" or "procs"
  }

  task {
    command = "python3 train.py --epochs ${var.epochs}"
    # dir   = "/data/project"
    env = {
      OMP_NUM_THREADS = 1
    }
  }

  restart {
    max_restarts = 3
    delay        = "10s"
  }
  stop_grace = "1m" # from the stop signal to the kill: time to save
}

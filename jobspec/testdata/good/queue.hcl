# Everything that the queue looks at: alternatives, pools, elastic sizes.
job "resnet50" {
  project          = "vision"
  priority         = "urgent"
  preemptible      = true
  time_limit       = "48h"
  expected_runtime = "6h30m"
  nodes            = 4

  resources "a-or-h" {
    cpu    = 32
    memory = "256GiB"
    rdma   = true
    device "nvidia/gpu" {
      count  = "all"
      models = ["A800", "H800"]
    }
  }
  resources "910b" {
    sku = 8
    device "huawei/npu" {
      count  = 8
      model  = "910B"
      memory = "32GiB"
    }
  }

  placement {
    pool           = "big"
    driver_version = ">= 535"
    spread_or_pack = "pack"
  }

  elastic {
    min_nodes    = 2
    allow_resize = true
  }
  checkpoint {
    max_resumes = 5
    signal      = "SIGUSR1"
    grace       = "5m"
  }

  task {
    command = "python3 train.py"
  }
}

# Two units of the pool's SKU on each of four nodes with RDMA between them.
job "in-a-pool" {
  priority = "urgent"
  nodes    = 4

  placement {
    pool = "a800"
  }

  resources {
    sku  = 2
    rdma = true
  }

  distributed "pytorch" {}

  task {
    command = "python3 train.py"
  }
}

job "messy" {
  nodes       = 2 # how many
  description = "as it is:   ${upper("a")}"
  resources {
    cpu    = 2
    memory = "2GiB"
    device "nvidia/gpu" {
      count = 8
      model = "A800"
    }
  }
  elastic { min_nodes = 1 }

  task {
    command = "true"
    env = { A = 1,
    LONGER = 2 }
    /* a comment */
  }
}

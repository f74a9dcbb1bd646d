job "values" {
  nodes      = "two"
  priority   = ["normal"]
  time_limit = 48
  stop_grace = "5 parsecs"
  ssh        = "perhaps"
  expected_runtime = true
  resources "a" {
    cpu    = 0
    memory = 512
    device "nvidia/gpu" {
      count  = 1.5
      memory = "80GB"
      ids    = "0"
    }
    port "http" {
      static = 1e30
    }
  }
  resources "b" {
    memory = "2 apples"
    shared_memory = {}
  }
  placement {
    nodes = ["a", null]
  }
  task {
    command = "true"
    env     = ["A=1"]
  }
  meta = { list = [1] }
}

# Several specs, all equally welcome: the first that can start wins. The
# forecast says "now" when any one of them can start now.
job "either-card" {
  nodes            = 2
  time_limit       = "12h"
  expected_runtime = "3h"

  resources "a800" {
    cpu    = 16
    memory = "128GiB"
    device "nvidia/gpu" {
      count  = 8
      models = ["A800", "H800"]
    }
  }
  resources "910b" {
    cpu    = 24
    memory = "192GiB"
    device "huawei/npu" {
      count = 8
      model = "910B"
    }
  }

  distributed "pytorch" {}

  task {
    command = "python3 train.py"
  }
}

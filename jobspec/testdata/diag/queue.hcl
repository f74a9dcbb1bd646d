job "q" {
  preemptible = true
  nodes       = 3
  resources {
    device "nvidia/gpu" {
      count  = "some"
      model  = "A800"
      models = ["H800", ""]
    }
    device "huawei/npu" {
      count = "all"
      ids   = ["0"]
    }
  }
  vip {
    machine "gpu-01" { busy = "murder" }
    machine "gpu-01" {}
    machine "-x" {}
  }
  placement {
    nodes = ["a", "b", "c"]
  }
  task {
    command = "true"
  }
}
job2 = 1
machine "x" {}

client {
  enabled  = true
  topology = ["room 1", ""]

  device "gpu" {
    count = 8
  }
  device "nvidia/gpu" {
    model = "A800"
  }
  device "nvidia/gpu" {
    count  = 2
    ids    = ["GPU-0", "GPU-1"]
    memory = "80GB"
    numa   = -1
  }
  device "huawei/npu" {
    ids   = ["npu 0", "npu-1"]
    attrs = { "env.X" = "1" }
    env   = { "A B" = "1" }
  }
  device "huawei/npu" {
    ids = ["npu-1"]
  }
  device "huawei/npu" {
    count = 5000
  }
}

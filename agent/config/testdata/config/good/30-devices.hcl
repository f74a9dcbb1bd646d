client {
  topology = ["room-1", "rack-07", "leaf-3"]
  rdma     = true
  nccl_debug = "WARN"
  guard_rendezvous = false
  env_file   = "testdata/env/cann.env"

  device "nvidia/gpu" {
    count          = 2
    model          = "NVIDIA A800-SXM4-80GB"
    memory         = "80GiB"
    link_group     = "nvlink-0"
    driver_version = "535.161.08"
    env            = { CUDA_VISIBLE_DEVICES = "{index}" }
  }
  device "nvidia/gpu" {
    ids        = ["GPU-77", "GPU-78"]
    model      = "NVIDIA A800-SXM4-80GB"
    memory     = "80GiB"
    numa       = 1
    link_group = "nvlink-1"
    attrs      = { serial = "s1" }
    env        = { CUDA_VISIBLE_DEVICES = "{id}" }
  }
}

plugin "nvidia" {
  config = {
    poll  = "2s"
    share = [{ cards = ["0"], how = "time-slice", parts = 4 }]
  }
}

plugin "ascend" {
  enabled = false
}

plugin "tpu" {
  type   = "device"
  config = { path = "/dev/accel" }
}

# Sixteen machines with eight cards each, shared fairly.
pool "a800" {
  description = "A800 machines of room 2"
  nodes       = ["gpu-01", "gpu-02"]
  constraints = { "gpu.model" = "A800|A100" }
  dedicated   = true
  rdma        = true
  raw         = true
  order       = "fair"
  half_life   = "72h"
  age_weight  = 1.5

  sku {
    cpu    = 15
    memory = "120GiB"
    device "nvidia/gpu" {
      count = 1
      model = "A800"
    }
  }
  defaults {
    time_limit = "24h"
    priority   = "normal"
  }
  ceilings {
    time_limit  = "240h"
    nodes       = 16
    devices     = 128
    max_resumes = 20
    grace       = "10m"

    no_checkpoint = true
  }
}

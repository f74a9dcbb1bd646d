# What the reference page shows as the example of each argument.
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

  exec {
    root     = true
    users    = { li = "li" }
    projects = { vision = "vision-train" }
  }
  sku {
    cpu    = 15
    memory = "120GiB"
    device "nvidia/gpu" {
      count  = 1
      model  = "A800"
      models = ["A800", "H800"]
      memory = "80GiB"
      ids    = ["0", "1"]
    }
  }
  defaults {
    time_limit = "24h"
    priority   = "normal"
    hold       = "2h"
    env        = { HF_HOME = "/nas/hf" }
    arguments  = "conf/wide.yaml"
  }
  floors {
    sku     = 4
    cpu     = 16
    memory  = "64GiB"
    devices = 4
  }
  ceilings {
    time_limit    = "240h"
    nodes         = 16
    devices       = 128
    max_resumes   = 20
    grace         = "10m"
    hold          = "8h"
    no_checkpoint = true
  }
}

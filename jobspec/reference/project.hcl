# What the reference page shows as the example of each argument.
project "vision" {
  description  = "camera group"
  members      = ["li", "wang"]
  admins       = ["zhang"]
  viewers      = ["chen"]
  weight       = 2
  urgent_limit = 3
  no_sharing   = true
  data_quota   = "2TiB"
  code_max     = "2GiB"

  quota "nvidia/gpu" {
    model      = "A800"
    guaranteed = 16
    maximum    = 32
  }
  defaults {
    pool           = "h800"
    priority       = "normal"
    time_limit     = "24h"
    image          = "registry.lab/torch:2.9"
    output_storage = "nas"
    env            = { HF_HOME = "/nas/hf" }
    arguments      = "conf/wide.yaml"
    notify {
      on = ["failed"]
      to = "team"
    }
  }
  ceilings {
    time_limit    = "7d"
    nodes         = 4
    devices       = 32
    max_resumes   = 5
    grace         = "5m"
    hold          = "4h"
    no_checkpoint = false
  }
}

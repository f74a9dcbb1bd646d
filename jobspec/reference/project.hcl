# What the reference page shows as the example of each argument.
project "vision" {
  description  = "camera group"
  members      = ["li", "wang"]
  admins       = ["zhang"]
  viewers      = ["chen"]
  weight       = 2
  urgent_limit = 3

  quota "nvidia/gpu" {
    model      = "A800"
    guaranteed = 16
    maximum    = 32
  }
  defaults {
    env       = { HF_HOME = "/nas/hf" }
    arguments = "conf/wide.yaml"
  }
}

project "vision" {
  description  = "camera group"
  members      = ["li", "wang"]
  weight       = 2
  urgent_limit = 0

  quota "nvidia/gpu" {
    model      = "A800"
    guaranteed = 16
    maximum    = 32
  }
  quota "cpu" {
    maximum = 512
  }
}

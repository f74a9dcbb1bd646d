project "vision" {
  urgent_limit = -1
  quota "gpu" {
    guaranteed = 4
    maximum    = 2
  }
  quota "cpu" {
    model = "A800"
  }
}

job "escape" {
  descr[31miption = "a"
  priority = "[2J‮high"
}

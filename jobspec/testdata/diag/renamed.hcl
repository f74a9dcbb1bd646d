job "digits" {
  resources {
    cpu    = 1
    memory = "1GiB"
  }
  task { command = "true" }
  throttle { keep = "500ms" }
}

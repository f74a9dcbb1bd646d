job "unlimited" {
  time_limit {
    warn = "5m"
  }
  task {
    command = "python3 train.py"
  }
}

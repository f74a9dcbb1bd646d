job "early" {
  time_limit {
    limit  = "4m"
    warn   = "5m"
    signal = "SIGKILL"
  }
  task {
    command = "python3 train.py"
  }
}

# A signal before the end.
job "warned" {
  time_limit {
    limit  = "4h"
    warn   = "5m"
    signal = "SIGUSR2"
  }
  task {
    command = "python3 train.py"
  }
}

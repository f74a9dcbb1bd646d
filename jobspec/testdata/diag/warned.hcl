job "warned" {
  time_limit = "4h"
  time_limit {
    warn   = "4h"
    signal = "SIGKILL"
    before = "5m"
  }
  task {
    command = "python3 train.py"
  }
}

# A training that has an accident half way and goes on from its newest
# checkpoint. What it saves must lie where every node can read it and tasks may
# write: a storage, or a shared directory that client { exec { writable } } of
# the nodes names, as the program. /tmp is each attempt's own.
variable "directory" { default = "/shared/checkpoints" }
variable "program" { default = "/shared/examples/checkpoint_train.py" }

job "checkpoint" {
  resources {
    cpu    = 0.5
    memory = "128MiB"
  }

  time_limit {
    limit  = "1h"
    warn   = "5m" # so long before it: save and go on
    signal = "SIGUSR2"
  }

  checkpoint {
    max_resumes = 5
    precheck    = true
    signal      = "SIGUSR1" # before every end: save and leave
    grace       = "1m"
  }

  task {
    command = "python3 ${var.program} ${var.directory} 100"
  }
}

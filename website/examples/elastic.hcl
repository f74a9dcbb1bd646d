# Runs with what is free: between two and four nodes. It starts small instead
# of waiting, and grows when nodes come free and the gain is worth a restart.
# Before every restart its ranks get SIGUSR1 and five minutes to save.
job "elastic" {
  nodes       = 4
  preemptible = true

  resources {
    cpu    = 1
    memory = "1GiB"
  }

  distributed "pytorch" {
    rewrite = "none"
  }

  elastic {
    min_nodes    = 2
    allow_resize = true
  }
  checkpoint {
    max_resumes = 10
    signal      = "SIGUSR1"
    grace       = "5m"
  }

  task {
    command = "python3 train.py"
  }
}

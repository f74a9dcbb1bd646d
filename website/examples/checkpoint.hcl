# A training that has an accident half way and goes on from its newest
# checkpoint. What it saves must lie where every node can read it.
variable "directory" { default = "/tmp/nomadlike-checkpoints" }
variable "program" { default = "website/examples/checkpoint_train.py" }

job "checkpoint" {
  resources {
    cpu    = 0.5
    memory = "128MiB"
  }

  checkpoint {
    max_resumes = 5
    precheck    = true
    signal      = "SIGUSR1" # before the node is taken away: save and leave
    grace       = "1m"
  }

  task {
    command = "python3 ${var.program} ${var.directory} 100"
  }
}

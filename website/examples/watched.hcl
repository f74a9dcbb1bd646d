# A training that is watched: when its log says that it is slow, or when it
# stands still, all ranks save and the gang starts again on other nodes.
job "watched" {
  resources {
    cpu    = 0.5
    memory = "128MiB"
  }

  checkpoint {
    max_resumes = 3
    grace       = "1m"
    performance {
      threshold = 0.9
      pattern   = "hardware time is ([0-9.]+) and e2e time is ([0-9.]+)"
      times     = 3
      action    = "reschedule"
    }
  }

  hang {
    action = "reschedule"
    factor = 10
    least  = "1m"
    most   = "20m"
  }

  task {
    command = <<-EOT
      sh -c "for i in 1 2 3 4 5; do echo step $i: this iteration hardware time is 2201.5 and e2e time is 3317.8 ms.; sleep 1; done"
    EOT
  }
}

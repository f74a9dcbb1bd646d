# The smallest job: one process on one node.
job "hello" {
  resources {
    cpu    = 0.1
    memory = "32MiB"
  }
  task {
    command = "echo hello from nomadlike"
  }
}

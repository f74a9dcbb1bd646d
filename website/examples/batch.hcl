# Eight independent subjobs under one name; each finds its index in
# NOMADLIKE_SUBJOB_INDEX.
job "sweep" {
  type = "batch"

  batch {
    count = 8
  }
  resources {
    cpu    = 0.1
    memory = "32MiB"
  }
  task {
    command = "sh -c 'echo subjob $NOMADLIKE_SUBJOB_INDEX of $NOMADLIKE_SUBJOB_COUNT'"
  }
}

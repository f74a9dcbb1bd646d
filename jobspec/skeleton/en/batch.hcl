# Many independent subjobs under one name, told apart by an index.
#
#   nomadlike job run batch.hcl

job "batch" {
  type = "batch"

  batch {
    count = 8
  }

  resources {
    cpu    = 1
    memory = "512MiB"
  }

  task {
    # NOMADLIKE_SUBJOB_INDEX runs from 0 to NOMADLIKE_SUBJOB_COUNT - 1.
    command = "sh -c 'echo subjob $NOMADLIKE_SUBJOB_INDEX of $NOMADLIKE_SUBJOB_COUNT'"
  }

  restart {
    max_restarts = 1 # of each subjob
  }
}

# One process on one node.
#
#   nomadlike job run -wait -logs hello.hcl

job "hello" {
  # What one node gives to the job. Left out: 1 core and 512MiB.
  resources {
    cpu    = 0.5     # cores, fractions allowed
    memory = "64MiB" # KiB, MiB, GiB, TiB
  }

  task {
    # Starts with a program. For several statements: bash -c "first && second"
    command = "echo hello from nomadlike"

    env = {
      GREETING = "hello"
    }
  }

  # time_limit = "1h"                # then the job becomes expired
  # restart { max_restarts = 3 }     # start again after a failure
}

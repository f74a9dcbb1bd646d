job "sweep" {
  batch { count = 8 }
  task { command = "sh -c 'echo $NOMADLIKE_SUBJOB_INDEX'" }
  restart { max_restarts = 2, delay = "10s" }
}

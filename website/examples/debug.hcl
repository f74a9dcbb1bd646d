# A job that fails and stays enterable for ten minutes: nomadlike job exec debug sh
job "debug" {
  resources {
    cpu    = 0.5
    memory = "128MiB"
  }

  debug {
    hold = "10m"
  }

  task {
    command = "sh -c \"echo half done >result; exit 1\""
  }
}

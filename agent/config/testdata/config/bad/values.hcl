name      = "GPU_01"
bind      = "localhost"
advertise = "0.0.0.0"

ports {
  http   = 70000
  gossip = -1
}

server {
  enabled          = true
  bootstrap_expect = 9
  join             = ["a:b:c", "gpu-02:0"]
}

client {
  enabled  = true
  pool     = "-x"
  port_min = 5000
  port_max = 4000

  exec {
    ulimits     = { memlock = "1GB" }
    ulimits_max = { colour = "1" }
  }

  disk {
    space_min   = "20GB"
    inodes_min  = 200
    inodes_back = 100
  }

  reserved {
    cpu    = -1
    memory = "2GB"
  }
}

log {
  level = "loud"
}

limits {
  streams = 0
}

join_token = "nl1.abc"

plugin "exec" {
  sha256 = "12"
}

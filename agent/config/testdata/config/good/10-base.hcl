data_dir  = "/srv/nomadlike"
advertise = "10.0.0.1"

server {
  enabled          = true
  bootstrap_expect = 3
}

client {
  enabled = true
  pool    = "a800"
  meta    = { rack = "r1" }

  reserved {
    cpu    = 2
    memory = "4GiB"
  }
}

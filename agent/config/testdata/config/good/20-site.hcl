server {
  join = ["10.0.0.2", "10.0.0.3:5000", "[fd00::1]:4648"]
}

client {
  meta    = { rack = "r2", row = "3" }
  servers = ["10.0.0.2"]

  disk {
    space_min  = "20GiB"
    inodes_min = 50000
  }
}

log {
  level = "debug"
}

plugin_dir = "/opt/nomadlike/plugins"

plugin "singularity" {
  args   = ["serve"]
  env    = { PATH = "/usr/bin", LANG = "C" }
  sha256 = "AB00000000000000000000000000000000000000000000000000000000000000"
}

server {
  join = ["10.0.0.2", "10.0.0.3:5000", "[fd00::1]:4648"]
}

client {
  meta    = { rack = "r2", row = "3" }
  servers = ["10.0.0.2"]
}

log {
  level = "debug"
}

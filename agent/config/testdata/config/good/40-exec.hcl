client {
  exec {
    isolation   = "auto"
    view        = "private"
    mount_roots = ["/nas"]
    pids_max    = 4096
    ulimits     = { core = "0" }
    ulimits_max = { memlock = "unlimited", nofile = "1048576" }
  }
}

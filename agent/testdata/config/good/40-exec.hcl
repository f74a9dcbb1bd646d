client {
  exec {
    isolation   = "auto"
    view        = "private"
    mount_roots = ["/nas"]
    pids_max    = 4096
  }
}

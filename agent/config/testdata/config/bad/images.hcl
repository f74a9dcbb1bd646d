client {
  enabled = true
  docker {
    image_gc {
      keep_for   = "soon"
      unused_max = "never"
      disk_high  = 80
      disk_low   = 90
      pinned     = [""]
    }
  }
}

job "limits" {
  task {
    command = "true"
    ulimits = {
      memlock = "64MB"
      nofile  = "4096:1024"
      colour  = "red"
    }
  }
}

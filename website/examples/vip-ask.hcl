# A VIP job that asks: the owners of what runs on gpu-02 have half an hour to agree.
# Without an answer it waits for their jobs, as it does for those on gpu-01.
job "demo-for-the-board" {
  vip {
    machine "gpu-01" {
      busy = "wait"
    }
    machine "gpu-02" {
      busy = "ask"
    }
    ask {
      for     = "30m"
      silence = "wait"
      message = "demo at three o'clock"
    }
  }

  resources {
    cpu    = 4
    memory = "8GiB"
  }

  task {
    command = "python3 demo.py"
  }
}

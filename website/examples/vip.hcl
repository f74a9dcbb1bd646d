# A VIP job chooses its machines: it waits for the jobs on gpu-01 and ends those
# on gpu-02. `nomadlike job plan` names them before anything happens; their
# owners see who ended them, and they are queued again.
job "demo-for-the-board" {
  vip {
    machine "gpu-01" {
      busy = "wait"
    }
    machine "gpu-02" {
      busy = "kill"
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

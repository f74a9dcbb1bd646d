# A VIP job chooses its machines and what happens to the jobs on them.
job "demo" {
  vip {
    machine "gpu-01" {
      busy = "kill"
    }
    machine "gpu-02" {}
  }
  task {
    command = "python3 train.py"
  }
}

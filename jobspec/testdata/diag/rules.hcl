job "My Job" {
  project = ".."
  type    = "batch"
  batch {
    count = 100000
  }
  restart {
    max_restarts = 3
  }
  checkpoint {
    max_resumes = 5
  }
  placement {
    pool  = "a800"
    nodes = ["gpu-01", "gpu-02"]
  }
  resources {
    cpu    = 1e9
    memory = "1PiB"
    device "gpu" {}
  }
  resources "b" {
    port "master" {}
  }
  distributed "pytorch" {
    parameter_servers = 2
  }
  task {
    image   = "debian"
    command = "LR=0.1 python3 train.py && python3 evaluate.py"
    env = {
      RANK         = 1
      "BAD NAME"   = "x"
    }
  }
  mount "/proc" {
    source = "../etc"
  }
}

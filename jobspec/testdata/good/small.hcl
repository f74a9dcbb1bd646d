job "digits" {
  nodes = 2
  resources {
    cpu    = 2
    memory = "2GiB"
  }
  distributed "pytorch" {}
  task {
    driver  = "exec"
    command = "python3 train.py --epochs 5"
  }
}

job "digits" {
  nodess   = 2
  replicas = 3
  command  = "python3 train.py"
  ressources {
    cpu = 1
  }
  resources {
    cpu    = 1
    memroy = "1GiB"
    mem    = "1GiB"
    gpus   = 8
  }
  distributed "pytroch" {
    world_size = "node"
  }
  task {
    comand  = "true"
    command = "true"
    nodes   = 3
  }
  zzz = 1
}

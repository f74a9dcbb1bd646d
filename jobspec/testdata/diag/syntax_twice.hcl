job "a" {
  nodes = 2
  nodes = 3
  ssh = true  jupyter = true
  task = {
    command = "a\qb"
  }
  placement { pool = "a",
  }
}

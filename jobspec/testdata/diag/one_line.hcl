job "one-line" { nodes = 0, resources { cpu = 1, memory = "1GB" }, task { command = "a|b", env = { A = 1, RANK = 2 } }, distributed "mpi" {}}

job "a" {
  nodes ＝ 2
  task {
    env = { A = “1”， B = 2 }
  }
}

job "a" {
  task {
    command = "python3 train.py
  }
}

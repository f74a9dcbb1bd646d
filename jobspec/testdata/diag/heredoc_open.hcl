job "heredoc" {
  task {
    command = <<SH
      python3 train.py
  }
}

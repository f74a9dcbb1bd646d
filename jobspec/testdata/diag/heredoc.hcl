job "heredoc" {
  task {
    command = <<-SH
      python3 train.py
      python3 evaluate.py
    SH
  }
}

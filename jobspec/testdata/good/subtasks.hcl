job "compare" {
  type = "batch"
  batch {
    subtask "adam" {
      algorithm = "resnet"
      command   = "python3 train.py --optimizer adam"
      env       = { LR = 0.001 }
    }
    subtask "sgd" {
      command = "python3 train.py --optimizer sgd"
      env {
        LR   = 0.1
        SEED = null
      }
    }
  }
  task {}
}

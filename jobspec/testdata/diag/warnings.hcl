job "warnings" {
  time_limit       = "1h"
  expected_runtime = "2h"
  nodes            = 2
  task {
    command = "torchrun train.py *.txt"
    env     = { NCCL_DEBUG = "INFO", CUDA_VISIBLE_DEVICES = "0" }
  }
}

# The whole job file of the design, exclusions resolved.
variable "lr" { default = 0.1 }

job "resnet50" {
  project     = "vision"
  type        = "training"
  category    = "training"
  description = "baseline, lr ${var.lr}"
  priority    = "normal"
  preemptible = false
  access      = "read-only"
  time_limit  = "48h"
  expected_runtime = "6h30m"

  nodes = 4

  distributed "pytorch" {
    world_size = "procs"
    rewrite    = "torchrun"
  }

  resources "a800" {
    cpu = 32
    memory = "256GiB"
    shared_memory = "64GiB"
    device "nvidia/gpu" { count = 8, model = "A800" }
    port "http" { static = 8080 }
    rdma = true
  }
  resources "910b" {
    sku = 8
    device "huawei/npu" { count = 8, model = "910B" }
  }

  placement {
    pool  = "a800"
    driver_version = ">= 535"
    spread_or_pack = "pack"
  }

  task {
    driver  = "docker"
    image   = "nv-pytorch:21.05-py3"
    pull    = "missing"
    command = "python /workspace/algorithm/train.py"
    dir     = "/workspace"
    env     = { LR = var.lr }
    user    = "1000:1000"
    hook "prestart" { command = "bash -c 'echo start'" }
    ulimits = { memlock = "unlimited", nofile = 4096, stack = "8MiB:64MiB" }
    logs { file_size_max = "10MiB", files = 5 }
  }

  algorithm "resnet"       { version = 3, read_only = true }
  dataset   "cifar10"      { read_only = true, prepare = true }
  model     "resnet50-pre" {}
  volume    "scratch"      {}
  mount     "/mnt/user/li" { source = "/nas/user/li" }
  output    "models/run7"  {}

  elastic { min_nodes = 2, allow_resize = true }
  checkpoint {
    max_resumes = 5
    signal = "SIGUSR1"
    grace  = "5m"
    precheck = true
    performance { threshold = 0.7, action = "alert" }
  }
  supports { pause = false }
  throttle { idle = "100ms" }
  stop_grace = "30s"
  fencing    = "strict"
  meta       = { team = "vision", run = 7 }

  debug { hold = "4h" }
  ssh = true
  jupyter = true
  tensorboard { logdir = "/workspace/outputs/tb" }
}

job "resnet50" {
  project          = "vision"
  type             = "training"
  category         = "training"
  description      = "baseline, lr 0.1"
  priority         = "normal"
  access           = "read-only"
  time_limit       = "48h"
  expected_runtime = "6h30m"
  nodes            = 4
  stop_grace       = "30s"
  fencing          = "strict"
  ssh              = true
  jupyter          = true
  meta = {
    run  = "7"
    team = "vision"
  }

  distributed "pytorch" {
    world_size = "procs"
    rewrite    = "torchrun"
  }

  resources "a800" {
    cpu           = 32
    memory        = "256GiB"
    shared_memory = "64GiB"
    rdma          = true

    device "nvidia/gpu" {
      count = 8
      model = "A800"
    }

    port "http" {
      static = 8080
    }
  }

  resources "910b" {
    sku = 8

    device "huawei/npu" {
      count = 8
      model = "910B"
    }
  }

  placement {
    pool           = "a800"
    driver_version = ">= 535"
    spread_or_pack = "pack"
  }

  task {
    driver  = "docker"
    image   = "nv-pytorch:21.05-py3"
    pull    = "missing"
    command = "python /workspace/algorithm/train.py"
    dir     = "/workspace"
    user    = "1000:1000"
    env = {
      LR = "0.1"
    }
    ulimits = {
      memlock = "unlimited"
      nofile  = "4096"
      stack   = "8MiB:64MiB"
    }

    hook "prestart" {
      command = "bash -c 'echo start'"
    }

    logs {
      file_size_max = "10MiB"
      files         = 5
    }
  }

  algorithm "resnet" {
    version   = 3
    read_only = true
  }

  dataset "cifar10" {
    read_only = true
    prepare   = true
  }

  model "resnet50-pre" {
  }

  volume "scratch" {
  }

  mount "/mnt/user/li" {
    source = "/nas/user/li"
  }

  output "models/run7" {
  }

  elastic {
    min_nodes    = 2
    allow_resize = true
  }

  checkpoint {
    max_resumes = 5
    signal      = "SIGUSR1"
    grace       = "5m"
    precheck    = true

    performance {
      threshold = 0.7
      action    = "alert"
    }
  }

  supports {
    pause = false
  }

  throttle {
    idle = "100ms"
  }

  debug {
    hold = "4h"
  }

  tensorboard {
    logdir = "/workspace/outputs/tb"
  }
}

# What the reference page shows as the example of each argument. It is read and
# never submitted: arguments of different modes and drivers stand side by side.
job "resnet50" {
  project          = "vision"
  type             = "training"
  category         = "training"
  description      = "baseline, learning rate 0.1"
  priority         = "urgent"
  preemptible      = true
  access           = "read-write"
  expected_runtime = "6h30m"
  begin            = "22:00"
  deadline         = "2026-12-01T08:00"
  max_queue_time   = "12h"
  nodes            = 4
  stop_grace       = "2m"
  fencing          = "strict"
  ssh              = true
  jupyter          = true
  tags             = ["ablation", "paper-3"]
  note             = "baseline of table 2"
  meta             = { team = "vision" }

  time_limit {
    limit  = "48h"
    warn   = "5m"
    signal = "SIGUSR2"
  }
  after "prep" {
    when    = "succeeded"
    project = "speech"
  }
  workdir {
    git    = "https://git.example/team/train.git"
    ref    = "main"
    subdir = "train"
  }
  batch {
    array    = "0-99:2"
    count    = 50
    parallel = 10
    subtask "small" {
      algorithm = "resnet"
      command   = "python3 train.py --depth 18"
      env       = { LR = "0.1" }
    }
  }
  sweep "random" {
    param "lr" {
      log = [1e-5, 1e-1]
    }
    param "optimizer" {
      values = ["adam", "sgd"]
    }
    param "layers" {
      int   = [2, 8]
      count = 4
    }
    param "dropout" {
      double = [0, 0.5]
    }
    max_trials = 50
    parallel   = 4
    metric     = "val_loss"
    goal       = "minimize"
    seed       = 7
    args       = "flags"
  }
  distributed "pytorch" {
    world_size        = "procs"
    rewrite           = "torchrun"
    launcher          = "no_ssh"
    procs_per_node    = 8
    master_port       = 29500
    parameter_servers = 2
    chief             = true
    rank_table        = "v1.2"
    emulate           = "dlws"
  }
  resources "a800" {
    cpu           = 32
    memory        = "256GiB"
    shared_memory = "64GiB"
    disk          = "200GiB"
    sku           = 8
    rdma          = true
    device "nvidia/gpu" {
      count  = 8
      model  = "A800"
      models = ["A800", "H800"]
      memory = "80GiB"
      ids    = ["0", "1"]
    }
    port "http" {
      static = 8080
    }
  }
  placement {
    pool           = "a800"
    nodes          = ["gpu-01", "gpu-02"]
    driver_version = ">= 535, < 560"
    spread_or_pack = "spread"
  }
  vip {
    machine "gpu-01" {
      busy = "ask"
    }
    ask {
      for     = "1h"
      silence = "kill"
      message = "demo for the review at 15:00"
    }
  }
  task {
    driver            = "docker"
    image             = "pytorch:2.4"
    image_credentials = secret("registry")
    pull              = "always"
    command           = "python3 train.py --epochs 90"
    arguments         = "--log-interval 50"
    dir               = "/workspace"
    user              = "vision-train"
    env               = { WANDB_API_KEY = secret("wandb") }
    secrets           = ["id_ed25519"]
    ulimits           = { memlock = "unlimited" }
    options           = { ipc = "host" }
    hook "prestart" {
      command = "sh check.sh"
      timeout = "2m"
    }
    logs {
      file_size_max = "100MiB"
      files         = 5
    }
  }
  algorithm "resnet" {
    version     = 3
    read_only   = true
    prepare     = true
    from        = "favorite"
    storage     = "nas"
    annotations = true
    source      = "shared/resnet"
    sha256      = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
    project     = "speech"
    tag         = "stable"
  }
  dataset "cifar10" {
    version     = 3
    read_only   = true
    prepare     = true
    from        = "favorite"
    storage     = "nas"
    annotations = true
    source      = "sets/cifar10.tar"
    sha256      = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
    project     = "speech"
    tag         = "stable"
  }
  model "resnet50-pre" {
    version     = 2
    read_only   = true
    prepare     = true
    from        = "pretrained"
    storage     = "nas"
    annotations = true
    source      = "models/resnet50.pt"
    sha256      = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
    project     = "speech"
    tag         = "stable"
  }
  volume "scratch" {
    version     = 1
    read_only   = true
    prepare     = true
    from        = "private"
    storage     = "nas"
    annotations = true
    source      = "scratch/li"
    sha256      = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
    project     = "speech"
    tag         = "stable"
  }
  mount "/mnt/li" {
    source    = "li"
    storage   = "home"
    read_only = true
  }
  output "models/run7" {
    storage = "nas"
    keep "model" {
      name = "resnet"
      when = "success"
      path = "best"
    }
  }
  restart {
    max_restarts = 3
    delay        = "10s"
  }
  hang {
    action  = "reschedule"
    factor  = 20
    least   = "5m"
    most    = "1h"
    pattern = "iteration (\\d+)"
  }
  elastic {
    min_nodes    = 2
    by           = "restart"
    allow_resize = true
  }
  checkpoint {
    max_resumes = 5
    signal      = "SIGUSR1"
    grace       = "5m"
    precheck    = true
    dir         = "/shared/resnet50"
    pattern     = "step-*.pt"
    performance {
      threshold = 0.7
      action    = "reschedule"
      compare   = "lt"
      pattern   = "([0-9.]+) of ([0-9.]+) seconds"
      times     = 5
    }
  }
  supports {
    pause      = false
    throttle   = false
    finish_now = false
    resume     = false
  }
  throttle {
    idle = "100ms"
    busy = "1s"
  }
  notify {
    on = ["failed", "expired"]
    to = "team"
  }
  debug {
    hold = "2h"
  }
  tensorboard {
    logdir = "/workspace/outputs/tb"
  }
  metrics {
    patterns = ["^(?P<name>\\w+) is (?P<value>\\S+)"]
    events   = "/workspace/outputs/tb"
  }
}

# 多节点 PyTorch 分布式训练。所有节点同时启动；任一节点失败，
# 任务以下一次尝试整体重启。
#
#   nomadlike job run -var epochs=10 pytorch.hcl

variable "epochs" {
  description = "训练轮数"
  default     = 5
}

job "pytorch" {
  nodes      = 2
  time_limit = "48h"
  workdir    = "." # 本目录随任务一起发送，命令在其中启动

  # expected_runtime = "6h"          # 预估运行时长，用于排队预测

  resources {
    cpu    = 4
    memory = "8GiB"

    # device "nvidia/gpu" { count = 8, model = "A800" }
  }

  # 每个节点都设置 MASTER_ADDR、MASTER_PORT、RANK、WORLD_SIZE 与全部 PET_*，
  # 因此 torchrun 无需任何选项。对 "python train.py" 的改写：
  #   "launch"    python -m torch.distributed.launch … train.py（默认）
  #   "torchrun"  torchrun … train.py
  #   "none"      原样运行
  distributed "pytorch" {
    rewrite = "torchrun"

    # procs_per_node = 8             # 省略时每张卡一个进程
    # world_size     = "procs"       # WORLD_SIZE 的含义："nodes" 或 "procs"
  }

  task {
    command = "python3 train.py --epochs ${var.epochs}"
    # dir   = "/data/project"
    env = {
      OMP_NUM_THREADS = 1
    }
  }

  restart {
    max_restarts = 3
    delay        = "10s"
  }
  stop_grace = "1m" # 从停止信号到强制结束的时间，用于保存
}

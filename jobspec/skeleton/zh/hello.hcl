# 在一个节点上运行一个进程。
#
#   nomadlike job run -wait -logs hello.hcl

job "hello" {
  # 单节点规格。省略时为 1 核、512MiB。
  resources {
    cpu    = 0.5     # 核数，可为小数
    memory = "64MiB" # 单位 KiB、MiB、GiB、TiB
  }

  task {
    # 必须以可执行程序开头；多条语句请写 bash -c "第一条 && 第二条"
    command = "echo hello from nomadlike"

    env = {
      GREETING = "hello"
    }
  }

  # time_limit = "1h"                # 超时后任务过期
  # restart { max_restarts = 3 }     # 故障重启
}

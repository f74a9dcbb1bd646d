# 批量任务：同一名称下多个相互独立的子任务，以序号区分。
#
#   nomadlike job run batch.hcl

job "batch" {
  type = "batch"

  batch {
    count = 8
  }

  resources {
    cpu    = 1
    memory = "512MiB"
  }

  task {
    # NOMADLIKE_SUBJOB_INDEX 从 0 到 NOMADLIKE_SUBJOB_COUNT - 1。
    command = "sh -c 'echo subjob $NOMADLIKE_SUBJOB_INDEX of $NOMADLIKE_SUBJOB_COUNT'"
  }

  restart {
    max_restarts = 1 # 每个子任务的重启次数
  }
}

# MindSpore on Ascend nodes with a rank table: one process for each NPU, each with
# its own RANK_ID and DEVICE_ID. CANN's variables come from the nodes:
# client { env_file }.
job "mindspore-npu" {
  nodes = 2

  resources {
    cpu    = 32
    memory = "128GiB"
    device "huawei/npu" {
      count = 8
    }
  }

  distributed "mindspore" {
    rewrite = "procs"
  }

  task {
    command = "python3 train.py"
  }
}

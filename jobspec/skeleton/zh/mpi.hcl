# 多节点 MPI：支持 Open MPI 4、5 与 MPICH。命令在第一个节点上运行；
# mpirun 通过 nomadlike 到达其他节点，不需要 sshd，也不需要密钥。
# hostfile 已设置好，无需 -H 或 -hostfile。
#
#   nomadlike job run mpi.hcl

job "mpi" {
  nodes   = 2
  workdir = "." # 本目录随任务一起发送，命令在其中启动

  resources {
    cpu    = 2
    memory = "2GiB"
  }

  distributed "mpi" {
    procs_per_node = 2 # 每个节点的 slots；省略时每张卡一个
  }

  task {
    command = "mpirun -np 4 ./my_program"
  }
}

job "训练任务" {
  description = "手写数字识别，三个节点"
	priority    = "最高"   # 缩进用了制表符
  task {
    command = "python3　训练.py；sleep infinity"
    env = { 名称 = "值", LR = 0.1 }
  }
}

# PyTorch on Cambricon MLU cards: two nodes with eight each, one process for each
# card. MLU_VISIBLE_DEVICES names the cards of the job; the script asks for the
# backend "cncl", which the image's torch_mlu brings.
job "pytorch-mlu" {
  nodes = 2

  resources {
    cpu    = 32
    memory = "128GiB"
    device "cambricon/mlu" {
      count = 8
    }
  }

  distributed "pytorch" {}

  task {
    command = "python3 train.py --backend cncl"
  }
}

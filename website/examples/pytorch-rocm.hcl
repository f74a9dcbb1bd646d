# PyTorch on AMD GPUs: one node with eight, one process for each. ROCR_VISIBLE_DEVICES
# and HIP_VISIBLE_DEVICES name the cards of the job; PyTorch calls them "cuda".
job "pytorch-rocm" {
  resources {
    cpu    = 64
    memory = "512GiB"
    device "amd/gpu" {
      count = 8
      model = "MI300X"
    }
  }

  distributed "pytorch" {}

  task {
    driver  = "docker"
    image   = "rocm/pytorch:latest"
    command = "python3 train.py"
  }
}

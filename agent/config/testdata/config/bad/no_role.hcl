name = "gpu-01"

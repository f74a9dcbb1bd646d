# From sample_job.params, a params file, by nomadlike job import. Read it before you run it.
#
# Not kept:
#   line 10: priority=1  priority has tiers here: normal, urgent, critical
#
# Changed:
#   line 1: name=test_pytorch  names have lower-case letters, digits and hyphens: test-pytorch
#   line 6: worker_memory=64  a bare number counts in GB, taken as GiB
#   line 7: worker_shared_memory=32  a bare number counts in GB, taken as GiB
#
# To look at:
#   line 2: kind=PyTorchJob  python FILE is put under torch.distributed.launch, as older platforms do; with rewrite =
#       "none" it runs as it is
#   line 8: worker_image=registry.lab/pytorch:1.12  is this registry reached from the nodes? image_credentials =
#       secret("NAME") signs in
#   line 11: workspace_id=46099  is there a project project-46099, and are you in it? nomadlike project list
#
# Without meaning here:
#   line 12: interactive=false  nothing is to be done for it

job "test-pytorch" {        # line 1: name=test_pytorch
  project = "project-46099" # line 11: workspace_id=46099
  nodes   = 2               # line 3: worker_count=2

  distributed "pytorch" {} # line 2: kind=PyTorchJob

  resources {
    cpu           = 8       # line 4: worker_cpu=8
    memory        = "64GiB" # line 6: worker_memory=64
    shared_memory = "32GiB" # line 7: worker_shared_memory=32

    device "nvidia/gpu" {
      count = 4 # line 5: worker_gpu=4
    }
  }

  task {
    driver  = "docker"                       # line 8: worker_image=registry.lab/pytorch:1.12
    image   = "registry.lab/pytorch:1.12"    # line 8: worker_image=registry.lab/pytorch:1.12
    command = "python3 train.py --epochs 10" # line 9: command=python3 train.py --epochs 10
  }
}

# From tfjob.yaml, a manifest of Kubernetes, by nomadlike job import. Read it before you run it.
#
# Not kept:
#   line 5: spec.successPolicy: AllWorkers  a job has succeeded when all ranks have
#   line 12: spec.tfReplicaSpecs.Chief.template  Chief has another template than Worker, and all ranks have one here:
#       that of Worker is used
#   line 16: spec.tfReplicaSpecs.Evaluator  there is no evaluator; make a job of it that waits with after
#
# Changed:
#   line 9: spec.tfReplicaSpecs.PS.template  parameter servers have the image and the command of the workers
#
# To look at:
#   all ranks start together or not at all, and end together; each is on a node of its own
#   line 15: containers[].image: tf:2.15  is this registry reached from the nodes? image_credentials = secret("NAME")
#       signs in

job "dist-mnist" { # line 3: metadata.name: dist-mnist
  nodes = 4        # line 11: spec.tfReplicaSpecs.Chief.replicas: 1

  distributed "tensorflow" { # line 2: kind: TFJob
    parameter_servers = 2    # line 8: spec.tfReplicaSpecs.PS.replicas: 2
    chief             = true # line 11: spec.tfReplicaSpecs.Chief.replicas: 1
  }

  resources {
    memory = "62500000KiB" # line 15: containers[].resources.limits.memory: 64G
    cpu    = 12            # line 15: containers[].resources.limits.cpu: 12

    device "nvidia/gpu" {
      count = 2 # line 15: containers[].resources.limits.nvidia.com/gpu: 2
    }
  }

  task {
    driver  = "docker"         # line 15: containers[].image: tf:2.15
    image   = "tf:2.15"        # line 15: containers[].image: tf:2.15
    command = "python dist.py" # line 15: containers[].command
  }
}

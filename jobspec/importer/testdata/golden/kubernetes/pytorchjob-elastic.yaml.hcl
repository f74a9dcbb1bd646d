# From pytorchjob-elastic.yaml, a manifest of Kubernetes, by nomadlike job import. Read it before you run it.
#
# Not kept:
#   line 17: containers[].volumeMounts[].mountPath: /tmp/s  NOMADLIKE_LOCAL_DIR is scratch of the task; volume outlives
#       it
#   line 17: containers[].volumeMounts[].mountPath: /cfg  no volume that can be said: mount has a path of the node or
#       below a storage
#   line 21: volumes[].configMap  no volume that can be said: mount has a path of the node or below a storage
#   line 22: volumes[].emptyDir  a volume that no container of the job mounts
#
# Changed:
#   line 6: spec.nprocPerNode: auto  one process for each card, which is the default
#
# To look at:
#   cores are not said; cpu = 8 is a guess
#   memory is not said; 8GiB is a guess, and a task that uses more is killed
#   all ranks start together or not at all, and end together; each is on a node of its own
#   line 14: containers[].image: imagenet:2  is this registry reached from the nodes? image_credentials =
#       secret("NAME") signs in
#   line 19: volumes[].hostPath.path: /mnt/nas  does the node allow /mnt/nas to be mounted? client { exec { mount_roots
#       } }; or use a storage
#
# Without meaning here:
#   line 5: spec.elasticPolicy.rdzvBackend: c10d  set by the system
#   line 5: spec.elasticPolicy.maxReplicas: 4  set by the system
#   line 5: spec.elasticPolicy.maxRestarts: 100  set by the system
#   line 19: volumes[].hostPath.type: Directory  nothing looks at it here

job "elastic-imagenet" { # line 3: metadata.name: elastic-imagenet
  nodes = 4              # line 9: spec.pytorchReplicaSpecs.Worker.replicas: 4

  distributed "pytorch" { # line 2: kind: PyTorchJob
    rewrite = "none"
  }

  resources {
    cpu    = 8
    memory = "8GiB"

    device "nvidia/gpu" {
      count = 1 # line 16: containers[].resources.limits.nvidia.com/gpu: 1
    }
  }

  task {
    driver = "docker"     # line 14: containers[].image: imagenet:2
    image  = "imagenet:2" # line 14: containers[].image: imagenet:2
    # line 15: containers[].command
    command = <<SCRIPT
bash -c 'pip list
torchrun main.py --arch resnet18 $(EXTRA)'
SCRIPT
  }

  mount "/nas" {
    source = "/mnt/nas" # line 19: volumes[].hostPath.path: /mnt/nas
  }

  elastic {
    min_nodes = 2 # line 5: spec.elasticPolicy.minReplicas: 2
    by        = "torchrun"
  }
}

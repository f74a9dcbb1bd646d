# From pytorchjob.yaml, a manifest of Kubernetes, by nomadlike job import. Read it before you run it.
#
# Not kept:
#   line 27: volumes[].persistentVolumeClaim.claimName: imagenet  make it a storage or named data: dataset "imagenet"
#       {} is at /workspace/dataset, mount "/data" { storage = …, source = … } at its place
#
# To look at:
#   all ranks start together or not at all, and end together; each is on a node of its own
#   line 5: metadata.namespace: vision  is there a project vision, and are you in it? nomadlike project list
#   line 6: metadata.labels.kueue.x-k8s.io/queue-name: a800  is there a pool a800? nomadlike pool list
#   line 19: containers[].image: registry.lab:5000/pytorch:2.4  is this registry reached from the nodes?
#       image_credentials = secret("NAME") signs in
#
# Without meaning here:
#   line 6: metadata.labels.team: li  nothing looks at it here
#   line 9: spec.runPolicy.cleanPodPolicy: None  records of jobs are kept; tasks are removed when they end
#   line 13: spec.pytorchReplicaSpecs.Worker.restartPolicy: OnFailure  restarts are those of the whole job: restart {
#       max_restarts = N }

job "resnet" {          # line 4: metadata.name: resnet
  project    = "vision" # line 5: metadata.namespace: vision
  nodes      = 2        # line 12: spec.pytorchReplicaSpecs.Worker.replicas: 2
  time_limit = "36h"    # line 9: spec.runPolicy.activeDeadlineSeconds: 129600
  stop_grace = "2m"     # line 16: terminationGracePeriodSeconds: 120

  distributed "pytorch" { # line 2: kind: PyTorchJob
    rewrite        = "none"
    procs_per_node = 8 # line 8: spec.nprocPerNode: 8
  }

  resources {
    cpu           = 64       # line 22: containers[].resources.limits.cpu: 64
    memory        = "512GiB" # line 22: containers[].resources.limits.memory: 512Gi
    rdma          = true     # line 22: containers[].resources.limits.rdma/hca: 1
    shared_memory = "32GiB"  # line 28: volumes[].emptyDir.sizeLimit: 32Gi

    device "nvidia/gpu" {
      count = 8 # line 22: containers[].resources.limits.nvidia.com/gpu: 8
    }
  }

  placement {
    pool = "a800" # line 6: metadata.labels.kueue.x-k8s.io/queue-name: a800
  }

  task {
    driver  = "docker"                        # line 19: containers[].image: registry.lab:5000/pytorch:2.4
    image   = "registry.lab:5000/pytorch:2.4" # line 19: containers[].image: registry.lab:5000/pytorch:2.4
    command = "torchrun train.py --lr 0.1"    # line 20: containers[].command
  }

  restart {
    max_restarts = 3 # line 9: spec.runPolicy.backoffLimit: 3
  }
}

# From mpijob.yaml, a manifest of Kubernetes, by nomadlike job import. Read it before you run it.
#
# Changed:
#   the launcher is rank 0 here, not a pod beside the workers; its hosts and its remote shell are set by the system
#
# To look at:
#   all ranks start together or not at all, and end together; each is on a node of its own
#   line 14: containers[].image: horovod:0.28  is this registry reached from the nodes? image_credentials =
#       secret("NAME") signs in
#   line 24: containers[].image: horovod:0.28  is this registry reached from the nodes? image_credentials =
#       secret("NAME") signs in
#
# Without meaning here:
#   line 6: spec.sshAuthMountPath: /home/mpiuser/.ssh  set by the system
#   line 7: spec.runPolicy.cleanPodPolicy: Running  records of jobs are kept; tasks are removed when they end
#   line 18: containers[].resources.limits.cpu: 1  the limit counts, or what was said before
#   line 18: containers[].resources.limits.memory: 2Gi  the limit counts, or what was said before

job "horovod-bench" { # line 3: metadata.name: horovod-bench
  nodes = 2           # line 20: spec.mpiReplicaSpecs.Worker.replicas: 2

  distributed "mpi" {  # line 2: kind: MPIJob
    procs_per_node = 4 # line 5: spec.slotsPerWorker: 4
  }

  resources {
    cpu    = 32       # line 26: containers[].resources.limits.cpu: 32
    memory = "256GiB" # line 26: containers[].resources.limits.memory: 256Gi

    device "nvidia/gpu" {
      count = 4 # line 26: containers[].resources.limits.nvidia.com/gpu: 4
    }
  }

  task {
    driver  = "docker"                                                         # line 14: containers[].image: horovod:0.28
    image   = "horovod:0.28"                                                   # line 14: containers[].image: horovod:0.28
    command = "mpirun -np 8 --allow-run-as-root -bind-to none python bench.py" # line 16: containers[].command
  }
}

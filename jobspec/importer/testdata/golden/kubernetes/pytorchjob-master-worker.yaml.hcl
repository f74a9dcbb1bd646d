# From pytorchjob-master-worker.yaml, a manifest of Kubernetes, by nomadlike job import. Read it before you run it.
#
# Not kept:
#   line 10: spec.runPolicy.schedulingPolicy.priorityClass: high  priority has tiers here: normal, urgent, critical
#   line 19: imagePullSecrets  image_credentials = secret("NAME") in task
#   line 20: nodeSelector.cloud/nodepool: gpu_pool  a pool was said already
#   line 20: nodeSelector.disk: ssd  placement chooses nodes by pool or by name, device by model
#   line 21: tolerations  placement chooses nodes by pool or by name, device by model
#   line 23: containers[].name: sidecar  a second container: a task is one process or container
#   line 33: containers[].env[].name: WANDB_API_KEY  WANDB_API_KEY: a value from elsewhere; nomadlike secret set, and
#       secret("NAME") as its value in env
#   line 35: containers[].envFrom  write the variables into env, secrets as secret("NAME")
#   line 36: containers[].securityContext  user in task says who it runs as, ulimits and options what it may
#   line 39: containers[].resources.limits.example.com/fpga: 1  no resource here
#
# To look at:
#   all ranks start together or not at all, and end together; each is on a node of its own
#   line 9: spec.runPolicy.schedulingPolicy.queue: default_queue  is there a pool default-queue? nomadlike pool list
#   line 26: containers[].image: mnist:1  is this registry reached from the nodes? image_credentials = secret("NAME")
#       signs in
#
# Without meaning here:
#   line 8: spec.runPolicy.schedulingPolicy.minAvailable: 4  always so here: all ranks start together
#   line 14: spec.pytorchReplicaSpecs.Master.restartPolicy: OnFailure  restarts are those of the whole job: restart {
#       max_restarts = N }
#   line 16: spec.pytorchReplicaSpecs.Worker.template.metadata  nothing looks at it here
#   line 30: containers[].ports  ranks have the network of their node; port "NAME" {} in resources asks for one
#   line 38: containers[].resources.requests.memory: 1Gi  the limit counts, or what was said before
#   line 42: spec.pytorchReplicaSpecs.Worker.restartPolicy: OnFailure  restarts are those of the whole job: restart {
#       max_restarts = N }

job "mnist" { # line 4: metadata.generateName: mnist-
  nodes = 4   # line 13: spec.pytorchReplicaSpecs.Master.replicas: 1

  distributed "pytorch" { # line 2: kind: PyTorchJob
    rewrite = "none"
  }

  resources {
    memory = "16GiB" # line 39: containers[].resources.limits.memory: 16Gi
    cpu    = 0.5     # line 38: containers[].resources.requests.cpu: 500m

    device "nvidia/gpu" {
      count = 1 # line 39: containers[].resources.limits.nvidia.com/gpu: 1
    }
  }

  placement {
    pool = "default-queue" # line 9: spec.runPolicy.schedulingPolicy.queue: default_queue
  }

  task {
    driver  = "docker"                                    # line 26: containers[].image: mnist:1
    image   = "mnist:1"                                   # line 26: containers[].image: mnist:1
    pull    = "always"                                    # line 27: containers[].imagePullPolicy: Always
    dir     = "/opt/mnist"                                # line 28: containers[].workingDir: /opt/mnist
    command = "python mnist.py --epochs=3 --backend nccl" # line 29: containers[].command
    # line 31: containers[].env
    env = {
      NCCL_DEBUG = "INFO"
    }
  }
}

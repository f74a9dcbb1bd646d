# From volcano.yaml, a manifest of Kubernetes, by nomadlike job import. Read it before you run it.
#
# Not kept:
#   line 9: spec.policies  when a rank fails the attempt ends, and restart says how often another begins; after waits
#       for other jobs
#   line 14: spec.tasks[].policies  when a rank fails the attempt ends, and restart says how often another begins;
#       after waits for other jobs
#
# Changed:
#   line 10: spec.plugins.pytorch  addresses and ranks are set by the system, under names of its own: NOMADLIKE_RANK,
#       NOMADLIKE_RANK_NAMES
#   line 10: spec.plugins.svc  addresses and ranks are set by the system, under names of its own: NOMADLIKE_RANK,
#       NOMADLIKE_RANK_NAMES
#
# To look at:
#   all ranks start together or not at all, and end together; each is on a node of its own
#   line 7: spec.queue: research  is there a pool research? nomadlike pool list
#   line 20: containers[].image: torch:2  is this registry reached from the nodes? image_credentials = secret("NAME")
#       signs in
#
# Without meaning here:
#   line 5: spec.minAvailable: 3  always so here: all ranks start together
#   line 6: spec.schedulerName: volcano  always so here: all ranks start together
#   line 17: restartPolicy: OnFailure  restarts are those of the whole job: restart { max_restarts = N }

job "volcano-torch" { # line 3: metadata.name: volcano-torch
  nodes = 3           # line 13: spec.tasks[].replicas: 1

  distributed "pytorch" {
    rewrite = "none"
  }

  resources {
    cpu    = 16       # line 22: containers[].resources.limits.cpu: 16
    memory = "128GiB" # line 22: containers[].resources.limits.memory: 128Gi

    device "nvidia/gpu" {
      count = 4 # line 22: containers[].resources.limits.nvidia.com/gpu: 4
    }
  }

  placement {
    pool = "research" # line 7: spec.queue: research
  }

  task {
    driver  = "docker"                  # line 20: containers[].image: torch:2
    image   = "torch:2"                 # line 20: containers[].image: torch:2
    command = "sh -c 'python train.py'" # line 21: containers[].command
  }

  restart {
    max_restarts = 3 # line 8: spec.maxRetry: 3
  }
}

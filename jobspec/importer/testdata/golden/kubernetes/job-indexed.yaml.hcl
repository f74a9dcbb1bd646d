# From job-indexed.yaml, a manifest of Kubernetes, by nomadlike job import. Read it before you run it.
#
# Not kept:
#   line 7: spec.parallelism: 8  how many run at a time is not bounded; a quota of the project does it
#   line 12: initContainers  hook "prestart" in task runs something before, in the same image
#
# Changed:
#   line 4: metadata.name: Sweep_1  names have lower-case letters, digits and hyphens: sweep-1
#   line 6: spec.completions: 64  subjobs count from 0, in NOMADLIKE_SUBJOB_INDEX instead of JOB_COMPLETION_INDEX
#
# To look at:
#   line 15: containers[].image: trial:3  is this registry reached from the nodes? image_credentials = secret("NAME")
#       signs in
#   line 16: containers[].args  Kubernetes replaces $(NAME); here it is $NAME or ${NAME}
#
# Without meaning here:
#   line 8: spec.completionMode: Indexed  nothing looks at it here
#   line 11: restartPolicy: Never  restarts are those of the whole job: restart { max_restarts = N }

job "sweep-1" {  # line 4: metadata.name: Sweep_1
  type = "batch" # line 6: spec.completions: 64

  batch {
    count = 64 # line 6: spec.completions: 64
  }

  resources {
    cpu    = 2      # line 17: containers[].resources.limits.cpu: 2
    memory = "8GiB" # line 17: containers[].resources.limits.memory: 8Gi

    device "nvidia/gpu" {
      count = 1 # line 17: containers[].resources.limits.nvidia.com/gpu: 1
    }
  }

  task {
    driver = "docker"  # line 15: containers[].image: trial:3
    image  = "trial:3" # line 15: containers[].image: trial:3
    # line 16: containers[].args
    options = {
      entrypoint = "image"
    }
    command = "trial --lr-index '$(JOB_COMPLETION_INDEX)'" # line 16: containers[].args
  }
}

# From volcano-mpi.yaml, a manifest of Kubernetes, by nomadlike job import. Read it before you run it.
#
# Changed:
#   line 5: spec.plugins.ssh  addresses and ranks are set by the system, under names of its own: NOMADLIKE_RANK,
#       NOMADLIKE_RANK_NAMES
#   line 5: spec.plugins.svc  addresses and ranks are set by the system, under names of its own: NOMADLIKE_RANK,
#       NOMADLIKE_RANK_NAMES
#   line 5: spec.plugins.mpi  addresses and ranks are set by the system, under names of its own: NOMADLIKE_RANK,
#       NOMADLIKE_RANK_NAMES
#
# To look at:
#   all ranks start together or not at all, and end together; each is on a node of its own
#   line 9: containers[].image: mpi:4  is this registry reached from the nodes? image_credentials = secret("NAME")
#       signs in
#   line 12: containers[].image: mpi:4  is this registry reached from the nodes? image_credentials = secret("NAME")
#       signs in

job "lm-mpi" { # line 3: metadata.name: lm-mpi
  nodes = 2    # line 10: spec.tasks[].replicas: 2

  distributed "mpi" {}

  resources {
    cpu    = 2      # line 12: containers[].resources.requests.cpu: 2
    memory = "4GiB" # line 12: containers[].resources.requests.memory: 4Gi
  }

  task {
    driver  = "docker"                                              # line 9: containers[].image: mpi:4
    image   = "mpi:4"                                               # line 9: containers[].image: mpi:4
    command = "/bin/sh -c 'mpiexec --host $MPI_HOST -np 4 ./hello'" # line 9: containers[].command
  }
}

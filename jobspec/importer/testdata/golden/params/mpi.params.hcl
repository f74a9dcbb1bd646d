# From mpi.params, a params file, by nomadlike job import. Read it before you run it.
#
# Changed:
#   line 5: worker_memory=32  a bare number counts in GB, taken as GiB
#
# To look at:
#   line 6: worker_image=mpi  is this registry reached from the nodes? image_credentials = secret("NAME") signs in

job "m" {   # line 1: name=m
  nodes = 4 # line 3: worker_count=4

  distributed "mpi" {} # line 2: kind=MPIJob

  resources {
    cpu    = 16      # line 4: worker_cpu=16
    memory = "32GiB" # line 5: worker_memory=32
  }

  task {
    driver  = "docker"                # line 6: worker_image=mpi
    image   = "mpi"                   # line 6: worker_image=mpi
    command = "mpirun -np 64 ./solve" # line 7: command=mpirun -np 64 ./solve
  }
}

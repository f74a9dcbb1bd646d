# From documents.yaml, a manifest of Kubernetes, by nomadlike job import. Read it before you run it.
#
# Not kept:
#   line 2: kind: ConfigMap  a document of kind ConfigMap, which is no job: it is not used
#   line 12: kind: Service  a document of kind Service, which is no job: it is not used
#
# To look at:
#   memory is not said; 8GiB is a guess, and a task that uses more is killed
#   line 9: containers[].image: a  is this registry reached from the nodes? image_credentials = secret("NAME") signs in

job "one" { # line 8: metadata.name: one
  resources {
    memory = "8GiB"
  }

  task {
    driver  = "docker" # line 9: containers[].image: a
    image   = "a"      # line 9: containers[].image: a
    command = "true"   # line 9: containers[].command
  }
}

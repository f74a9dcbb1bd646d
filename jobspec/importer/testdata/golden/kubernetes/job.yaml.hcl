# From job.yaml, a manifest of Kubernetes, by nomadlike job import. Read it before you run it.
#
# To look at:
#   memory is not said; 8GiB is a guess, and a task that uses more is killed
#   line 13: containers[].image: perl:5.34  is this registry reached from the nodes? image_credentials = secret("NAME")
#       signs in
#
# Without meaning here:
#   line 7: spec.ttlSecondsAfterFinished: 100  records of jobs are kept; tasks are removed when they end
#   line 10: restartPolicy: Never  restarts are those of the whole job: restart { max_restarts = N }
#   line 15: status  what the cluster wrote

job "pi" { # line 4: metadata.name: pi
  resources {
    memory = "8GiB"
  }

  task {
    driver  = "docker"                                   # line 13: containers[].image: perl:5.34
    image   = "perl:5.34"                                # line 13: containers[].image: perl:5.34
    command = "perl -Mbignum=bpi -wle 'print bpi(2000)'" # line 14: containers[].command
  }

  restart {
    max_restarts = 4 # line 6: spec.backoffLimit: 4
  }
}

# The folder own_code goes with the job: the command starts in it, on every node and in
# every attempt, and what is edited here afterwards changes nothing of the job.
job "own-code" {
  workdir = "own_code"

  resources {
    cpu    = 0.1
    memory = "64MiB"
  }
  task {
    command = "python3 fit.py conf.json"
  }
}

# From unknown.params, a params file, by nomadlike job import. Read it before you run it.
#
# Not kept:
#   line 2: kind=RayJob  RayJob is no kind that is known; the mode is left to the number of nodes
#   line 5: worker_cpu=many  many cannot be read
#   line 7: data_sources=d-1  dataset "NAME" {}, or mount
#   line 8: code_source=c-1  workdir { git = …, ref = … } brings code from a git server, workdir = "." a directory
#   line 9: code_branch=main  workdir { git = …, ref = … } brings code from a git server, workdir = "." a directory
#   line 10: thirdparty_libs=numpy  install them in the command, or in the image
#   line 11: vpc_id=v  of a cloud; nothing like it here
#   line 12: success_policy=ChiefWorker  a job has succeeded when all ranks have
#   line 13: frob=1  frob is no key that is known
#   line 14: interactive=true  nothing is interactive in a job; nomadlike job exec -t NAME bash while it runs
#
# To look at:
#   memory is not said; 8GiB is a guess, and a task that uses more is killed
#   line 17: worker_image=y  is this registry reached from the nodes? image_credentials = secret("NAME") signs in
#
# Without meaning here:
#   line 4: worker_gpu=0  nothing is to be done for it
#   line 16: worker_image=x  line 17 says it again, and counts

job "x" {              # line 1: name=x
  nodes      = 1       # line 3: worker_count=1
  time_limit = "1h30m" # line 15: job_max_running_time_minutes=90

  resources {
    memory = "8GiB"
  }

  task {
    driver  = "docker" # line 17: worker_image=y
    image   = "y"      # line 17: worker_image=y
    command = "./run"  # line 18: command=./run
  }
}

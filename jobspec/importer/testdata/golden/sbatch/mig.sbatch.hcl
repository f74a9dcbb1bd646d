# From mig.sbatch, a batch script of Slurm, by nomadlike job import. Read it before you run it.
#
# Changed:
#   line 4: --mem=16384  a bare number of Slurm counts in MiB
#
# To look at:
#   Slurm starts in the directory of submission, on a shared file system. workdir = "." sends the files beside this job
#       file along; what the script writes there stays on its node: name an output, or use a shared path with dir in
#       task
#   sbatch hands over the environment of whoever submits; here the task has what this file says: put what the script
#       needs into env
#   line 2: --gres=gpu:1g.10gb:1  is 1g.10gb what your cards are called? nomadlike node status NODE

job "mig" {
  time_limit = "1h30m30s" # line 5: --time=90:30
  workdir    = "."

  resources {
    cpu    = 2       # line 3: --cpus-per-task=2
    memory = "16GiB" # line 4: --mem=16384

    device "nvidia/gpu" {
      model = "1G.10GB" # line 2: --gres=gpu:1g.10gb:1
      count = 1         # line 2: --gres=gpu:1g.10gb:1
    }
  }

  task {
    command = "jupyter nbconvert --execute notebook.ipynb" # line 6: the script from here on
  }
}

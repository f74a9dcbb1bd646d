# From amd-mig.sbatch, a batch script of Slurm, by nomadlike job import. Read it before you run it.
#
# Changed:
#   line 6: srun python train.py  srun is gone: one task, which runs where the script does
#
# To look at:
#   Slurm starts in the directory of submission, on a shared file system. workdir = "." sends the files beside this job
#       file along; what the script writes there stays on its node: name an output, or use a shared path with dir in
#       task
#   sbatch hands over the environment of whoever submits; here the task has what this file says: put what the script
#       needs into env
#   line 2: --gres=gpu:mi250:8  is mi250 what your cards are called? nomadlike node status NODE

job "amd-mig" {
  time_limit = "25h30m" # line 5: --time=1-1:30
  workdir    = "."

  resources {
    cpu    = 56       # line 3: --cpus-per-gpu=7
    memory = "480GiB" # line 4: --mem=480G

    device "amd/gpu" {
      model = "MI250" # line 2: --gres=gpu:mi250:8
      count = 8       # line 2: --gres=gpu:mi250:8
    }
  }

  task {
    command = "python train.py" # line 6: the script from here on
  }
}

# From deepspeed-one-node.sbatch, a batch script of Slurm, by nomadlike job import. Read it before you run it.
#
# Changed:
#   line 3: --mem=128000  a bare number of Slurm counts in MiB
#   line 5: --time=600  a bare number of Slurm counts in minutes
#
# To look at:
#   Slurm starts in the directory of submission, on a shared file system. workdir = "." sends the files beside this job
#       file along; what the script writes there stays on its node: name an output, or use a shared path with dir in
#       task
#   sbatch hands over the environment of whoever submits; here the task has what this file says: put what the script
#       needs into env
#   line 2: --gres=gpu:rtx_3090:4  is rtx_3090 what your cards are called? nomadlike node status NODE

job "deepspeed-one-node" {
  time_limit = "10h" # line 5: --time=600
  workdir    = "."

  resources {
    cpu    = 32       # line 4: -c 32
    memory = "125GiB" # line 3: --mem=128000

    device "nvidia/gpu" {
      model = "RTX-3090" # line 2: --gres=gpu:rtx_3090:4
      count = 4          # line 2: --gres=gpu:rtx_3090:4
    }
  }

  task {
    command = "deepspeed --num_gpus=4 finetune.py --deepspeed ds.json" # line 6: the script from here on
  }
}

# From array.sbatch, a batch script of Slurm, by nomadlike job import. Read it before you run it.
#
# Changed:
#   line 8: --output=out/%A_%a.out  logs are kept by the cluster, by rank and attempt: nomadlike job logs sweep. For
#       the file as well: exec > >(tee -a "out/${NOMADLIKE_JOB_NUMBER}_${SLURM_ARRAY_TASK_ID}.out") 2>&1
#
# To look at:
#   Slurm starts in the directory of submission, on a shared file system. workdir = "." sends the files beside this job
#       file along; what the script writes there stays on its node: name an output, or use a shared path with dir in
#       task
#   sbatch hands over the environment of whoever submits; here the task has what this file says: put what the script
#       needs into env

job "sweep" {          # line 2: --job-name=sweep
  type       = "batch" # line 3: --array=0-99%10
  time_limit = "2h"    # line 7: --time=2:00:00
  workdir    = "."

  batch {
    array = "0-99%10" # line 3: --array=0-99%10
  }

  resources {
    cpu    = 4       # line 5: --cpus-per-task=4
    memory = "16GiB" # line 6: --mem=16G

    device "nvidia/gpu" {
      count = 1 # line 4: --gres=gpu:1
    }
  }

  task {
    # line 10: the script from here on
    command = <<SCRIPT
bash -c '
export SLURM_ARRAY_TASK_ID=$NOMADLIKE_ARRAY_ID
python train.py --seed $SLURM_ARRAY_TASK_ID
'
SCRIPT
  }
}

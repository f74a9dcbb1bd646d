# From one-gpu.sbatch, a batch script of Slurm, by nomadlike job import. Read it before you run it.
#
# Changed:
#   line 7: --output=slurm-%j.out  logs are kept by the cluster, by rank and attempt: nomadlike job logs resnet. For
#       the file as well: exec > >(tee -a "slurm-${NOMADLIKE_JOB_NUMBER}.out") 2>&1
#   line 8: --error=slurm-%j.err  logs are kept by the cluster, by rank and attempt: nomadlike job logs resnet. For the
#       file as well: exec > >(tee -a "slurm-${NOMADLIKE_JOB_NUMBER}.err") 2>&1
#   line 12: srun python train.py --config configs/resnet50.yaml  srun is gone: one task, which runs where the script
#       does
#
# To look at:
#   Slurm starts in the directory of submission, on a shared file system. workdir = "." sends the files beside this job
#       file along; what the script writes there stays on its node: name an output, or use a shared path with dir in
#       task
#   sbatch hands over the environment of whoever submits; here the task has what this file says: put what the script
#       needs into env

job "resnet" {       # line 2: --job-name=resnet
  time_limit = "12h" # line 6: --time=12:00:00
  workdir    = "."

  resources {
    cpu    = 8       # line 4: --cpus-per-task=8
    memory = "32GiB" # line 5: --mem=32G

    device "nvidia/gpu" {
      count = 1 # line 3: --gres=gpu:1
    }
  }

  task {
    # line 10: the script from here on
    command = <<SCRIPT
bash -c '
source ~/miniconda3/etc/profile.d/conda.sh
conda activate torch
python train.py --config configs/resnet50.yaml
'
SCRIPT
  }
}

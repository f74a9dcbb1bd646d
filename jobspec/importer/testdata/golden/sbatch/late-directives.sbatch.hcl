# From late-directives.sbatch, a batch script of Slurm, by nomadlike job import. Read it before you run it.
#
# Not kept:
#   line 4: #SBATCH --nodes=7  does not begin the line: Slurm takes it for a comment, and it is not used here either
#   line 8: #SBATCH --time=01:00:00  stands behind the first command: Slurm does not read it, and it is not used here
#       either
#   line 9: #SBATCH --gres=gpu:4  stands behind the first command: Slurm does not read it, and it is not used here
#       either
#
# To look at:
#   the script leaves the time limit to the partition; the pool may have one, or none
#   Slurm starts in the directory of submission, on a shared file system. workdir = "." sends the files beside this job
#       file along; what the script writes there stays on its node: name an output, or use a shared path with dir in
#       task
#   sbatch hands over the environment of whoever submits; here the task has what this file says: put what the script
#       needs into env

job "late" { # line 2: --job-name=late
  workdir = "."

  resources {
    cpu    = 1
    memory = "4GiB" # line 3: --mem=4G
  }

  task {
    # line 7: the script from here on
    command = <<SCRIPT
bash -c '
 #SBATCH --nodes=7
##SBATCH --nodes=9
# SBATCH --nodes=8
export A=1
#SBATCH --time=01:00:00
#SBATCH --gres=gpu:4
python train.py
'
SCRIPT
  }
}

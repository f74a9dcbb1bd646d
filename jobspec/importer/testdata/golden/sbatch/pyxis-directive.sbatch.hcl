# From pyxis-directive.sbatch, a batch script of Slurm, by nomadlike job import. Read it before you run it.
#
# Not kept:
#   line 2: --container-image=/lustre/images/torch.sqsh  an image file, or a name that a shell makes; load it into a
#       registry and write driver = "docker" and image
#   line 3: --container-mounts=/lustre:/lustre  /lustre:/lustre is not mounted: no absolute paths, no container, or a
#       variable
#
# To look at:
#   the script leaves cores to the site; cpu = 16 is a guess
#   Slurm starts in the directory of submission, on a shared file system. workdir = "." sends the files beside this job
#       file along; what the script writes there stays on its node: name an output, or use a shared path with dir in
#       task
#   sbatch hands over the environment of whoever submits; here the task has what this file says: put what the script
#       needs into env

job "pyxis-directive" {
  time_limit = "1h" # line 6: --time=1:00:00
  workdir    = "."

  resources {
    cpu    = 16
    memory = "64GiB" # line 5: --mem=64G

    device "nvidia/gpu" {
      count = 2 # line 4: --gres=gpu:2
    }
  }

  task {
    # line 7: the script from here on
    command = <<SCRIPT
bash -c '
nvidia-smi
python bench.py
'
SCRIPT
  }
}

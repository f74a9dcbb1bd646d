# From deepspeed-pdsh.sbatch, a batch script of Slurm, by nomadlike job import. Read it before you run it.
#
# Changed:
#   mode deepspeed: the host file is at /job/hostfile
#   line 4: --ntasks-per-node=1  tasks of a node: 1; what they are here, the distributed block and the launcher's
#       options say
#
# To look at:
#   Slurm starts in the directory of submission, on a shared file system. workdir = "." sends the files beside this job
#       file along; what the script writes there stays on its node: name an output, or use a shared path with dir in
#       task
#   sbatch hands over the environment of whoever submits; here the task has what this file says: put what the script
#       needs into env

job "ds-zero3" {     # line 2: --job-name=ds-zero3
  nodes      = 4     # line 3: --nodes=4
  time_limit = "72h" # line 8: --time=3-00:00:00
  workdir    = "."

  distributed "deepspeed" {
    launcher = "pdsh"
  }

  resources {
    cpu    = 96       # line 6: --cpus-per-task=96
    memory = "900GiB" # line 7: --mem=900G

    device "nvidia/gpu" {
      count = 8 # line 5: --gres=gpu:8
    }
  }

  task {
    command = "deepspeed --num_nodes 4 --num_gpus 8 train.py --deepspeed ds_config.json" # line 10: the script from here on
  }
}

# From torchrun-single-node.sbatch, a batch script of Slurm, by nomadlike job import. Read it before you run it.
#
# Not kept:
#   line 8: --mem=0  all memory of a node cannot be said; 256GiB is a guess
#   line 9: --exclusive  nodes are not given whole; cpu = 64 is what the script counts or a guess: ask for all cores
#       and memory of a node, or device count = "all"
#
# Changed:
#   mode pytorch: MASTER_ADDR, MASTER_PORT and torchrun's options are set on every node
#   line 5: --ntasks=1  tasks of a node: 1; what they are here, the distributed block and the launcher's options say
#
# To look at:
#   Slurm starts in the directory of submission, on a shared file system. workdir = "." sends the files beside this job
#       file along; what the script writes there stays on its node: name an output, or use a shared path with dir in
#       task
#   sbatch hands over the environment of whoever submits; here the task has what this file says: put what the script
#       needs into env
#   line 3: --partition=a100  is there a pool a100? nomadlike pool list
#   line 6: --gpus-per-node=a100:8  is a100 what your cards are called? nomadlike node status NODE

job "bert-8gpu" {    # line 2: --job-name=bert-8gpu
  nodes      = 1     # line 4: --nodes=1
  time_limit = "48h" # line 10: --time=2-00
  workdir    = "."

  distributed "pytorch" {}

  resources {
    cpu    = 64       # line 7: --cpus-per-task=64
    memory = "256GiB" # line 8: --mem=0

    device "nvidia/gpu" {
      model = "A100" # line 6: --gpus-per-node=a100:8
      count = 8      # line 6: --gpus-per-node=a100:8
    }
  }

  placement {
    pool = "a100" # line 3: --partition=a100
  }

  task {
    command = "torchrun --standalone --nproc_per_node=8 run_mlm.py --output_dir /scratch/bert" # line 12: the script from here on
  }
}

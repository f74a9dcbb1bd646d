# From pyxis.sbatch, a batch script of Slurm, by nomadlike job import. Read it before you run it.
#
# Not kept:
#   line 6: --exclusive  nodes are not given whole; cpu = 64 is what the script counts or a guess: ask for all cores
#       and memory of a node, or device count = "all"
#   line 7: --mem=0  all memory of a node cannot be said; 256GiB is a guess
#   line 8: --overcommit  cores are not given twice; lower cpu
#   line 12: srun --container-image=nvcr.io#nvidia/nemo:24.05  $HOME/.cache:/root/.cache is not mounted: no absolute
#       paths, no container, or a variable
#
# Changed:
#   mode pytorch: MASTER_ADDR, MASTER_PORT and torchrun's options are set on every node
#   line 4: --ntasks-per-node=8  tasks of a node: 8; what they are here, the distributed block and the launcher's
#       options say
#   line 12: srun --container-image=nvcr.io#nvidia/nemo:24.05  srun is gone: the line runs on every node by itself
#   line 12: srun --container-image=nvcr.io#nvidia/nemo:24.05  Slurm started 8 of it on each node, torch's launcher
#       does now: RANK, LOCAL_RANK and WORLD_SIZE are set, SLURM_PROCID is not. For JAX use distributed "jax" with
#       rewrite = "procs", for --launcher slurm say pytorch
#
# To look at:
#   the whole script runs on every node at the same time, in Slurm on the first alone; what must happen once goes
#       behind: if [ "$NOMADLIKE_RANK" = 0 ]
#   sbatch hands over the environment of whoever submits; here the task has what this file says: put what the script
#       needs into env
#   line 10: --account=coreai  is there a project coreai, and are you in it? nomadlike project list
#   line 12: srun --container-image=nvcr.io#nvidia/nemo:24.05  the whole script runs in the image now, not only its
#       step; the image needs its shell and programs
#   line 12: srun --container-image=nvcr.io#nvidia/nemo:24.05  does the node allow /lustre/data to be mounted? client {
#       exec { mount_roots } }; or use a storage
#   line 12: srun --container-image=nvcr.io#nvidia/nemo:24.05  does the node allow /lustre/results to be mounted?
#       client { exec { mount_roots } }; or use a storage
#
# Without meaning here:
#   line 12: srun --container-image=nvcr.io#nvidia/nemo:24.05  --no-container-mount-home of srun

job "nemo" {            # line 2: --job-name=nemo
  project    = "coreai" # line 10: --account=coreai
  nodes      = 2        # line 3: --nodes=2
  time_limit = "4h"     # line 9: --time=04:00:00

  distributed "pytorch" {
    procs_per_node = 8
  }

  resources {
    cpu    = 64       # line 6: --exclusive
    memory = "256GiB" # line 7: --mem=0

    device "nvidia/gpu" {
      count = 8 # line 5: --gpus-per-node=8
    }
  }

  task {
    driver  = "docker"                                                                                         # line 12: srun --container-image=nvcr.io#nvidia/nemo:24.05
    image   = "nvcr.io/nvidia/nemo:24.05"                                                                      # line 12: srun --container-image=nvcr.io#nvidia/nemo:24.05
    dir     = "/workspace/nemo"                                                                                # line 12: srun --container-image=nvcr.io#nvidia/nemo:24.05
    command = "python -u -m torch.distributed.run --nproc_per_node=8 examples/pretrain.py trainer.num_nodes=2" # line 12: the script from here on
  }

  mount "/data" {
    source    = "/lustre/data" # line 12: srun --container-image=nvcr.io#nvidia/nemo:24.05
    read_only = true           # line 12: srun --container-image=nvcr.io#nvidia/nemo:24.05
  }

  mount "/results" {
    source = "/lustre/results" # line 12: srun --container-image=nvcr.io#nvidia/nemo:24.05
  }
}

# From horovod.sbatch, a batch script of Slurm, by nomadlike job import. Read it before you run it.
#
# Changed:
#   mode mpi: the script runs on rank 0, mpirun and ssh reach the others through the agents
#   line 4: --ntasks-per-node=4  tasks of a node: 4; what they are here, the distributed block and the launcher's
#       options say
#   line 8: srun --mpi=pmix python train_hvd.py --epochs 90  mpirun in the place of srun: MPI has to be installed on
#       the nodes; ranks are in OMPI_COMM_WORLD_RANK or PMI_RANK, not SLURM_PROCID
#
# To look at:
#   the script leaves cores to the site; cpu = 32 is a guess
#   Slurm starts in the directory of submission, on a shared file system. workdir = "." sends the files beside this job
#       file along; what the script writes there stays on its node: name an output, or use a shared path with dir in
#       task
#   sbatch hands over the environment of whoever submits; here the task has what this file says: put what the script
#       needs into env
#
# Without meaning here:
#   line 3: -n 8  what nodes and tasks of a node give already

job "hvd" {         # line 2: -J hvd
  nodes      = 2    # line 3: -n 8
  time_limit = "8h" # line 7: -t 8:00:00
  workdir    = "."

  distributed "mpi" {
    procs_per_node = 4
  }

  resources {
    cpu    = 32
    memory = "64GiB" # line 6: --mem=64G

    device "nvidia/gpu" {
      count = 4 # line 5: --gres=gpu:4
    }
  }

  task {
    command = "mpirun -np 8 --bind-to none python train_hvd.py --epochs 90" # line 8: the script from here on
  }
}

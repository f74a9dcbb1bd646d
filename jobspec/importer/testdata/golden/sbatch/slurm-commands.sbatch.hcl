# From slurm-commands.sbatch, a batch script of Slurm, by nomadlike job import. Read it before you run it.
#
# Changed:
#   line 4: --time=30  a bare number of Slurm counts in minutes
#   line 8: $SLURM_JOB_ID  is $NOMADLIKE_JOB_NUMBER
#   line 9: $SLURM_GPUS_ON_NODE  0, set in front of the script and not exported
#   line 9: $SLURM_CPUS_ON_NODE  1, set in front of the script and not exported
#
# To look at:
#   Slurm starts in the directory of submission, on a shared file system. workdir = "." sends the files beside this job
#       file along; what the script writes there stays on its node: name an output, or use a shared path with dir in
#       task
#   sbatch hands over the environment of whoever submits; here the task has what this file says: put what the script
#       needs into env
#   line 5: squeue --me  squeue is not on the nodes here; jobs that follow one another have after "NAME" {} in their
#       files
#   line 6: ID=$(sbatch --parsable next.sbatch)  sbatch is not on the nodes here; jobs that follow one another have
#       after "NAME" {} in their files
#   line 7: sbatch --dependency=afterok:$ID last.sbatch  sbatch is not on the nodes here; jobs that follow one another
#       have after "NAME" {} in their files
#   line 8: sacct -j $SLURM_JOB_ID -o JobID,State  sacct is not on the nodes here; jobs that follow one another have
#       after "NAME" {} in their files
#   line 9: $SLURM_CLUSTER_NAME  is not set here

job "chain" {        # line 2: --job-name=chain
  time_limit = "30m" # line 4: --time=30
  workdir    = "."

  resources {
    cpu    = 1
    memory = "2GiB" # line 3: --mem=2G
  }

  task {
    # line 5: the script from here on
    command = <<SCRIPT
bash -c '
SLURM_GPUS_ON_NODE=0
SLURM_CPUS_ON_NODE=1
squeue --me
ID=$(sbatch --parsable next.sbatch)
sbatch --dependency=afterok:$ID last.sbatch
sacct -j $NOMADLIKE_JOB_NUMBER -o JobID,State
echo "$SLURM_CLUSTER_NAME $SLURM_GPUS_ON_NODE $SLURM_CPUS_ON_NODE"
'
SCRIPT
  }
}

# From signal-trap.sbatch, a batch script of Slurm, by nomadlike job import. Read it before you run it.
#
# Changed:
#   line 6: $SLURM_JOB_ID  is $NOMADLIKE_JOB_NUMBER
#
# To look at:
#   the script leaves cores to the site; cpu = 8 is a guess
#   Slurm starts in the directory of submission, on a shared file system. workdir = "." sends the files beside this job
#       file along; what the script writes there stays on its node: name an output, or use a shared path with dir in
#       task
#   sbatch hands over the environment of whoever submits; here the task has what this file says: put what the script
#       needs into env
#   line 2: --signal=B:USR1@300  every rank's command gets it, which is the shell of the script: keep its trap
#   line 6: trap 'echo saving; kill -USR1 $PID; scontrol requeue $SLURM_JOB_ID' USR1  scontrol is not on the nodes
#       here; jobs that follow one another have after "NAME" {} in their files

job "signal-trap" {
  workdir = "."

  time_limit {
    limit  = "10h"     # line 3: --time=10:00:00
    warn   = "5m"      # line 2: --signal=B:USR1@300
    signal = "SIGUSR1" # line 2: --signal=B:USR1@300
  }

  resources {
    cpu    = 8
    memory = "64GiB" # line 4: --mem=64G

    device "nvidia/gpu" {
      count = 1 # line 5: --gpus=1
    }
  }

  task {
    # line 6: the script from here on
    command = <<SCRIPT
bash -c '
trap '\''echo saving; kill -USR1 $PID; scontrol requeue $NOMADLIKE_JOB_NUMBER'\'' USR1
python train.py &
PID=$!
wait $PID
'
SCRIPT
  }
}

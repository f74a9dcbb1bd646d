# From qos-and-friends.sbatch, a batch script of Slurm, by nomadlike job import. Read it before you run it.
#
# Not kept:
#   line 3: -p gpu_long,gpu  a job has one pool; gpu are left out
#   line 4: -q high  there are no QOS; priority = "urgent" and preemptible = true say what they mostly mean, quotas lie
#       in projects and pools
#   line 5: --reservation=course  reservations are not named by jobs; ask an operator for a pool, or name nodes in
#       placement
#   line 6: --constraint=skylake&ib  features of nodes have no names here; a model of cards, or a pool
#   line 7: --nice=100  priority has tiers here: normal, urgent, critical
#   line 8: --licenses=matlab:1  licences are not counted; limit how many such jobs run by hand
#   line 9: --no-requeue  after a lost node the job starts again; a script that must not run twice has to look at
#       NOMADLIKE_RESTARTS
#   line 10: --hold  nothing is submitted on hold; submit it later, or with begin
#   line 18: --wckey=paper  a key for reports; tags = ["KEY"] lets you find the job by it
#   line 23: --mail-type=ALL,ARRAY_TASKS  ARRAY_TASKS is not told here
#
# Changed:
#   line 15: --mem-per-gpu=40G  memory is counted by node: times 2
#   line 17: --tmp=100G  the most that a rank may write on its node, where Slurm wants so much free
#   line 19: --time=UNLIMITED  no limit, but the pool's
#   line 20: --export=NONE  the environment of whoever submits is never handed over
#   line 21: --get-user-env  a login shell runs the script
#   line 23: --mail-type=ALL,ARRAY_TASKS  told at the bell; with to = "NAME" at a channel of yours, of which e-mail may
#       be one; a batch is told as one
#
# To look at:
#   Slurm starts in the directory of submission, on a shared file system. workdir = "." sends the files beside this job
#       file along; what the script writes there stays on its node: name an output, or use a shared path with dir in
#       task
#   sbatch hands over the environment of whoever submits; here the task has what this file says: put what the script
#       needs into env
#   line 2: -A lab_42  is there a project lab-42, and are you in it? nomadlike project list
#   line 3: -p gpu_long,gpu  is there a pool gpu-long? nomadlike pool list
#   line 24: --input=params.txt  the script reads it itself; the file must be where the task starts
#
# Without meaning here:
#   line 11: --switches=1  the scheduler keeps ranks near each other where the nodes' topology is known
#   line 12: --wait-all-nodes=1  always so here: all ranks start together
#   line 13: --gres-flags=enforce-binding  cores and cards are given to a job whole, and bound by the system
#   line 22: --open-mode=append  each attempt has logs of its own, nothing is cut or appended

job "qos-and-friends" {
  project = "lab-42" # line 2: -A lab_42
  workdir = "."

  resources {
    cpu    = 16       # line 14: --cpus-per-gpu=8
    memory = "80GiB"  # line 15: --mem-per-gpu=40G
    disk   = "100GiB" # line 17: --tmp=100G

    device "nvidia/gpu" {
      count = 2 # line 16: --gpus=2
    }
  }

  placement {
    pool = "gpu-long" # line 3: -p gpu_long,gpu
  }

  task {
    # line 25: the script from here on
    command = <<SCRIPT
bash -l -c '
exec <params.txt
./solve
'
SCRIPT
  }

  notify {
    on = ["expired", "failed", "preempted", "resumed", "started", "succeeded"] # line 23: --mail-type=ALL,ARRAY_TASKS
    to = "bell"
  }
}

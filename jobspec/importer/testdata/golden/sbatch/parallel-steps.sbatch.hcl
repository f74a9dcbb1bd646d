# From parallel-steps.sbatch, a batch script of Slurm, by nomadlike job import. Read it before you run it.
#
# Changed:
#   line 3: --ntasks=4  tasks of a node: 4; what they are here, the distributed block and the launcher's options say
#   line 4: --cpus-per-task=2  cores are counted by node: times 4 tasks
#   line 8: srun --exclusive -n1 -N1 python part.py $i &  srun is gone: one task, which runs where the script does
#
# To look at:
#   Slurm starts in the directory of submission, on a shared file system. workdir = "." sends the files beside this job
#       file along; what the script writes there stays on its node: name an output, or use a shared path with dir in
#       task
#   sbatch hands over the environment of whoever submits; here the task has what this file says: put what the script
#       needs into env
#
# Without meaning here:
#   line 8: srun --exclusive -n1 -N1 python part.py $i &  --exclusive of srun

job "parallel-steps" {
  nodes      = 1    # line 2: --nodes=1
  time_limit = "1h" # line 6: --time=1:00:00
  workdir    = "."

  resources {
    cpu    = 8       # line 4: --cpus-per-task=2
    memory = "16GiB" # line 5: --mem=16G
  }

  task {
    # line 7: the script from here on
    command = <<SCRIPT
bash -c '
for i in 1 2 3 4; do
  python part.py $i &
done
wait
'
SCRIPT
  }
}

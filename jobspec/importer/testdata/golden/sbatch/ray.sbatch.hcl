# From ray.sbatch, a batch script of Slurm, by nomadlike job import. Read it before you run it.
#
# Changed:
#   mode mpi: the script runs on rank 0, mpirun and ssh reach the others through the agents
#   line 4: --tasks-per-node=1  tasks of a node: 1; what they are here, the distributed block and the launcher's
#       options say
#   line 10: nodes=$(scontrol show hostnames "$SLURM_JOB_NODELIST")  NOMADLIKE_RANK_NAMES lists the nodes; their names
#       are those of ranks, which resolve inside of the job
#   line 10: $SLURM_JOB_NODELIST  is $NOMADLIKE_RANK_NAMES
#   line 13: head_node_ip=$(srun --nodes=1 --ntasks=1 -w "$head_node" hostname --ip-address)  the address of a node,
#       which the system knows
#   line 17: $SLURM_JOB_NUM_NODES  is $NOMADLIKE_NODES
#
# To look at:
#   Slurm starts in the directory of submission, on a shared file system. workdir = "." sends the files beside this job
#       file along; what the script writes there stays on its node: name an output, or use a shared path with dir in
#       task
#   sbatch hands over the environment of whoever submits; here the task has what this file says: put what the script
#       needs into env
#   line 14: srun --nodes=1 --ntasks=1 -w "$head_node"  ssh reaches the node through the agents; the environment and
#       the directory do not go along: write them into the command
#   line 18: srun --nodes=1 --ntasks=1 -w "${nodes_array[$i]}" ray start --address "$head_nod…  ssh reaches the node
#       through the agents; the environment and the directory do not go along: write them into the command

job "ray" {         # line 2: --job-name=ray
  nodes      = 3    # line 3: --nodes=3
  time_limit = "2h" # line 8: --time=02:00:00
  workdir    = "."

  distributed "mpi" {
    rewrite = "none"
  }

  resources {
    cpu    = 16      # line 5: --cpus-per-task=16
    memory = "64GiB" # line 6: --mem=64G

    device "nvidia/gpu" {
      count = 2 # line 7: --gpus-per-node=2
    }
  }

  task {
    # line 10: the script from here on
    command = <<SCRIPT
bash -c '
nodes=$(echo "$NOMADLIKE_RANK_NAMES" | tr , "\n")
nodes_array=($nodes)
head_node=$${nodes_array[0]}
head_node_ip=$(echo "$head_node")
ssh "$head_node" ray start --head --node-ip-address="$head_node_ip" --port=6379 --block &
sleep 10
for ((i = 1; i < NOMADLIKE_NODES; i++)); do
    ssh "$${nodes_array[$i]}" ray start --address "$head_node_ip:6379" --block &
    sleep 5
done
python -u tune.py
'
SCRIPT
  }
}

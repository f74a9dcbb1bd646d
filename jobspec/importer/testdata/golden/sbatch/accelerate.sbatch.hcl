# From accelerate.sbatch, a batch script of Slurm, by nomadlike job import. Read it before you run it.
#
# Changed:
#   mode pytorch: MASTER_ADDR, MASTER_PORT and torchrun's options are set on every node
#   line 4: --ntasks-per-node=1  tasks of a node: 1; what they are here, the distributed block and the launcher's
#       options say
#   line 11: head_node_ip=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)  NOMADLIKE_RANK_NAMES lists the
#       nodes; their names are those of ranks, which resolve inside of the job
#   line 11: $SLURM_JOB_NODELIST  is $NOMADLIKE_RANK_NAMES
#   line 13: srun accelerate launch  srun is gone: the line runs on every node by itself
#   line 13: srun accelerate launch  --machine_rank is "$NOMADLIKE_RANK"
#   line 13: srun accelerate launch  --main_process_ip is "$MASTER_ADDR"
#   line 13: srun accelerate launch  --main_process_port is "$MASTER_PORT"
#   line 14: $SLURM_NNODES  is $NOMADLIKE_NODES
#   line 15: $SLURM_NNODES  is $NOMADLIKE_NODES
#   line 16: $SLURM_PROCID  is $NOMADLIKE_RANK
#
# To look at:
#   the whole script runs on every node at the same time, in Slurm on the first alone; what must happen once goes
#       behind: if [ "$NOMADLIKE_RANK" = 0 ]
#   Slurm starts in the directory of submission, on a shared file system. workdir = "." sends the files beside this job
#       file along; what the script writes there stays on its node: name an output, or use a shared path with dir in
#       task
#   sbatch hands over the environment of whoever submits; here the task has what this file says: put what the script
#       needs into env

job "accelerate" {   # line 2: --job-name=accelerate
  nodes      = 4     # line 3: -N 4
  time_limit = "10h" # line 8: -t 10:00:00
  workdir    = "."

  distributed "pytorch" {}

  resources {
    cpu    = 24       # line 6: --cpus-per-task=24
    memory = "200GiB" # line 7: --mem=200G

    device "nvidia/gpu" {
      count = 4 # line 5: --gpus-per-node=4
    }
  }

  task {
    # line 10: the script from here on
    command = <<SCRIPT
bash -c '
export GPUS_PER_NODE=4
head_node_ip=$(echo "$NOMADLIKE_RANK_NAMES" | tr , "\n" | head -n 1)

accelerate launch \
    --num_processes $((NOMADLIKE_NODES * GPUS_PER_NODE)) \
    --num_machines $NOMADLIKE_NODES \
    --machine_rank "$NOMADLIKE_RANK" \
    --rdzv_backend c10d \
    --main_process_ip "$MASTER_ADDR" \
    --main_process_port "$MASTER_PORT" \
    --mixed_precision bf16 \
    examples/complete_nlp_example.py --output_dir out
'
SCRIPT
  }
}

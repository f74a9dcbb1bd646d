# From launcher-variable.slurm, a batch script of Slurm, by nomadlike job import. Read it before you run it.
#
# Changed:
#   mode pytorch: MASTER_ADDR, MASTER_PORT and torchrun's options are set on every node
#   line 4: --ntasks-per-node=1  tasks of a node: 1; what they are here, the distributed block and the launcher's
#       options say
#   line 8: -C a100  taken for the model of the cards
#   line 10: --output=%x-%j.out  logs are kept by the cluster, by rank and attempt: nomadlike job logs megatron-gpt.
#       For the file as well: exec > >(tee -a "${NOMADLIKE_JOB_NAME}-${NOMADLIKE_JOB_NUMBER}.out") 2>&1
#   line 14: $SLURM_NNODES  is $NOMADLIKE_NODES
#   line 15: MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)  NOMADLIKE_RANK_NAMES lists the
#       nodes; their names are those of ranks, which resolve inside of the job
#   line 15: MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)  MASTER_ADDR is set by the system,
#       with a port that is free
#   line 15: $SLURM_JOB_NODELIST  is $NOMADLIKE_RANK_NAMES
#   line 16: MASTER_PORT=6000  MASTER_PORT is set by the system, with a port that is free
#   line 20: $SLURM_PROCID  is $NOMADLIKE_RANK
#   line 24: srun --jobid $SLURM_JOBID bash -c "$LAUNCHER $CMD" 2>&1 | tee -a main_log.txt  srun is gone: the line runs
#       on every node by itself
#   line 24: $SLURM_JOBID  is $NOMADLIKE_JOB_NUMBER
#
# To look at:
#   the script leaves memory to the site; 256GiB is a guess, and a task that uses more is killed
#   the whole script runs on every node at the same time, in Slurm on the first alone; what must happen once goes
#       behind: if [ "$NOMADLIKE_RANK" = 0 ]
#   Slurm starts in the directory of submission, on a shared file system. workdir = "." sends the files beside this job
#       file along; what the script writes there stays on its node: name an output, or use a shared path with dir in
#       task
#   sbatch hands over the environment of whoever submits; here the task has what this file says: put what the script
#       needs into env
#
# Without meaning here:
#   line 6: --hint=nomultithread  cores and cards are given to a job whole, and bound by the system
#   line 24: srun --jobid $SLURM_JOBID bash -c "$LAUNCHER $CMD" 2>&1 | tee -a main_log.txt  --jobid of srun

job "megatron-gpt" { # line 2: --job-name=megatron-gpt
  nodes      = 8     # line 3: --nodes=8
  time_limit = "20h" # line 9: --time 20:00:00
  workdir    = "."

  distributed "pytorch" {}

  resources {
    cpu    = 40 # line 5: --cpus-per-task=40
    memory = "256GiB"

    device "nvidia/gpu" {
      model = "A100" # line 8: -C a100
      count = 8      # line 7: --gres=gpu:8
    }
  }

  task {
    # line 12: the script from here on
    command = <<SCRIPT
bash -c '
set -x -e
GPUS_PER_NODE=8
NNODES=$NOMADLIKE_NODES
MASTER_ADDR=$MASTER_ADDR
MASTER_PORT=$MASTER_PORT
export LAUNCHER="python -u -m torch.distributed.run \
    --nproc_per_node $GPUS_PER_NODE \
    --nnodes $NNODES \
    --node_rank \$NOMADLIKE_RANK \
    --master_addr $MASTER_ADDR \
    --master_port $MASTER_PORT"
export CMD="pretrain_gpt.py --num-layers 24 --hidden-size 1024 --distributed-backend nccl"
bash -c "$LAUNCHER $CMD" 2>&1 | tee -a main_log.txt
'
SCRIPT
  }
}

# From torchrun-two-nodes.sbatch, a batch script of Slurm, by nomadlike job import. Read it before you run it.
#
# Not kept:
#   line 13: --mail-user=li@example.org  where you are told is your own setting: nomadlike notify
#   line 14: --exclude=gpu[03-04]  nodes cannot be left out; name those that you want in placement { nodes = […] }, or
#       have an operator cordon them
#
# Changed:
#   mode pytorch: MASTER_ADDR, MASTER_PORT and torchrun's options are set on every node
#   modules need what a login shell sets up: the script has one
#   line 2: --job-name=llama_sft  names have lower-case letters, digits and hyphens: llama-sft
#   line 4: --ntasks-per-node=1  tasks of a node: 1; what they are here, the distributed block and the launcher's
#       options say
#   line 11: --output=logs/%x-%j.out  logs are kept by the cluster, by rank and attempt: nomadlike job logs llama-sft.
#       For the file as well: exec > >(tee -a "logs/${NOMADLIKE_JOB_NAME}-${NOMADLIKE_JOB_NUMBER}.out") 2>&1
#   line 12: --mail-type=END,FAIL  told at the bell; with to = "NAME" at a channel of yours, of which e-mail may be
#       one; a batch is told as one
#   line 20: nodes=( $( scontrol show hostnames $SLURM_JOB_NODELIST ) )  NOMADLIKE_RANK_NAMES lists the nodes; their
#       names are those of ranks, which resolve inside of the job
#   line 20: $SLURM_JOB_NODELIST  is $NOMADLIKE_RANK_NAMES
#   line 21: head_node_ip=$(srun --nodes=1 --ntasks=1 -w "${nodes[0]}" hostname --ip-address)  the address of a node,
#       which the system knows
#   line 22: export MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000))  MASTER_PORT is set by the system, with a port that
#       is free
#   line 22: $SLURM_JOB_ID  is $NOMADLIKE_JOB_NUMBER
#   line 24: $SLURM_JOB_ID  is $NOMADLIKE_JOB_NUMBER
#   line 24: $SLURM_NNODES  is $NOMADLIKE_NODES
#   line 26: srun --label torchrun  srun is gone: the line runs on every node by itself
#   line 26: srun --label torchrun  --nnodes --rdzv_id --rdzv_backend --rdzv_endpoint: the launcher has them from the
#       environment
#   line 27: $SLURM_NNODES  is $NOMADLIKE_NODES
#
# To look at:
#   the whole script runs on every node at the same time, in Slurm on the first alone; what must happen once goes
#       behind: if [ "$NOMADLIKE_RANK" = 0 ]
#   Slurm starts in the directory of submission, on a shared file system. workdir = "." sends the files beside this job
#       file along; what the script writes there stays on its node: name an output, or use a shared path with dir in
#       task
#   sbatch hands over the environment of whoever submits; here the task has what this file says: put what the script
#       needs into env
#   line 9: --partition=gpu  is there a pool gpu? nomadlike pool list
#   line 10: --account=vision  is there a project vision, and are you in it? nomadlike project list
#   line 17: module load cuda/12.1  kept: the modules must be on the nodes, or their contents in an image
#
# Without meaning here:
#   line 26: srun --label torchrun  --label of srun

job "llama-sft" {       # line 2: --job-name=llama_sft
  project    = "vision" # line 10: --account=vision
  nodes      = 2        # line 3: --nodes=2
  time_limit = "36h"    # line 8: --time=1-12:00:00
  workdir    = "."

  distributed "pytorch" {}

  resources {
    cpu    = 32       # line 6: --cpus-per-task=32
    memory = "240GiB" # line 7: --mem=240G

    device "nvidia/gpu" {
      count = 4 # line 5: --gres=gpu:4
    }
  }

  placement {
    pool = "gpu" # line 9: --partition=gpu
  }

  task {
    # line 17: the script from here on
    command = <<SCRIPT
bash -l -c '
# fine-tunes on two nodes
module load cuda/12.1
source ~/venv/bin/activate

nodes=( $( echo "$NOMADLIKE_RANK_NAMES" | tr , "\n" ) )
head_node_ip=$(echo "$MASTER_ADDR")
export MASTER_PORT=$MASTER_PORT
export NCCL_DEBUG=INFO
echo "job $NOMADLIKE_JOB_NUMBER on $NOMADLIKE_NODES nodes"

torchrun \
    --nproc_per_node 4 \
    train.py --lr 1e-5 --out '\''/nas/runs'\''
'
SCRIPT
  }

  notify {
    on = ["expired", "failed", "succeeded"] # line 12: --mail-type=END,FAIL
    to = "bell"
  }
}

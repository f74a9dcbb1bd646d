# From quotes.sbatch, a batch script of Slurm, by nomadlike job import. Read it before you run it.
#
# Changed:
#   line 2: --job-name=it's mine  names have lower-case letters, digits and hyphens: it-s-mine
#
# To look at:
#   Slurm starts in the directory of submission, on a shared file system. workdir = "." sends the files beside this job
#       file along; what the script writes there stays on its node: name an output, or use a shared path with dir in
#       task
#   sbatch hands over the environment of whoever submits; here the task has what this file says: put what the script
#       needs into env

job "it-s-mine" {                       # line 2: --job-name=it's mine
  description = "baseline, \"table 2\"" # line 2: --comment=baseline, "table 2"
  time_limit  = "1h"                    # line 3: --time=1:00:00
  workdir     = "."

  resources {
    cpu    = 1
    memory = "4GiB" # line 3: --mem=4G
  }

  task {
    # line 4: the script from here on
    command = <<SCRIPT
bash -c '
echo "100 % of $${HOME} and %%{not} $$${this} it'\''s"
awk '\''{print $1}'\'' file | while read -r x; do echo "$x"; done
'
SCRIPT
  }
}

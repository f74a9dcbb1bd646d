# From unknown.sbatch, a batch script of Slurm, by nomadlike job import. Read it before you run it.
#
# Not kept:
#   line 3: --lustre=yes  --lustre is no option of sbatch that is known; perhaps one of your site
#   line 4: --frobnicate  --frobnicate is no option of sbatch that is known; perhaps one of your site
#   line 5: --ntasks-per=3  --ntasks-per is the beginning of several options; write it out
#   line 6: -y  -y is no option of sbatch that is known; perhaps one of your site
#   line 6: 3  no option; Slurm would not take it either
#   line 7: --time=soon  soon cannot be read
#   line 8: --nodes=$N  $N cannot be read
#   line 9: --gres=lustre:1,gpu:v100:2(S:0)  lustre:1 is no device here
#   line 10: stray  no option; Slurm would not take it either
#   line 11: --mem=10X  10X cannot be read
#   line 12: #PBS -l walltime=1:00  #PBS belongs to another system or to a burst buffer; there is nothing like it here
#   line 13: #BB create_persistent name=x  #BB belongs to another system or to a burst buffer; there is nothing like it
#       here
#
# Changed:
#   line 2: --job-name=my job  names have lower-case letters, digits and hyphens: my-job
#   line 3: --out=log.txt  logs are kept by the cluster, by rank and attempt: nomadlike job logs my-job. For the file
#       as well: exec > >(tee -a "log.txt") 2>&1
#   line 3: --err=log.err  logs are kept by the cluster, by rank and attempt: nomadlike job logs my-job. For the file
#       as well: exec > >(tee -a "log.err") 2>&1
#
# To look at:
#   the script leaves cores to the site; cpu = 16 is a guess
#   the script leaves memory to the site; 64GiB is a guess, and a task that uses more is killed
#   Slurm starts in the directory of submission, on a shared file system. workdir = "." sends the files beside this job
#       file along; what the script writes there stays on its node: name an output, or use a shared path with dir in
#       task
#   sbatch hands over the environment of whoever submits; here the task has what this file says: put what the script
#       needs into env
#   line 8: --nodes=$N  Slurm does not replace variables in directives: this is taken as it is written
#   line 9: --gres=lustre:1,gpu:v100:2(S:0)  is v100 what your cards are called? nomadlike node status NODE

job "my-job" { # line 2: --job-name=my job
  workdir = "."

  resources {
    cpu    = 16
    memory = "64GiB"

    device "nvidia/gpu" {
      model = "V100" # line 9: --gres=lustre:1,gpu:v100:2(S:0)
      count = 2      # line 9: --gres=lustre:1,gpu:v100:2(S:0)
    }
  }

  task {
    # PBS -l walltime=1:00
    # BB create_persistent name=x
    command = "./run" # line 14: the script from here on
  }
}
